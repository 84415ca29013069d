"""The user's edits of a proposal before accepting it."""

from __future__ import annotations

from pathlib import Path

import pytest

from codecompanion.errors import ToolError
from codecompanion.formats.text_files import TextFile, decode, encode
from codecompanion.tools.file_changes.proposal import MAX_SHOWN_CHARS, Proposal, as_accepted, question, shown
from codecompanion.tools.tool import Accepted


def proposal(before: bytes | None, after: bytes | None) -> Proposal:
    """Return a proposal of these bytes."""
    files = [None if content is None else decode(content) for content in (before, after)]
    return Proposal(path=Path("/w/a"), name="a", before=files[0], after=files[1])


def accepted(proposed: Proposal, text: str) -> Accepted:
    """Return the answer of a user who changed the proposal to `text`."""
    return Accepted(shown(proposed.before), shown(proposed.after), text)


@pytest.mark.parametrize("text", ["one\n2\n", "one\n2"])
def test_an_unedited_proposal_has_no_note(text: str) -> None:
    proposed = proposal(b"one\ntwo\n", b"one\n2\n")
    assert as_accepted(proposed, accepted(proposed, text)) == (proposed, "")
    assert as_accepted(proposed, None) == (proposed, "")


def test_unchanged_lines_keep_their_bytes_and_line_ends() -> None:
    before = b"a\xff gr\xc3\xbcn \xc3\xa9\r\nmixed\nc\r\nend\r\n"
    proposed = proposal(before, before.replace(b"c\r", b"C\r"))
    text = shown(proposed.after).replace("C\n", "see\nsaw\n")
    written, note = as_accepted(proposed, accepted(proposed, text))
    assert written.after is not None
    assert encode(written.after) == b"a\xff gr\xc3\xbcn \xc3\xa9\r\nmixed\nsee\r\nsaw\r\nend\r\n"
    assert "-C\n+see\n+saw\n" in note


@pytest.mark.parametrize(("text", "expected"), [("x\ny", b"x\r\ny"), ("x\ny\n", b"x\r\ny\r\n"), ("", b"")])
def test_the_end_of_the_file_is_the_users_version(text: str, expected: bytes) -> None:
    proposed = proposal(b"1\r\n2\r\n", b"1\r\n3\r\n")
    written, _ = as_accepted(proposed, accepted(proposed, text))
    assert written.after is not None
    assert encode(written.after) == expected


def test_a_proposal_with_nothing_accepted_changes_nothing_and_reports_it() -> None:
    proposed = proposal(b"one\n", b"two\n")
    written, note = as_accepted(proposed, accepted(proposed, "one\n"))
    assert written.after == written.before
    assert "removed everything" in note


def test_an_edited_proposal_for_a_file_changed_since_is_refused() -> None:
    proposed = proposal(b"new\n", b"two\n")
    with pytest.raises(ToolError, match="changed while the user reviewed"):
        as_accepted(proposed, Accepted("one\n", "two\n", "three\n"))


def test_texts_too_long_to_compare_in_the_editor_are_not_sent() -> None:
    long = TextFile("x" * MAX_SHOWN_CHARS)
    asked = question(Proposal(path=Path("/w/a"), name="a", before=long, after=TextFile("y")), key="k", title="t")
    assert (asked.path, asked.before, asked.after) == ("/w/a", "", "")
    assert "+y" in asked.body
