"""Long results: head, tail and how to read the rest (lesson 47)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.tools.limit import MIN_LIMIT_CHARS, shorten

_SHA = "ab" * 32
_NOTE = re.compile(
    r"\[… ([\d,]+) of ([\d,]+) characters are omitted here: lines ([\d,]+) to ([\d,]+) of ([\d,]+)\..*…\]"
)


def _parts(shortened: str) -> tuple[str, re.Match[str], str]:
    match = _NOTE.search(shortened)
    assert match, shortened
    return shortened[: match.start()], match, shortened[match.end() + 1 :]


def _figure(text: str) -> int:
    return int(text.replace(",", ""))


_texts = st.one_of(
    st.lists(st.text(alphabet="ab é中\t", max_size=120), min_size=20, max_size=200).map("\n".join),
    st.integers(700, 5000).map(lambda size: "x" * size),
    st.tuples(st.integers(0, 3000), st.integers(0, 3000)).map(lambda sizes: "a" * sizes[0] + "\n" + "b" * sizes[1]),
    st.integers(300, 3000).map(lambda size: "\n" * size),
)


@given(_texts, st.integers(MIN_LIMIT_CHARS, 3000))
def test_a_shortened_text_is_the_head_the_note_and_the_tail_within_the_limit(text: str, limit: int) -> None:
    shortened = shorten(text, limit, _SHA)
    if len(text) <= limit:
        assert shortened == text
        return
    assert len(shortened) <= limit
    head, note, tail = _parts(shortened)
    assert text.startswith(head) or (head.endswith("\n") and text.startswith(head[:-1]))
    assert text.endswith(tail)
    left_out = len(text) - len(head) - len(tail)
    assert _figure(note[1]) in (left_out, left_out + 1), "one more when the head's last line break is the note's own"
    assert _figure(note[2]) == len(text)
    assert len(head) + len(tail) > (limit - 500) * 0.45


@given(_texts, st.integers(MIN_LIMIT_CHARS, 3000))
def test_the_lines_named_in_the_note_contain_everything_omitted(text: str, limit: int) -> None:
    """Head + named lines + tail together are the whole text: nothing becomes unreachable."""
    shortened = shorten(text, limit, _SHA)
    if shortened == text:
        return
    head, note, tail = _parts(shortened)
    lines = text.split("\n")
    first, last = _figure(note[3]), _figure(note[4])
    before = "\n".join(lines[: first - 1])
    after = "\n".join(lines[last:])
    assert len(before) <= len(head)
    assert len(after) <= len(tail)
    assert 1 <= first <= last <= len(lines)


def test_truncation_is_at_line_boundaries() -> None:
    text = "\n".join(f"line {number:05}" for number in range(1, 2001)) + "\n"
    head, note, tail = _parts(shorten(text, 2000, _SHA))
    assert re.fullmatch(r"(line \d{5}\n)+", head)
    assert re.fullmatch(r"(line \d{5}\n)+", tail)
    assert head.count("\n") + 1 == _figure(note[3])
    assert 2000 - tail.count("\n") == _figure(note[4])
    assert f'path "stored:{_SHA}", start_line {_figure(note[3])}, end_line {_figure(note[4])}, in' in note[0]
    assert note[5] == "2,000"


def test_a_single_line_of_five_megabytes_names_the_column_to_continue_from() -> None:
    text = "".join(chr(97 + number % 26) for number in range(5_000_000))
    shortened = shorten(text, 40_000, _SHA)
    head, note, tail = _parts(shortened)
    assert len(shortened) <= 40_000
    assert len(head) + len(tail) > 39_000
    assert f"start_line 1, end_line 1, start_column {len(head)}, in parts" in note[0]


def test_a_result_is_always_truncated_to_the_same_text() -> None:
    """A change would break the prompt cache (lesson 22)."""
    text = "word " * 10_000
    assert shorten(text, 1000, _SHA) == shorten(text, 1000, _SHA)


def test_a_limit_too_small_for_the_note_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least 600"):
        shorten("x" * 1000, 599, _SHA)
