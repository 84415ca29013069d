"""File lines shown by messages: read back exactly, line by line, after any attachments, updates and mentions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codecompanion.model.live_files import GONE
from codecompanion.model.mentioned import Mentioned, ShownLines
from codecompanion.model.messages import EDITOR_TAG, AttachedFile, Message
from codecompanion.retrieval.shown_lines import seen_in, shows_lines
from codecompanion.session.attachments.attached import text_attachment
from codecompanion.session.attachments.update_text import Now, absence, difference, too_large, whole_text

LINES = st.lists(st.text(alphabet="ab`+- @", max_size=6), max_size=12)


def attached(lines: list[str], name: str = "m") -> Message:
    text = "\n".join(lines) + "\n"
    return text_attachment("file", "a.py", text, name, AttachedFile(sha256="x", live=True))


@given(LINES, st.lists(st.tuples(LINES, st.booleans()), max_size=4))
def test_a_file_is_known_after_any_updates(first: list[str], later: list[tuple[list[str], bool]]) -> None:
    """Only lines of the file are ever read back; a complete text is always known."""
    messages, known = [attached(first)], first
    for number, (lines, is_diff) in enumerate(later):
        before, after = ("\n".join(one) + "\n" for one in (known, lines))
        make = difference("a.py", before, Now("x", after), f"u{number}")
        messages.append(make if is_diff else whole_text("a.py", Now("x", after), f"u{number}"))
        known = lines
        above = seen_in(messages)
        shown = above.lines.get("a.py", {})
        assert all(known[at - 1] == line for at, line in shown.items() if at <= len(known))
        if not is_diff and any(known):
            assert above.has_all("a.py", known)
            assert above.ids_of("a.py", 1, 1) == {f"u{number}"}
        assert not above.has_all("a.py", [*known, "one more"])


def test_a_diff_continues_from_the_attachment_and_both_are_needed() -> None:
    first = [f"line {n}" for n in range(1, 31)]
    now = [*first[:9], "new", *first[9:]]
    text, after = ("\n".join(lines) + "\n" for lines in (first, now))
    above = seen_in([attached(first), difference("a.py", text, Now("x", after), "u")])
    assert above.has_all("a.py", now)
    assert above.ids_of("a.py", 1, 31) == {"m", "u"}
    assert above.ids_of("a.py", 20, 31) == {"m"}, "what stands far from the change needs only the attachment"
    assert above.has("a.py", 25, now[24:28])
    assert not above.has("a.py", 25, first[24:28]), "their numbers are not those of the file any more"


def test_a_deleted_or_oversized_file_is_not_known() -> None:
    for message in (absence("a.py", Now(GONE), "u"), too_large("a.py", "u")):
        above = seen_in([attached(["x"]), message])
        assert not above.has_all("a.py", ["x"]) or not shows_lines(message)


def test_a_mentioned_text_is_read_by_its_fences() -> None:
    """Nothing is read from a text without lines, such as diagnostics; the text after it is."""
    content = "`#{x}`: diagnostics of `a.py`:\n```\n1: oh\n```\n`a.py`, lines 3-4:\n````py\nc\n```\n````"
    shows = (ShownLines(), ShownLines("a.py", 3))
    message = Message(id="m", role="user", tag=EDITOR_TAG, content=content, mentioned=Mentioned("#{x}", shows=shows))
    above = seen_in([message])
    assert above.lines == {"a.py": {3: "c", 4: "```"}}
    assert above.has("a.py", 3, ["c"])
    assert not above.has_all("a.py", ["c", "```"])
