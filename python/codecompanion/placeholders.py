"""Defines every text that replaces removed content, exactly as the documents print it (R-513, R-523).

Placeholders are constant for the content they replace: if they contained anything that changes (counters, dates), every
request would miss the provider's prompt cache (lesson 22).
"""

from __future__ import annotations

from codecompanion.formats.plural import counted
from codecompanion.formats.regex import regex
from codecompanion.model.cycles import turn_name
from codecompanion.model.mentioned import Mentioned
from codecompanion.model.messages import GATHERED_TAG, Message, with_changes

TOOL_RESULT_CLEARED = (
    "<important>Tool result cleared to save context. Re-run the tool if you need this output</important>"
)
TOOL_RESULT_TRUNCATED = "[Tool result truncated — originally {chars} chars]"
"""Replaces the middle of a large tool result (R-117). `{chars}` is its original length."""
OLDER_OUTPUT_PRUNED = "[older retained {kind} from {tool} {turn} {call} pruned for prompt budget]"
"""Replaces an old tool result (R-339). `{kind}` is `output` or `error`."""
ARGUMENT_CLEARED = "[cleared to save context]"
ARGUMENTS_TRUNCATED = '{"_truncated": true}'
"""Replaces the arguments of a tool call (R-117): valid JSON, because providers refuse a call with invalid arguments."""
CONTENT_TRUNCATED = "\n\n[... content truncated due to length ...]"
"""Ends a result that was too large, after its head (R-413)."""
RESULT_CUT = (
    "\n\n[... {chars:,} characters left out: the result is larger than the rest of the context window."
    " Ask for a smaller part, or recall the whole from the log ...]\n\n"
)
"""Separates head and tail of a result that did not fit (R-524). `{chars}` is the number of missing characters."""
ERROR_PRUNED = '{"error":"pruned"}'
"""Replaces the error of a tool call (R-425)."""
FILE_CLEARED = (
    "<important>File content for `{path}` cleared during compaction. Re-read the file if you need it.</important>"
)
BUFFER_CLEARED = (
    "<important>Buffer content for `{path}` cleared during compaction."
    " Request the buffer from the user if you need it.</important>"
)
IMAGE_CLEARED = (
    "<important>Image content cleared during compaction. Request the image from the user if you need it.</important>"
)
IMAGE_WITH_PATH_CLEARED = (
    "<important>Image content for `{path}` cleared during compaction."
    " Request the image from the user if you need it.</important>"
)
GATHERED_CLEARED = (
    "<important>Code gathered for the next message cleared to save context{named}."
    " Read the files again if you need them.</important>"
)
"""Replaces code gathered for a message. `{named}` lists the files with their lines, best first."""
MENTIONED_CLEARED = (
    "<important>`{written}` of an earlier message cleared to save context{named}."
    " Read the files again, or ask the user, if you need it.</important>"
)
"""Replaces editor context. `{written}` is the mention as written in the message, such as `#{diff:staged}`; `{named}`
lists the files it showed.
"""
_MAX_NAMED = 20
TEMPLATES = {
    "tool_result_cleared": TOOL_RESULT_CLEARED,
    "tool_result_truncated": TOOL_RESULT_TRUNCATED,
    "older_output_pruned": OLDER_OUTPUT_PRUNED,
    "file_cleared": FILE_CLEARED,
    "buffer_cleared": BUFFER_CLEARED,
    "image_cleared": IMAGE_CLEARED,
}

SUMMARY_PREFIX = "Below is a summary of a previous conversation:\n\n"
REQUEST_HEADING = "The request that was being worked on, in the user's own words:"
_OPENS = regex(r"<([A-Za-z][\w-]*)>\n")
_OPEN_REQUEST = f"\n\n{REQUEST_HEADING}\n\n"
QUOTES_HEADING = "**User messages** (copied from the log, in the user's own words)"
UNVERIFIED = "(unverified)"
"""Follows a name in a summary that does not occur in the history."""
OMITTED_MESSAGE = "[Large {role} message (~{thousands}K tokens) omitted from summary]"
"""Replaces a large message that was left out of a summary; these notes are at the end of the summary (R-125)."""
_NOTES = regex(r"(?:\A|\n\n)((?:\[Large \w+ message \(~\d+K tokens\) omitted from summary\]\n?)+)\Z")
NO_ROOM = "(left out: no room)"
"""Replaces the content of a summary section that did not fit; an empty section contains `None`."""
NO_ROOM_FOR = "(no room for sections {numbers})"
"""Precedes a summary too short for all of its headings."""
RAW_HEADING = "Dropped context (raw, truncated):"
"""Heading of the shortened original messages if no model wrote a summary (R-434)."""
LEDGER_HEADING = "**Ledger** (read from the log, not written by a model)"
CANCELLED_BY_USER = "Cancelled by the user before it finished."
NOT_ANSWERED = (
    "Not answered: Neovim or its Python process was closed while this call waited for the user's approval."
    " It did not run. Call the tool again if it is still needed."
)
INTERRUPTED = "Interrupted before it finished: there is no result. Call the tool again if it is still needed."


def split_notes(summary: str) -> tuple[str, str]:
    """Split a summary into its text and its final notes on omitted messages (R-125)."""
    notes = _NOTES.search(summary)
    return (summary[: notes.start()], notes.group(1).rstrip("\n")) if notes else (summary, "")


def quote_request(text: str) -> str:
    """Return the end of a summary that quotes the request of an interrupted loop (R-551)."""
    return _OPEN_REQUEST + text


def quoted_request(summary: str) -> str:
    """Return the user's words quoted at the end of a summary, even inside its enclosing element; "" if none."""
    words = summary.rpartition(_OPEN_REQUEST)[2] if _OPEN_REQUEST in summary else ""
    element = _OPENS.match(summary)
    return words.removesuffix(f"\n</{element.group(1)}>") if words and element else words


def fill_tool_template(template: str, result: Message, tool: str) -> str:
    """Return the placeholder of a tool result (R-117, R-339); white space in names becomes single spaces.

    Fields: `{chars}` of the original, `{tool}`, `{turn}` (`turn-N`, R-341), `{call}` (its id), `{kind}`.
    """
    return template.format(
        chars=original_chars(result),
        tool=" ".join(tool.split()),
        turn=turn_name(result.cycle),
        call=" ".join((result.tool_call_id or "").split()),
        kind="error" if result.is_error else "output",
    )


def gathered_names(message: Message) -> str:
    """Return the files of a gathered message with their lines, best first: `a.py:1-40, 60-75; b.py`; "" if unknown.

    Excludes files that were only named because their code is already in an earlier message.
    """
    lines: dict[str, list[str]] = {}
    for piece in message.gathered:
        if not piece.path or piece.is_above:  # a map, the architecture: not a file
            continue
        found = lines.setdefault(piece.path, [])
        if piece.start and (span := f"{piece.start}-{piece.end}") not in found:
            found.append(span)
    named = [f"{path}:{', '.join(found)}" if found else path for path, found in lines.items()]
    rest = len(named) - _MAX_NAMED
    return "; ".join(named[:_MAX_NAMED]) + (f"; and {counted(rest, 'more file')}" if rest > 0 else "")


def mentioned_cleared(mentioned: Mentioned) -> str:
    """Return the placeholder of cleared editor context."""
    paths = mentioned.paths[:_MAX_NAMED]
    rest = len(mentioned.paths) - len(paths)
    named = "; ".join((*paths, *([f"and {counted(rest, 'more file')}"] if rest else [])))
    return MENTIONED_CLEARED.format(written=mentioned.written, named=f": {named}" if named else "")


def cleared_along(message: Message) -> str:
    """Return the placeholder of a cleared message with code or editor context that was attached to a question."""
    if message.mentioned is not None:
        return mentioned_cleared(message.mentioned)
    return without_gathered_code(message).text


def without_gathered_code(message: Message) -> Message:
    """Return the message with gathered code reduced to the names of its files, for readers that do not need it."""
    if message.tag != GATHERED_TAG:
        return message
    names = gathered_names(message)
    return with_changes(message, content=GATHERED_CLEARED.format(named=f": {names}" if names else ""))


def original_chars(result: Message) -> int:
    """Return the original length of a tool result, before any of it was left out."""
    note = RESULT_CUT.format(chars=result.left_out) if result.left_out else ""
    return len(result.text) + result.left_out - (len(note) if note and note in result.text else 0)


def kept_percent(result: Message) -> int:
    """Return the percentage of a truncated tool result that is still sent, at least 1; 0 if it was not truncated."""
    whole = original_chars(result)
    return max(1, min(99, round(100 * (whole - result.left_out) / whole))) if result.left_out and whole else 0


def image_cleared(path: str | None) -> str:
    """Return the placeholder of a cleared image, with its path if there is one (R-523)."""
    return IMAGE_WITH_PATH_CLEARED.format(path=path) if path else IMAGE_CLEARED
