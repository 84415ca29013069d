"""S3 and S17: old arguments and errors (R-117, R-425)."""

from __future__ import annotations

import json

import pytest

from codecompanion.context.editing.trimming import prune_tool_errors, require_room, strip_tool_args, trim_to_fit
from codecompanion.context.strategy_parameters import OlderThan, PruneToolErrors, RequireRoom, StripToolArgs, TrimToFit
from codecompanion.context.work import Details, Skipped, Work
from codecompanion.model.messages import Message, ReasoningPart, TextPart, ToolCall, has_encrypted, with_changes
from tests.unit.context.builders import assistant, chat, count, env, system, tool, user


def strip(messages, params=None):
    return strip_tool_args(Work(before=messages, messages=messages), params or StripToolArgs(), env(messages, 1000))


def prune(messages):
    return prune_tool_errors(Work(before=messages, messages=messages), PruneToolErrors(), env(messages, 1000))


def calling(size, content="", **call):
    """Return a reply with one call whose arguments have `size` characters, and one with short arguments."""
    large = ToolCall("c", "write_file", '{"t": "' + "x" * (size - 9) + '"}', **call)
    return Message(id="", role="assistant", content=content, tool_calls=(large, ToolCall("d", "ls", '{"a": 1}')))


def chat_with(reply, later=4):
    return chat(user("q"), reply, tool("c", "ok"), tool("d", "ok"), *[user(f"u{i}") for i in range(later - 2)])


@pytest.mark.parametrize(("size", "stripped"), [(200, False), (201, True)])
def test_old_arguments_over_200_characters_become_valid_json(size, stripped):
    """R-117: the comparison is strict and made per call; names and ids stay, and the message is recounted (R-112)."""
    messages = tuple(with_changes(m, tokens=999) for m in chat_with(calling(size)))
    work = strip(messages)
    assert isinstance(work, Skipped) is not stripped
    if stripped:
        calls = work.messages[1].tool_calls
        assert [(c.id, c.name, c.arguments) for c in calls] == [
            ("c", "write_file", '{"_truncated": true}'),
            ("d", "ls", '{"a": 1}'),
        ]
        assert json.loads(calls[0].arguments) == {"_truncated": True}
        assert work.messages[1].tokens == count(work.messages[1])
        assert work.messages[1].edited
        assert [m for i, m in enumerate(work.messages) if i != 1] == [m for i, m in enumerate(messages) if i != 1]
        assert work.details == Details(stripped_arguments=1)
        assert isinstance(strip(work.messages), Skipped)


def test_the_arguments_of_the_newest_four_messages_stay():
    """R-116."""
    assert isinstance(strip(chat_with(calling(400), later=3)), Skipped)


def test_encrypted_reasoning_is_removed_with_the_arguments_or_nothing_is():
    """Lesson 26: in the running turn a signed reply stays complete; an older one loses its encrypted parts, too."""
    sealed = (ReasoningPart("why", origin="anthropic", encrypted="{}"), TextPart("text"))
    running = chat_with(calling(400, sealed))
    params = StripToolArgs(older_than=OlderThan("messages", 1))
    assert {m.cycle for m in running[:2]} == {1}
    in_turn = running[:4]
    assert isinstance(strip(in_turn, params), Skipped)
    work = strip(running, params)
    reply = work.messages[1]
    assert not has_encrypted(reply)
    assert reply.text == "text"
    assert reply.tool_calls[0].arguments == '{"_truncated": true}'


def test_an_encrypted_call_beside_a_stripped_one_loses_its_signature_too():
    """Lesson 26."""
    reply = calling(400)
    sealed = ToolCall("d", "ls", '{"a": 1}', origin="gemini", encrypted='{"signature": "s"}')
    work = strip(chat_with(with_changes(reply, tool_calls=(reply.tool_calls[0], sealed))))
    assert not has_encrypted(work.messages[1])


def test_a_pinned_reply_keeps_its_arguments():
    """K8."""
    assert isinstance(strip(chat_with(with_changes(calling(400), pinned=True))), Skipped)


ERROR = '{"error": "Duplicate call: this was already answered"}'


def test_old_errors_with_a_marker_are_pruned():
    """R-425: other results, errors without a marker and new errors stay."""
    messages = chat(
        user("q"), assistant("", ("a", "t"), ("b", "t"), ("c", "t")),
        tool("a", ERROR, is_error=True), tool("b", '{"error": "no such file: a.py"}', is_error=True), tool("c", ERROR),
        assistant("", ("d", "t")), tool("d", ERROR, is_error=True), assistant("x"), user("y"),
    )  # fmt: skip
    work = prune(messages)
    changed = {i: m.text for i, m in enumerate(work.messages) if m != messages[i]}
    assert changed == {2: '{"error":"pruned"}'}
    assert [m.id for m in work.cleared] == ["m2"]
    assert isinstance(prune(work.messages), Skipped)


def trim(messages, target, protect=4):
    work = Work(before=messages, messages=messages)
    return trim_to_fit(work, TrimToFit(protect=protect), env(messages, 10_000, target=target))


LATE = [user("q"), assistant("", ("z", "t")), tool("z", "r" * 40), assistant("done")]
"""The newest four messages: about 20 tokens."""


def with_summary(*between):
    return chat(system("S" * 40), Message("", "system", "[Summary]", tag="compact_summary"), *between, *LATE)


def test_the_oldest_messages_after_the_summary_are_dropped_until_it_fits():
    """R-133: as few as necessary are dropped, from index 1 upward; system prompt and summary stay."""
    messages = with_summary(*[user(str(i) * 400) for i in range(5)])  # 100 tokens each
    total = sum(map(count, messages))
    work = trim(messages, total - 150)
    assert [m.text[:1] for m in work.messages] == ["S", "[", "2", "3", "4", "q", "", "r", "d"]
    assert work.details == Details(trimmed=2)
    assert [m.id for m in work.removed] == ["m2", "m3"]
    assert trim(messages, total).messages == messages
    assert trim(messages, 0).messages == messages  # no target


def test_the_newest_four_are_never_dropped():
    """R-133 [proposed]: dropping stops there, even if the result is over the target."""
    messages = with_summary(*[user("x" * 400) for _ in range(3)])
    work = trim(messages, 1)
    assert work.messages == (*messages[:2], *messages[5:])


def test_a_call_is_dropped_with_its_results_and_kept_with_a_newest_one():
    """R-132, R-004: pairs are matched over the joined list."""
    call = [assistant("c" * 400, ("a", "t"), ("b", "t")), tool("a", "x" * 400), tool("b", "y" * 400)]
    messages = with_summary(*call, user("u" * 400))
    work = trim(messages, sum(map(count, messages)) - 50)
    assert work.messages == (*messages[:2], *messages[5:])
    straddling = chat(*[user("u" * 400)] * 2, assistant("", ("z", "t")), tool("z", "r"), assistant("1"), user("2"),
                      user("3"))  # fmt: skip
    assert trim(straddling, 1).messages == straddling[2:]


def test_pinned_messages_are_not_dropped():
    """K8."""
    messages = with_summary(user("p" * 400, pinned=True), user("x" * 400))
    assert [m.id for m in trim(messages, 1).removed] == ["m3"]


@pytest.mark.parametrize(("spare", "skipped"), [(0, False), (-1, True)])
def test_no_summary_is_requested_if_the_protected_messages_are_too_large(spare, skipped):
    """R-115, R-133: system prompt, pinned messages, the newest four and their partners count.

    Messages that S15 may drop do not.
    """
    messages = with_summary(user("p" * 400, pinned=True), *[user("x" * 400)] * 3)
    stays = (messages[0], messages[1], messages[2], *messages[-4:])
    work = Work(before=messages, messages=messages[:-1], pending=messages[-1:])
    target = sum(map(count, stays)) + spare
    outcome = require_room(work, RequireRoom(), env(messages, 10_000, target=target))
    assert isinstance(outcome, Skipped) is skipped
    assert require_room(work, RequireRoom(), env(messages, 10_000, target=0)) is work
