"""A user's own strategies: used in a policy like built-in ones, and unable to damage the chat."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codecompanion.context.policy.policy_catalog import load_policy
from codecompanion.context.strategies import STRATEGIES
from codecompanion.context.work import Failed, Skipped, Work
from codecompanion.engine import own_strategies
from codecompanion.engine.own_strategies import register_in_time, register_strategies
from codecompanion.errors import ConfigError
from codecompanion.model.messages import Message, ToolCall
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit

SOURCE = '''
from dataclasses import dataclass

@dataclass
class Params:
    max_chars: int = 10

def shorten(messages, params: Params, env):
    """Cut long replies."""
    def cut(message):
        if message.role != "assistant" or len(message.text) <= params.max_chars:
            return message
        return env.with_text(message, message.text[:params.max_chars])
    return [cut(message) for message in messages], "a report"
'''
POLICY = {
    "extends": "codecompanion",
    "stage": [
        {
            "id": "editing",
            "event": "context_edited",
            "trigger": {"always": True},
            "step": [{"use": "mine", "max_chars": 5}],
        }
    ],
}


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = dict(STRATEGIES)
    yield
    register_strategies({})
    assert before == STRATEGIES


SAID: list[str] = []
FAILED: list[str] = []


def register(tmp_path: Path, source: str, name: str = "mine", function: str = "shorten") -> list[str]:
    path = tmp_path / "strategies.py"
    path.write_text(source, encoding="utf-8")
    SAID.clear()
    FAILED.clear()
    return register_strategies({name: f"{path}:{function}"}, SAID.append, FAILED.append)


def env(**more: Any) -> Any:
    """Return a strategy's environment; a token is a character."""
    from codecompanion.context.work import Env, Measure

    def count(message: Message) -> int:
        return len(message.text)

    def measure(messages: tuple[Message, ...]) -> Measure:
        size = sum(map(count, messages))
        return Measure(size, size)

    return Env(window=1000, measure=measure, count=count, count_text=len, cycle=3, **more)


MESSAGES = (
    Message(id="r", role="user", content="always keep tests green", tag="rules"),
    Message(id="u", role="user", content="a question that is long enough"),
    Message(id="a", role="assistant", content="", tool_calls=(ToolCall("c", "read_file", "{}"),)),
    Message(id="t", role="tool", content="a result of it", tool_call_id="c"),
    Message(id="b", role="assistant", content="an answer that is long enough", pinned=True),
    Message(id="d", role="assistant", content="another answer that is long"),
)


def run(tmp_path: Path, body: str) -> Any:
    assert register(tmp_path, f"def shorten(messages, params, env):\n    {body}\n") == []
    strategy = STRATEGIES["mine"]
    return strategy.run(Work(before=MESSAGES, messages=MESSAGES), strategy.params(), env())


def test_a_users_strategy_is_used_in_a_policy_with_its_own_parameters(tmp_path: Path) -> None:
    assert register(tmp_path, SOURCE) == []
    policy = load_policy("my", {"my": POLICY})
    step = policy.stages[0].tiers[0].steps[0]
    assert (step.use, step.params.max_chars) == ("mine", 5)  # type: ignore[attr-defined]
    stage = {**POLICY["stage"][0], "step": [{"use": "mine", "max_char": 5}]}  # type: ignore[dict-item]
    with pytest.raises(ConfigError, match="max_char"):
        load_policy("my", {"my": {**POLICY, "stage": [stage]}})
    stage = {**stage, "step": [{"use": "mine", "max_chars": "five"}]}
    with pytest.raises(ConfigError, match="max_chars"):
        load_policy("my", {"my": {**POLICY, "stage": [stage]}})


async def test_a_chat_is_managed_by_it_and_it_can_be_undone(tmp_path: Path) -> None:
    assert register(tmp_path, SOURCE) == []
    long = [says("a long reply of the model"), says("another long reply"), says("done")]
    bench = Bench(tmp_path, ScriptedAdapter("s", long), settings={"policies": {"my": POLICY}, "policy": "my"})
    session = await bench.open()
    for text in ("one", "two"):
        session.submit(submit(text))
        await bench.idle(session)
    sent = [message.text for message in bench.adapter.requests[-1].messages]
    assert "a lon" in sent
    assert "a long reply of the model" not in sent


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("raise ValueError('no luck')", "the strategy mine failed: ValueError: no luck ("),
        ("raise SystemExit", "the strategy mine failed: SystemExit"),
        ("return 'text'", "returned a str; expected a list of messages or None"),
        ("return [1]", "returned a list; expected a list of messages"),
        ("return list(reversed(messages))", "added a message or reordered the messages"),
        ("return [*messages, messages[0]]", "added a message or reordered the messages"),
        ("return [env.with_text(m, 'x') for m in messages]", "changed a message that must stay unchanged"),
        ("return [m for m in messages if m.id != 'b']", "removed a message that must stay"),
        ("return [m for m in messages if m.id != 'r']", "removed a message that must stay"),
        (
            "import msgspec; return [msgspec.structs.replace(m, tool_calls=()) for m in messages]",
            "changed a message that must stay unchanged",
        ),
    ],
)
def test_a_forbidden_result_fails_with_a_message(tmp_path: Path, body: str, why: str) -> None:
    outcome = run(tmp_path, body)
    assert isinstance(outcome, Failed)
    assert why in outcome.reason


@pytest.mark.parametrize("body", ["return None", "return messages", "return list(messages), {}"])
def test_having_nothing_to_do_is_not_a_failure(tmp_path: Path, body: str) -> None:
    assert isinstance(run(tmp_path, body), Skipped)


def test_changed_and_removed_messages_are_reported_to_the_stage(tmp_path: Path) -> None:
    outcome = run(tmp_path, "return [env.with_text(m, 'x') if m.id == 'd' else m for m in messages if m.id != 'u']")
    assert isinstance(outcome, Work)
    assert [message.id for message in outcome.messages] == ["r", "a", "t", "b", "d"]
    assert outcome.messages[-1].text == "x"
    assert outcome.messages[-1].edited
    assert outcome.messages[-1].tokens == 1
    assert [message.id for message in outcome.cleared] == ["d"]
    assert [message.id for message in outcome.removed] == ["u"]


def test_an_endless_one_is_stopped_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_strategies, "LIMIT_S", 0.05)
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    assert register(tmp_path, f"def shorten(messages, params, env):\n    open({str(gate)!r}).close()\n") == []
    strategy = STRATEGIES["mine"]
    work = Work(before=MESSAGES, messages=MESSAGES)
    first, second = (strategy.run(work, strategy.params(), env()) for _ in range(2))
    assert isinstance(first, Failed)
    assert "took longer than 0.05 seconds" in first.reason
    assert isinstance(second, Failed)
    assert "is not called again" in second.reason
    gate.open("w").close()  # its thread ends


async def test_a_failure_leaves_the_chat_unchanged(tmp_path: Path) -> None:
    assert register(tmp_path, "def shorten(messages, params, env):\n    raise ValueError('no luck')\n") == []
    policy = {**POLICY, "stage": [{**POLICY["stage"][0], "step": [{"use": "mine"}]}]}  # type: ignore[dict-item]
    settings = {"policies": {"my": policy}, "policy": "my"}
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("one"), says("two")]), settings=settings)
    session = await bench.open()
    for text in ("one", "two"):
        session.submit(submit(text))
        await bench.idle(session)
    assert [m.text for m in session.log.view.messages] == ["one", "one", "two", "two"]
    assert len(SAID) == 1
    assert SAID[0].startswith("The chat is unchanged: the strategy mine failed: ValueError: no luck (")
    (failure,) = FAILED
    assert failure.startswith("interactions.chat.opts.strategies.mine: the strategy mine failed: ValueError: no luck (")
    assert ", line " in failure


@pytest.mark.parametrize(
    ("source", "name", "said"),
    [
        ("", "mine", "interactions.chat.opts.strategies.mine: there is no shorten in"),
        ("def shorten(a): pass", "mine", "the function has 1 parameters"),
        ("def shorten(a, b: int, c): pass", "mine", "`b` is not a dataclass"),
        ("x = 1 / 0", "mine", "ZeroDivisionError: division by zero"),
        ("def shorten(a, b, c): pass", "select_window", "a built-in strategy has this name"),
        (
            "from dataclasses import dataclass\n@dataclass\nclass P:\n  a: int\ndef shorten(m, p: P, e): pass",
            "mine",
            "the parameter a has no plain default",
        ),
    ],
)
async def test_an_invalid_registration_is_one_sentence(tmp_path: Path, source: str, name: str, said: str) -> None:
    path = tmp_path / "strategies.py"
    path.write_text(source, encoding="utf-8")
    (mistake,) = await register_in_time({name: f"{path}:shorten"})
    assert said in mistake
    assert mistake.endswith("Policies that use it are left out.")
