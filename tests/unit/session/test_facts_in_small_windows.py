"""Codes, names, numbers and decisions stated by the user are in every later request of a small window."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from codecompanion.adapters.base import ChatRequest
from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.wire.events import Compacted, Notice
from tests.summaries import nine_sections
from tests.unit.session.fakes import Bench, Reply, ScriptedAdapter, says, submit

FACTS = {
    "The deploy code of the staging server is ZX-4471.": "ZX-4471",
    "Our Redis listens on port 6390.": "6390",
    "The release branch is called harbour-9.": "harbour-9",
    "Ms. Okonkwo signs off every release.": "Okonkwo",
    "We decided to use msgspec for the wire.": "msgspec",
    "we use trunk based development\n": "trunk based",
    "Given that our API listens on 8443, what would you check?": "8443",
    "The nightly job starts at 03:40.": "03:40",
    "Feature flags live in conf/flags.toml.": "conf/flags.toml",
    "Let's call the new service lighthouse.": "lighthouse",
    "please write everything in British English\n": "British English",
    "I want errors logged in English only.": "English only",
    "Use the table orders_v3, not orders_v2.": "orders_v3",
    "rate limit: 40 per minute\n": "40 per minute",
    "My colleague Tadhg wrote the parser.": "Tadhg",
    "Deploys happen at noon.": "noon",
    "We ship on Thursdays.": "Thursdays",
    "The proxy is proxy.lan:3128.": "proxy.lan:3128",
    "Don't touch the legacy folder.": "legacy folder",
    "Keep the timeout at 45 seconds.": "45 seconds",
    "btw staging password hint = qx81-blue\n": "qx81-blue",
    "Our licence is EUPL-1.2.": "EUPL-1.2",
    "I decided against GraphQL.": "GraphQL",
    "The ticket for this work is OPS-3319.": "OPS-3319",
}
QUESTIONS = (
    "Please explain in a few words what I have to watch when I roll a service out in the evening, and the usual order.",
    "Can you tell me how one normally goes about that, step by step, without going into the details of our own set-up?",
    "What would you check first in such a case? A rough list is enough, we can go deeper into all of it later on.",
)
ANSWER = (
    "I have noted that. This is how such things are usually arranged in a project, and who should be asked first. " * 4
)
SAID = (
    "The user asked what to watch when a service is rolled out in the evening, and how one goes about that step by step"
    ". The assistant told how such things are usually arranged in a project, and who should be asked."
)


def messages() -> list[str]:
    """Return one message per fact position: at its beginning, in its middle, at its end."""
    return [" ".join((*QUESTIONS[: number % 3], fact, *QUESTIONS[number % 3 :])) for number, fact in enumerate(FACTS)]


def forgetful(request: ChatRequest) -> str:
    """Return a summary in the requested form, without any of the facts."""
    prompt = request.messages[-1].text
    schema = next((name for name in ("cc_9", "cw_9") if nine_sections("", name).splitlines()[0][4:12] in prompt), "")
    return nine_sections(SAID, schema) if schema else SAID


async def play(tmp_path: Path, name: str, window: int, **tools: object) -> tuple[Bench, ChatRequest]:
    """State each fact in a turn of its own; return the last request. Every second summary is missing."""
    numbers = itertools.count()

    def answer(request: ChatRequest) -> Reply:
        if request.purpose != "summary":
            return says(ANSWER)
        return says(forgetful(request) if next(numbers) % 2 else "Sure! I am happy to help you.")

    bench = Bench(tmp_path, ScriptedAdapter("s", answer), window=window, settings={"policy": name}, tools=tools)
    session = await bench.open()
    for number, text in enumerate([*messages(), "What was the deploy code, and which port does Redis use?"]):
        session.submit(submit(text, number + 1))
        await bench.idle(session)
    return bench, [request for request in bench.adapter.requests if request.purpose == "chat"][-1]


@pytest.mark.parametrize("window", [2_048, 4_096])
@pytest.mark.parametrize("name", policy_names())
async def test_all_short_facts_are_in_the_last_request(tmp_path: Path, name: str, window: int) -> None:
    """13 of 24 used to survive at 2,048 tokens. Without the tool `recall`, no key is named: it would be useless."""
    bench, last = await play(tmp_path, name, window)
    sent = "\n".join(message.text for message in last.messages)
    assert bench.of(Compacted)
    assert [value for value in FACTS.values() if value not in sent] == []
    assert re.findall(r"recall r\d+", sent) == []
    assert "recall" not in [tool.name for tool in last.tools]


@pytest.mark.parametrize("name", ["adaptive", "codecompanion", "cowork", "cowork_chat"])
async def test_no_model_is_asked_if_that_costs_more_than_it_saves(tmp_path: Path, name: str) -> None:
    """At 2,048 tokens, `cowork` used to ask twice to free 8 %; nothing is reported, since nothing failed."""
    bench, _ = await play(tmp_path, name, 2_048)
    assert [request for request in bench.adapter.requests if request.purpose == "summary"] == []
    assert {event.summariser for event in bench.of(Compacted)} == {"no model"}
    assert bench.of(Notice) == []


async def test_a_model_that_writes_no_summary_is_asked_once(tmp_path: Path) -> None:
    """With SmolLM2-135M, each second answer was as useless as the first, and the user had to wait for it."""

    def answer(request: ChatRequest) -> Reply:
        return says("Sure! I am happy to help you." if request.purpose == "summary" else ANSWER)

    bench = Bench(tmp_path, ScriptedAdapter("s", answer), window=4_096)
    session = await bench.open()
    for number, text in enumerate(messages()):
        session.submit(submit(text, number + 1))
        await bench.idle(session)
    asked = [request for request in bench.adapter.requests if request.purpose == "summary"]
    assert len(asked) == len(bench.of(Compacted)) == 1
    assert [event.summariser for event in bench.of(Compacted)] == ["no model (scripted-1 failed)"]


async def test_facts_without_room_are_counted(tmp_path: Path) -> None:
    """A summary reports missing facts; in a window this small not all of them fit."""
    _, last = await play(tmp_path, "adaptive", 1_024)
    sent = "\n".join(message.text for message in last.messages)
    assert any(value not in sent for value in FACTS.values())
    assert re.search(r"- \[…\] \d+ older messages are not listed\n", sent)


async def test_keys_are_named_if_the_recall_tool_is_offered(tmp_path: Path) -> None:
    _, last = await play(tmp_path, "adaptive", 4_096, default_tools=("read_file", "recall"))
    assert "recall" in [tool.name for tool in last.tools]
    assert re.search(r"recall r\d+", "\n".join(message.text for message in last.messages))
