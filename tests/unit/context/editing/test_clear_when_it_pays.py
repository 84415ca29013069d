"""`clear_when_it_pays`: edits in batches, if they cost less than leaving the results (lessons 22, 24)."""

from __future__ import annotations

import json
import math
import re

import pytest

from codecompanion.context.editing.clear_when_it_pays import clear_when_it_pays, explain_results
from codecompanion.context.strategy_parameters import ClearWhenItPays, KeepReads
from codecompanion.context.work import CacheState, Env, Measure, Messages, Skipped, Work
from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.messages import Message, ReasoningPart, TextPart, ToolCall, with_changes
from codecompanion.placeholders import TOOL_RESULT_CLEARED

COUNTER = MessageCounter.chars4()
SMALL = {
    "keep_messages": 2, "keep_tokens": 0, "keep_reads": KeepReads(4, 4, 8, 8), "min_tokens": 0, "min_size": 10,
    "min_freed": 10, "min_share": 0.0, "repay": 2.5, "come_share": 1.0, "max_to_come": 100,
    "arguments": ("replaced", "written"),
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


def environment(cache: CacheState, *, manual: bool = False, **more: object) -> Env:
    def measure(some: Messages) -> Measure:
        total = sum(map(COUNTER.message, some))
        return Measure(total, total)

    return Env(
        window=10**6, measure=measure, count=COUNTER.message, count_text=COUNTER.text, cache=cache, manual=manual,
        **{"cycle": 1, **more},  # type: ignore[arg-type]
    )  # fmt: skip


def outcome(messages: Messages, state: CacheState, *, manual: bool = False, **params: object) -> Work | Skipped:
    """Return the outcome of the strategy; `cycle` and `resends` belong to the environment."""
    more = {name: params.pop(name) for name in ("cycle", "resends") if name in params}
    env = environment(state, manual=manual, **more)
    wanted = ClearWhenItPays(**{**SMALL, **params})  # type: ignore[arg-type]
    made = clear_when_it_pays(Work(before=messages, messages=messages), wanted, env)
    assert isinstance(made, Work | Skipped)
    return made


def run(messages: Messages, state: CacheState, *, manual: bool = False, **params: object) -> Messages | str:
    """Return the messages after the strategy, or the reason for doing nothing."""
    made = outcome(messages, state, manual=manual, **params)
    return made.reason if isinstance(made, Skipped) else made.messages


def cleared(messages: Messages | str) -> list[str]:
    assert not isinstance(messages, str), messages
    return [message.id for message in messages if message.text == TOOL_RESULT_CLEARED]


def warm(messages: Messages) -> CacheState:
    return CacheState(warm_tokens=sum(message.tokens for message in messages[:-1]))


COLD = CacheState()


def test_a_cold_cache_has_nothing_to_lose() -> None:
    messages = counted(*step(1), *step(2), *step(3), *step(4))
    assert cleared(run(messages, COLD)) == ["t1", "t2", "t3"]


def test_a_warm_cache_is_not_broken_for_a_small_gain() -> None:
    """Lesson 22: rewriting the tail costs more than the freed tokens save."""
    tail = Message(id="r", role="assistant", content="y" * 40_000, cycle=1)
    messages = counted(*step(1), tail, *step(2))
    assert run(messages, warm(messages)) == "does_not_pay"
    assert cleared(run(messages, COLD)) == ["t1"]


def test_a_warm_cache_is_broken_if_the_gain_pays_for_it() -> None:
    messages = counted(*(message for number in range(1, 30) for message in step(number)))
    done = cleared(run(messages, warm(messages), repay=1.0))
    assert len(done) > 10


def test_the_cut_spares_results_before_an_expensive_stretch() -> None:
    stretch = Message(id="r", role="assistant", content="y" * 60_000, cycle=1)
    many = [message for number in range(2, 30) for message in step(number)]
    messages = counted(*step(1), stretch, *many)
    done = cleared(run(messages, warm(messages), repay=1.0))
    assert "t1" not in done
    assert "t2" in done


@pytest.mark.parametrize("repay", [0.5, 1.0, 2.5, 10.0])
def test_every_edit_would_pay_off_as_required(repay: float) -> None:
    """The gain, recomputed from the outcome with the price model, is at least the required one."""
    messages = counted(*(message for number in range(1, 40) for message in step(number)))
    after = run(messages, warm(messages), repay=repay)
    if isinstance(after, str):
        assert repay > 5
        return
    first = next(index for index, (old, new) in enumerate(zip(messages, after, strict=True)) if old is not new)
    freed = sum(message.tokens for message in messages) - sum(message.tokens for message in after)
    written_again = sum(message.tokens for message in after[first:-1])
    assert freed * 0.1 * 39 >= repay * written_again * 1.15 * 0.99


def test_a_tiny_gain_is_not_worth_an_edit_even_with_a_cold_cache() -> None:
    messages = counted(*step(1), *step(2))
    assert run(messages, COLD, min_freed=100_000) == "does_not_pay"
    assert run(messages, COLD, min_freed=0, min_share=0.9) == "does_not_pay"


def test_a_small_request_is_unchanged() -> None:
    messages = counted(*step(1), *step(2), *step(3))
    assert run(messages, COLD, min_tokens=100_000) == "too_small"


def test_a_manual_edit_or_a_refused_request_is_unconditional() -> None:
    tail = Message(id="r", role="assistant", content="y" * 40_000, cycle=1)
    messages = counted(*step(1), tail, *step(2))
    assert cleared(run(messages, warm(messages), manual=True, min_tokens=100_000)) == ["t1"]


def test_one_long_tool_loop_is_a_single_cycle_and_is_still_edited() -> None:
    messages = counted(*(message for number in range(1, 20) for message in step(number)))
    assert {message.cycle for message in messages} == {1}
    assert cleared(run(messages, COLD))


def test_the_newest_read_of_an_edited_file_stays() -> None:
    """Lesson 24: a later edit quotes it."""
    old = step(1, "read_file", path="a.py")
    new = step(2, "read_file", path="a.py")
    edit = step(3, "edit", text="ok", path="a.py", old_text="x", new_text="y")
    messages = counted(*old, *new, *edit, *step(4), *step(5))
    assert cleared(run(messages, COLD)) == ["t1", "t4"]


def test_an_outdated_read_is_never_the_only_one_of_its_file() -> None:
    """If the cut falls between an older read and the newest, both stay."""
    old, new = step(1, "read_file", path="a.py"), step(2, "read_file", path="a.py")
    stretch = Message(id="r", role="assistant", content="y" * 60_000, cycle=1)
    rest = [message for number in range(3, 30) for message in step(number)]
    messages = counted(*old, stretch, *new, *rest)
    done = cleared(run(messages, warm(messages), repay=1.0))
    assert "t3" in done
    assert not {"t1", "t2"} & set(done)
    assert {"t1", "t2"} <= set(cleared(run(messages, COLD)))


def test_reads_of_a_file_no_longer_in_use_are_cleared() -> None:
    rest = [message for number in range(2, 9) for message in step(number)]
    messages = counted(*step(1, "read_file", path="a.py"), *rest)
    assert "t1" in cleared(run(messages, COLD))
    assert "t1" not in cleared(run(messages, COLD, keep_reads=KeepReads(100)))


def test_a_file_named_by_the_user_stays() -> None:
    rest = [message for number in range(2, 9) for message in step(number)]
    words = Message(id="n", role="user", content="It is about src/a.py.", cycle=1)
    messages = counted(words, *step(1, "read_file", path="src/a.py"), *rest)
    assert "t1" not in cleared(run(messages, COLD, keep_reads=KeepReads(0, 0, 0, 0, named=100)))


def test_pinned_results_and_excluded_tools_stay() -> None:
    pinned = step(1)
    messages = counted(pinned[0], with_changes(pinned[1], pinned=True), *step(2, "memory", command="view"), *step(3),
                       *step(4))  # fmt: skip
    assert cleared(run(messages, COLD, exclude_tools=("memory",))) == ["t3"]


def test_a_second_run_changes_nothing() -> None:
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


def test_a_step_for_a_cold_cache_does_nothing_while_warm_and_vice_versa() -> None:
    messages = counted(*(message for number in range(1, 30) for message in step(number)))
    assert run(messages, warm(messages), cache="cold") == "other_cache"
    assert run(messages, COLD, cache="warm") == "other_cache"
    assert cleared(run(messages, COLD, cache="cold"))
    # Without any cache nothing ever expires: there is no moment at which more may go than otherwise.
    none = CacheState(read_price=1.0, write_price=1.0, lifetime_s=0.0)
    assert run(messages, none, cache="cold") == "other_cache"
    assert cleared(run(messages, none, cache="warm"))


def look_then(*after: Message) -> Messages:
    """Return messages with a read of a file, then the given messages, then eight commands."""
    rest = [message for number in range(5, 13) for message in step(number)]
    return counted(*step(1, "read_file", path="src/a.py"), *after, *rest)


KEEP = KeepReads(unedited=30, unedited_spoken=10, edited=5, edited_spoken=0)
EDIT = step(2, "edit", text="ok", path="src/a.py", old_text="x", new_text="y")
SAID = Message(id="s", role="user", content="Now something else.", cycle=2)
NAMED = Message(id="n", role="assistant", content="Next I look at `src/a.py` again.", cycle=1)


@pytest.mark.parametrize(
    ("after", "stays"),
    [
        ((), True),
        ((SAID,), False),
        (tuple(EDIT), False),
        ((SAID, NAMED), True),
    ],
    ids=["untouched", "the user has written since", "edited since", "the model named it since"],
)
def test_the_lifetime_of_a_read_depends_on_later_events(after: tuple[Message, ...], stays: bool) -> None:
    """An edited file needs its old read least: the new text is in the edit."""
    done = cleared(run(look_then(*after), COLD, keep_reads=KEEP))
    assert ("t1" not in done) is stays


def test_a_recent_read_stays_unless_its_file_was_edited() -> None:
    near = KeepReads(0, 0, 0, 0, near_tokens=100_000)
    assert "t1" not in cleared(run(look_then(), COLD, keep_reads=near))
    assert "t1" in cleared(run(look_then(*EDIT), COLD, keep_reads=near))


def thinking(number: int, cycle: int) -> list[Message]:
    made = step(number)
    parts = (ReasoningPart("h" * 4000, origin="x", encrypted="{}"), TextPart("So."))
    return [with_changes(made[0], content=parts, cycle=cycle), with_changes(made[1], cycle=cycle)]


def reasoning_left(messages: Messages | str) -> list[str]:
    assert not isinstance(messages, str), messages
    return [m.id for m in messages if not isinstance(m.content, str) and isinstance(m.content[0], ReasoningPart)]


def test_reasoning_is_cleared_by_whole_finished_turns() -> None:
    """Lesson 26: a turn loses all of its reasoning or none.

    The running turn and a turn that extends into the tail keep theirs.
    """
    says = [Message(id=f"u{n}", role="user", content="Go on.", cycle=n) for n in (2, 3)]
    messages = counted(*thinking(1, 1), *thinking(2, 1), says[0], *thinking(3, 2), *thinking(4, 2), says[1],
                       *thinking(5, 3))  # fmt: skip
    assert reasoning_left(run(messages, COLD, cycle=3)) == ["a1", "a2", "a3", "a4", "a5"]
    assert reasoning_left(run(messages, COLD, cycle=3, reasoning=True)) == ["a5"]
    assert reasoning_left(run(messages, COLD, cycle=3, reasoning=True, keep_messages=5)) == ["a3", "a4", "a5"]
    bound = (*messages[:1], with_changes(messages[1], pinned=True), *messages[2:])
    assert reasoning_left(run(bound, COLD, cycle=3, reasoning=True)) == ["a1", "a2", "a5"]


def test_reasoning_that_is_not_sent_again_is_kept() -> None:
    says = Message(id="u2", role="user", content="Go on.", cycle=2)
    messages = counted(*thinking(1, 1), says, *step(2))
    assert "a1" in reasoning_left(run(messages, COLD, cycle=2, reasoning=True, resends=lambda part: False))


def test_the_report_gives_the_reason_in_plain_words() -> None:
    messages = look_then()
    why = outcome(messages, COLD).details.why  # type: ignore[union-attr]
    assert why == "nothing was cached any more, so it cost nothing"
    many = counted(*(message for number in range(1, 30) for message in step(number)))
    why = outcome(many, warm(many), repay=1.0).details.why  # type: ignore[union-attr]
    assert re.fullmatch(r"saves \d+\.\d times the cost of re-caching over about 29 requests", why)


def test_each_large_result_can_report_why_it_was_kept_or_cleared() -> None:
    messages = look_then(*step(2, "read_file", path="b.py"), *step(3, "read_file", path="b.py"),
                         *step(4, "memory", command="view"))  # fmt: skip
    after = run(messages, COLD, keep_reads=KEEP)
    assert not isinstance(after, str)
    params = ClearWhenItPays(**{**SMALL, "keep_reads": KEEP})  # type: ignore[arg-type]
    told = explain_results(after, params, environment(COLD))
    assert told["t1"] == f"kept: a.py was last used {len(after) - 2} messages ago"
    assert told["t2"] == "cleared: b.py was read again later"
    assert told["t4"] == "kept: results of memory are never cleared"
    assert told["t5"] == "cleared: old, and not a file read"
    assert told["t12"] == "kept: among the newest messages"
    assert explain_results(after, ClearWhenItPays(cache="warm"), environment(COLD)) == {}


# ---- servers of the user's own: seconds


def local(warm_tokens: int = 0, reads_per_s: float = 0.0) -> CacheState:
    """Return the cache state for the user's own server: cached tokens are free and do not expire."""
    return CacheState(warm_tokens, 0.0, 1.0, math.inf, reads_per_s)


def test_a_server_that_reads_for_nothing_is_edited_only_when_the_window_demands_it() -> None:
    """Clearing saves nothing while the server's cache has the chat, however long the chat is."""
    messages = counted(*(message for number in range(40) for message in step(number)))
    has_all = local(warm(messages).warm_tokens, 100.0)
    assert run(messages, has_all, repay=1.5) == "reads_for_nothing"
    made = outcome(messages, has_all, repay=0.0)
    assert isinstance(made, Work)
    assert made.details.why == "the window is getting full; the rest takes about 13 s to read again"
    assert "read again" not in outcome(messages, local(warm(messages).warm_tokens), repay=0.0).details.why  # type: ignore[union-attr]
    assert run(messages, warm(messages), repay=1.5) != "reads_for_nothing", "a provider bills for each reading"


@pytest.mark.parametrize(("reads_per_s", "done"), [(100.0, True), (1_000.0, False)])
def test_when_it_has_lost_the_chat_seconds_decide(reads_per_s: float, done: bool) -> None:
    """Removing 750 tokens saves 7.5 s at 100 tokens/s, in a chat of any size; at 1,000 tokens/s it does not pay."""
    messages = counted(*step(1), *step(2), *step(3), *step(4))
    made = run(messages, local(0, reads_per_s), min_seconds=2, min_tokens=12_000, cache="cold")
    assert made == "does_not_pay" if not done else cleared(made) == ["t1", "t2", "t3"]


def test_without_a_known_speed_tokens_decide() -> None:
    messages = counted(*step(1), *step(2), *step(3), *step(4))
    assert run(messages, local(), min_seconds=2, min_tokens=12_000) == "too_small"
    assert cleared(run(messages, local(), min_seconds=2)) == ["t1", "t2", "t3"]


def test_seconds_buy_as_much_room_as_they_can() -> None:
    """A small result at the front is not cleared, as everything after it would be read again.

    With a provider, it is.
    """
    says = Message(id="long", role="assistant", content="y" * 20_000, cycle=1)
    messages = counted(*step(1, text="z" * 200), says, *step(2, text="x" * 8_000), *step(3), *step(4))
    tokens = warm(messages).warm_tokens
    assert cleared(run(messages, local(tokens), repay=0.0)) == ["t2", "t3"]
    assert cleared(run(messages, warm(messages), repay=0.0)) == ["t1", "t2", "t3"]
