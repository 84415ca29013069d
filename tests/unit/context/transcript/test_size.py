"""The size of a long transcript, from the counts of its messages."""

from __future__ import annotations

import pytest

from codecompanion.context.strategy_parameters import Caps, FormatTranscript
from codecompanion.context.transcript import size
from codecompanion.context.transcript.format_transcript import format_transcript
from codecompanion.context.work import Work
from codecompanion.counting.tokens import MessageCounter, estimate_text
from codecompanion.model.messages import ImagePart, Message, TextPart, with_changes
from tests.unit.context.builders import assistant, chat, env, tool, user

CODE = "def load_item(path: str) -> Item:\n    return cache[path] or _read(path, 12_000)  # see src/a.py\n\n"


def logged(*messages):
    """Return the messages with their counts, as logged."""
    counter = MessageCounter()
    return tuple(with_changes(message, tokens=counter.message(message)) for message in chat(*messages))


def written(messages, **params):
    """Return the work after its transcript was written."""
    environment = env(messages, 10_000, count=MessageCounter().message, count_text=estimate_text)
    return format_transcript(
        Work(before=messages, messages=(), removed=messages), FormatTranscript(**params), environment
    )


@pytest.mark.parametrize("style", ["xml", "lines"])
def test_a_size_is_that_of_the_text_and_its_wrapper(monkeypatch, style):
    """The expected size is computed plainly: that of the text, then that of the rest of its entry."""
    monkeypatch.setattr(size, "_LONG_CHARS", 0)
    messages = logged(
        user(CODE * 3), assistant("look", ("c1", "read_file")), tool("c1", CODE), assistant("It is `load_item`."),
        user("a <message> that is escaped"), user("data:image/png;base64," + "A" * 80), user(""),
    )  # fmt: skip
    work = written(messages, style=style)
    wanted = []
    for message, entry in zip(messages, work.transcript, strict=True):
        is_whole = bool(message.text) and not message.tool_calls and message.text in entry
        around = entry.replace(message.text, "") if is_whole else ""
        wanted.append(estimate_text(message.text) + estimate_text(around) if is_whole else 0)
    assert list(work.entry_sizes) == wanted
    assert [bool(known) for known in wanted] == [True, False, True, True, False, False, False]


def test_the_sum_equals_a_count():
    messages = logged(*[user(f"{number} {CODE * (number % 40 + 1)}") for number in range(400)])
    work = written(messages)
    assert all(work.entry_sizes)
    counted = list(map(estimate_text, work.transcript))
    assert max(abs(one - other) for one, other in zip(work.entry_sizes, counted, strict=True)) <= 4
    assert abs(sum(work.entry_sizes) - sum(counted)) < sum(counted) / 500


def test_incomplete_messages_have_no_known_size(monkeypatch):
    """Messages without a count, or with parts, have none either; they are counted."""
    monkeypatch.setattr(size, "_LONG_CHARS", 0)
    cut = logged(tool("c", CODE * 9), user(CODE * 9))
    assert written(cut, caps=Caps(tool=100)).entry_sizes == (0, written(cut).entry_sizes[1])
    assert not any(written(cut, max_entry_chars=200).entry_sizes)
    parts = (TextPart("see"), ImagePart(sha256="0" * 64, mime="image/png"))
    assert written(logged(Message(id="p", role="user", content=parts))).entry_sizes == (0,)
    assert written(chat(user(CODE))).entry_sizes == (0,)
    assert written(logged(user(CODE), user(CODE * 50)), max_chars=900).entry_sizes == ()


def test_a_short_transcript_is_counted():
    assert written(logged(user(CODE))).entry_sizes == ()
