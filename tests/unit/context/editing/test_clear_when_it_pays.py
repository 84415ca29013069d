"""`clear_when_it_pays`: edits in batches, when they are cheaper than leaving things (lessons 22, 24)."""

from __future__ import annotations

import json

import pytest

from codecompanion.context.editing.clear_when_it_pays import ClearWhenItPays, clear_when_it_pays
from codecompanion.context.work import CacheState, Env, Measure, Messages, Skipped, Work
from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.messages import Message, ToolCall, with_changes
from codecompanion.placeholders import TOOL_RESULT_CLEARED

COUNTER = MessageCounter.chars4()
SMALL = {
    "keep_messages": 2, "keep_tokens": 0, "read_within": 4, "touched_within": 8, "min_tokens": 0, "min_size": 10,
    "min_freed": 10, "min_share": 0.0,
}  # fmt: skip


def step(number: int, name: str = "run_command", text: str = "", **arguments: str) -> list[Message]:
    call = ToolCall(f"c{number}", name, json.dumps(arguments or {"command": f"make {number}"}))
    return [
        Message(id=f"a{number}", role="assistant", tool_calls=(call,), cycle=1),
        Message(id=f"t{number}", role="tool", tool_call_id=f"c{number}", content=text or "x" * 1000, cycle=1),
    ]


def counted(*messages: Message) -> Messages:
    first = Message(id="u", role="user", content="Make it work.", cycle=1)
    return tuple(with_changes(message, tokens=COUNTER.message(message)) for message in (first, *messages))


def run(messages: Messages, cache: CacheState, *, manual: bool = False, **params: object) -> Messages | str:
    """Return the messages after the strategy, or why it did nothing."""

    def measure(some: Messages) -> Measure:
        total = sum(map(COUNTER.message, some))
        return Measure(total, total)

    env = Env(
        window=10**6,
        measure=measure,
        count=COUNTER.message,
        count_text=COUNTER.text,
        cycle=1,
        cache=cache,
        manual=manual,
    )
    outcome = clear_when_it_pays(
        Work(before=messages, messages=messages),
        ClearWhenItPays(**{**SMALL, **params}),
        env,  # type: ignore[arg-type]
    )
    assert isinstance(outcome, Work | Skipped)
    return outcome.reason if isinstance(outcome, Skipped) else outcome.messages


def cleared(messages: Messages | str) -> list[str]:
    assert not isinstance(messages, str), messages
    return [message.id for message in messages if message.text == TOOL_RESULT_CLEARED]


def warm(messages: Messages) -> CacheState:
    return CacheState(warm_tokens=sum(message.tokens for message in messages[:-1]))


COLD = CacheState()


def test_a_cold_cache_has_nothing_to_lose() -> None:
    messages = counted(*step(1), *step(2), *step(3), *step(4))
    assert cleared(run(messages, COLD)) == ["t1", "t2", "t3"]


def test_a_warm_cache_is_not_broken_for_little() -> None:
    """Lesson 22: the tail that would be written again is worth more than what is freed."""
    tail = Message(id="r", role="assistant", content="y" * 40_000, cycle=1)
    messages = counted(*step(1), tail, *step(2))
    assert run(messages, warm(messages)) == "does_not_pay"
    assert cleared(run(messages, COLD)) == ["t1"]


def test_a_warm_cache_is_broken_when_the_gain_pays_for_it() -> None:
    messages = counted(*(message for number in range(1, 30) for message in step(number)))
    done = cleared(run(messages, warm(messages), repay=1.0))
    assert len(done) > 10


def test_the_cut_spares_what_lies_in_front_of_an_expensive_stretch() -> None:
    stretch = Message(id="r", role="assistant", content="y" * 60_000, cycle=1)
    many = [message for number in range(2, 30) for message in step(number)]
    messages = counted(*step(1), stretch, *many)
    done = cleared(run(messages, warm(messages), repay=1.0))
    assert "t1" not in done
    assert "t2" in done


@pytest.mark.parametrize("repay", [0.5, 1.0, 2.5, 10.0])
def test_what_is_done_would_pay_as_often_as_it_must(repay: float) -> None:
    """The price model, worked out again from what came out."""
    messages = counted(*(message for number in range(1, 40) for message in step(number)))
    after = run(messages, warm(messages), repay=repay)
    if isinstance(after, str):
        assert repay > 5
        return
    first = next(index for index, (old, new) in enumerate(zip(messages, after, strict=True)) if old is not new)
    freed = sum(message.tokens for message in messages) - sum(message.tokens for message in after)
    written_again = sum(message.tokens for message in after[first:-1])
    assert freed * 0.1 * 39 >= repay * written_again * 1.15 * 0.99


def test_little_is_not_worth_an_edit_even_when_cold() -> None:
    messages = counted(*step(1), *step(2))
    assert run(messages, COLD, min_freed=100_000) == "does_not_pay"
    assert run(messages, COLD, min_freed=0, min_share=0.9) == "does_not_pay"


def test_a_small_request_is_left_alone() -> None:
    messages = counted(*step(1), *step(2), *step(3))
    assert run(messages, COLD, min_tokens=100_000) == "too_small"


def test_when_the_user_asks_or_a_request_was_refused_nothing_is_weighed() -> None:
    tail = Message(id="r", role="assistant", content="y" * 40_000, cycle=1)
    messages = counted(*step(1), tail, *step(2))
    assert cleared(run(messages, warm(messages), manual=True, min_tokens=100_000)) == ["t1"]


def test_one_long_run_of_tools_is_a_single_cycle_and_is_edited_all_the_same() -> None:
    messages = counted(*(message for number in range(1, 20) for message in step(number)))
    assert {message.cycle for message in messages} == {1}
    assert cleared(run(messages, COLD))


def test_the_newest_look_at_an_edited_file_stays() -> None:
    """Lesson 24: a later edit quotes it."""
    old = step(1, "read_file", path="a.py")
    new = step(2, "read_file", path="a.py")
    edit = step(3, "edit", text="ok", path="a.py", old_text="x", new_text="y")
    messages = counted(*old, *new, *edit, *step(4), *step(5))
    assert cleared(run(messages, COLD)) == ["t1", "t4"]


def test_an_outdated_look_at_a_file_is_never_the_only_one() -> None:
    """The cut may lie between an older look and the newest: then the newest stays, too."""
    old, new = step(1, "read_file", path="a.py"), step(2, "read_file", path="a.py")
    stretch = Message(id="r", role="assistant", content="y" * 60_000, cycle=1)
    rest = [message for number in range(3, 30) for message in step(number)]
    messages = counted(*old, stretch, *new, *rest)
    done = cleared(run(messages, warm(messages), repay=1.0))
    assert "t3" in done
    assert not {"t1", "t2"} & set(done)
    assert {"t1", "t2"} <= set(cleared(run(messages, COLD)))


def test_a_file_nobody_touches_any_more_goes() -> None:
    rest = [message for number in range(2, 9) for message in step(number)]
    messages = counted(*step(1, "read_file", path="a.py"), *rest)
    assert "t1" in cleared(run(messages, COLD))
    assert "t1" not in cleared(run(messages, COLD, read_within=100))


def test_a_file_the_user_named_stays() -> None:
    rest = [message for number in range(2, 9) for message in step(number)]
    words = Message(id="n", role="user", content="It is about src/a.py.", cycle=1)
    messages = counted(words, *step(1, "read_file", path="src/a.py"), *rest)
    assert "t1" not in cleared(run(messages, COLD, touched_within=100))


def test_pinned_results_and_excluded_tools_stay() -> None:
    pinned = step(1)
    messages = counted(pinned[0], with_changes(pinned[1], pinned=True), *step(2, "memory", command="view"), *step(3),
                       *step(4))  # fmt: skip
    assert cleared(run(messages, COLD, exclude_tools=("memory",))) == ["t3"]


def test_running_it_again_changes_nothing() -> None:
    messages = counted(*step(1), *step(2), *step(3), *step(4))
    after = run(messages, COLD)
    assert not isinstance(after, str)
    assert run(after, COLD) == "nothing_to_clear"


def test_the_texts_of_old_edits_are_shortened_and_stay_valid_json() -> None:
    edit = step(1, "edit", text="ok", path="a.py", old_text="x" * 3000, new_text="y" * 3000)
    shown = step(2, "read_file", path="a.py")
    messages = counted(*edit, *shown, *step(3))
    after = run(messages, COLD)
    assert not isinstance(after, str)
    arguments = json.loads(after[1].tool_calls[0].arguments)
    assert arguments == {"path": "a.py", "old_text": "[cleared to save context]",
                         "new_text": "[cleared to save context]"}  # fmt: skip
    assert after[1].edited
    assert after[1].tokens == COUNTER.message(after[1])
