"""The rules in the first message survive every compaction, even without a model and in a small window (lesson 10).

At 4k the last tier shortened the rule although 1,400 tokens were free, and quoted four routine questions.
"""

from __future__ import annotations

import msgspec
import pytest

from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.work import SummaryReply
from codecompanion.model.messages import Message
from tests.unit.context.builders import assistant, chat, count, run, system, user

RULES = (
    "never touch conf/prod.ini and conf/prod.secrets, they are deployed by another team",
    "Always write tests under tests/unit with pytest, no mocks of the database",
    "Keep function names in snake_case",
    "Use only the standard library",
    "Ask before deleting any file, and do not commit anything yourself",
)
FIRST = f"Please port the billing service of shop/ to the new settings loader. For all of this: {'. '.join(RULES)}."


def question(number: int) -> str:
    return f"What does the function load_part_{number} in shop/part_{number}.py return, and who calls it at the moment?"


def fails(ask: object) -> SummaryReply:
    return SummaryReply(error="down")


@pytest.mark.slow("eighteen questions under every policy")
@pytest.mark.parametrize("window", [4_096, 8_192, 65_536])
@pytest.mark.parametrize("name", policy_names())
def test_the_rules_are_verbatim_after_eighteen_questions_without_a_model(name, window):
    """R-317, R-431: rules are never dropped, whatever else is."""
    policy = load_policy(name)
    messages: tuple[Message, ...] = ()
    fresh = [system(), user(FIRST), assistant("I will start with shop/settings.py.")]
    compacted = 0
    for number in range(18):
        fresh.append(user(question(number)))
        cycle = 2 + number
        added = [msgspec.structs.replace(m, id=f"{number}-{i}", cycle=cycle) for i, m in enumerate(chat(*fresh))]
        messages = (*messages, *(msgspec.structs.replace(m, tokens=count(m)) for m in added))
        new_id = lambda purpose, n=number: f"{purpose}-{n}"  # noqa: E731
        prepared, _ = run(
            messages, window, policy=policy, script=fails, cycle=cycle, new_id=new_id, reserve=window // 10
        )
        compacted += any(report.removed_messages for report in prepared.reports)
        messages = tuple(msgspec.structs.replace(m, tokens=count(m)) for m in prepared.messages)
        assert sum(map(count, messages)) <= window - window // 10
        fresh = [assistant("It returns a mapping of settings. " * (window // 60))]
    assert compacted >= 2
    text = " ".join("\n".join(m.text for m in messages).replace("\n> ", " ").split())
    assert [rule for rule in RULES if rule not in text] == []
