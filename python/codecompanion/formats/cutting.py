"""Shortens text to its beginning, both ends, one line or whole words, with a mark at the cut.

Sizes are maxima and include the mark, except for a note with the number of missing characters (`cut_with_note`). A
text that is short enough is returned unchanged; the one-line forms put it on one line.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from codecompanion.formats.plural import counted
from codecompanion.formats.regex import regex

ELLIPSIS = "…"
TRUNCATED = "\n...[truncated]...\n"
# Maximum characters of a token: a string longer than limit × this exceeds the limit without being counted.
MAX_TOKEN_LENGTH = 16
PREVIEW_LINES, PREVIEW_CHARS = 24, 4000
_GAP = " […] "
_MIN_SQUEEZED = 8
"""Minimum cells for showing both ends: in fewer, the beginning is more useful."""
_MIN_ENDS = 32
"""Minimum length for a head and a tail: shorter ones are useless."""
_READ_CHARS = 100_000
_OPENING = regex(r"(?m)^(?:([^\n]{1,400}:\d+-\d+)\n)?(`{3,20})[^\n`]{0,80}(?:\n|\Z)")
"""Matches an opening fence, also below the file and lines that `:'<,'>CodeCompanionChat` writes above it."""
_HEAD_ALONE = 600
"""Below this many characters only the head is kept: two ends would be too short to read."""


def cut(text: str, max_chars: int) -> str:
    """Return the text, cut if necessary to `max_chars` characters including a final `…`."""
    return text if len(text) <= max_chars else text[: max_chars - 1] + ELLIPSIS


def cut_mark(is_cut: bool, of: int) -> str:
    """Return the suffix for the line numbers of a truncated piece of code; `of`: its original number of lines, or 0."""
    return (f" of {of}" if of else " (cut)") if is_cut else ""


def cut_line(text: str, max_chars: int) -> str:
    """Return the beginning of the text on one line, without a blank before the `…`."""
    line = " ".join(text.split())
    return line if len(line) <= max_chars else line[: max_chars - 1].rstrip() + ELLIPSIS


def cut_line_bytes(text: str, max_bytes: int) -> str:
    """Return the beginning of the text on one line, in at most `max_bytes` of UTF-8, without splitting a character."""
    data = " ".join(text.split()).encode("utf-8", "replace")
    if len(data) <= max_bytes:
        return data.decode("utf-8")
    room = max(0, max_bytes - len(ELLIPSIS.encode()))
    return data[:room].decode("utf-8", "ignore").rstrip() + (ELLIPSIS if max_bytes >= len(ELLIPSIS.encode()) else "")


def cut_line_middle(text: str, max_chars: int) -> str:
    """Return the text on one line, without its middle if it is too long.

    The cuts are between words if that costs less than half of an end, because half a name would look like a complete
    one.
    """
    text = " ".join(text.split())
    if len(text) <= max_chars:
        return text
    if max_chars <= 12:
        return text[:max_chars]
    tail = max_chars // 3
    head, end = text[: max_chars - tail - 3], text[-tail:]
    if text[len(head)] != " " and head.rfind(" ") > len(head) // 2:
        head = head[: head.rfind(" ")]
    if text[-tail - 1] != " " and 0 <= end.find(" ") < len(end) // 2:
        end = end[end.find(" ") + 1 :]
    return f"{head} … {end}"


def cells(text: str) -> int:
    """Return the width of the text in screen cells."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def cut_cells(text: str, max_cells: int) -> str:
    """Return the beginning of the text in at most `max_cells` screen cells, without a blank before the `…`."""
    if cells(text) <= max_cells:
        return text
    kept = ""
    for character in text:
        if cells(kept + character) > max_cells - 1:
            break
        kept += character
    return kept.rstrip() + ELLIPSIS


def cut_cells_at_word(text: str, max_cells: int) -> str:
    """Return the beginning of the text in at most `max_cells`, in whole words unless that costs more than half."""
    short = cut_cells(text, max_cells)
    if short == text or text[len(short) - 1 :][:1].isspace():
        return short
    head = short.rpartition(" ")[0].rstrip(" ,;:")
    return head + ELLIPSIS if 2 * cells(head) >= max_cells else short


def squeeze_cells(text: str, max_cells: int) -> str:
    """Return the text in at most `max_cells`, without its middle: both ends of a name say more than its first half."""
    if cells(text) <= max_cells or max_cells < _MIN_SQUEEZED:
        return cut_cells(text, max_cells)
    end = ""
    for character in reversed(text):
        if cells(character + end) > (max_cells - 1) // 3:
            break
        end = character + end
    return cut_cells(text, max_cells - cells(end)) + end


def cut_with_note(text: str, max_chars: int, kept_chars: int, note: str) -> str:
    """Cut a string of more than `max_chars` characters to its first `kept_chars`, followed by the note."""
    return text if len(text) <= max_chars else text[:kept_chars] + note


def cut_middle(text: str, max_chars: int) -> str:
    """Return 70 % head and 30 % tail, with the number of missing characters between them; uncut if the limit is 0."""
    if max_chars <= 0 or len(text) <= max_chars:
        return text
    note = f"\n…[{len(text) - max_chars} characters left out]…\n"
    room = max(0, max_chars - len(note))
    head = room * 7 // 10
    return text[:head] + note + text[len(text) - (room - head) :] if room else text[:max_chars]


def cut_middle_or_tail(text: str, max_chars: int) -> str:
    """Return 70 % head, a mark and the tail, or only the head below 600 characters (R-437); uncut if the limit is 0."""
    if max_chars <= 0 or len(text) <= max_chars:
        return text
    if max_chars < _HEAD_ALONE:
        return text[: max(0, max_chars - 3)] + "..."
    head = max_chars * 7 // 10
    tail = max_chars - head - 20
    return text[:head] + TRUNCATED + text[len(text) - tail :]


def cut_to_tokens(text: str, max_tokens: int, count: Callable[[str], int]) -> str:
    """Return the head and tail of the text with a mark between them, or "" if the result would be too short.

    Words stay whole where that costs little, because half a name would look like a complete one.
    """
    if len(text) <= max_tokens * MAX_TOKEN_LENGTH and count(text) <= max_tokens:
        return text
    size = min(len(text), max_tokens * MAX_TOKEN_LENGTH)
    while size > 8:
        size = int(size * 0.8)
        head = size * 2 // 3
        short = _whole_words(text, head, len(text) - (size - head))
        if count(short) <= max_tokens:
            return short if len(short) >= _MIN_ENDS else ""
    return ""


def _whole_words(text: str, head: int, tail: int) -> str:
    """Return the text before `head`, the mark, and the text after `tail`, without partial words at the gap."""
    before = re.sub(r"(?<=\s)\S{1,40}\Z", "", text[:head]) if text[head : head + 1].strip() else text[:head]
    after = re.sub(r"\A\S{1,40}(?=\s)", "", text[tail:]) if text[tail - 1].strip() else text[tail:]
    return before.rstrip() + _GAP + after.lstrip()


def cut_for_preview(text: str) -> str:
    """Return the buffer's preview of a result: its head and tail, limited in lines and characters (lesson 47)."""
    if len(text) > PREVIEW_CHARS:
        half = PREVIEW_CHARS // 2
        text = f"{text[:half]}\n… {len(text) - PREVIEW_CHARS:,} characters not shown …\n{text[-half:]}"
    lines = text.split("\n")
    if len(lines) > PREVIEW_LINES:
        head, tail = PREVIEW_LINES * 2 // 3, PREVIEW_LINES // 3
        lines = [*lines[:head], f"… {counted(len(lines) - head - tail, 'line')} not shown …", *lines[-tail:]]
    return "\n".join(lines)


def without_code(text: str) -> str:
    """Return the text without fenced code; if there is nothing else, return the code without its fences."""
    if "```" not in text:
        return text
    text = text[:_READ_CHARS]
    words, code, at = "", "", 0
    while found := _OPENING.search(text, at):
        words += text[at : found.start()]
        begin, fence = found.end(), f"\n{found[2]}"
        end = text.find(f"{fence}\n", begin - 1)
        if end < 0:
            end = len(text) - len(fence) if text.endswith(fence) else len(text)
        code += f"{found[1] or ''}\n{text[begin:end]}\n"
        at = min(len(text), end + len(fence))
    words += text[at:]
    return words if words.strip() else code
