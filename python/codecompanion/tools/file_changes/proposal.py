"""A file tool's proposed change to one file, and the user's edits to it before accepting.

The editor shows and returns text with Unix line endings in which invalid bytes are U+FFFD (`text_files.printable`).
Unedited lines keep their bytes and line endings; only lines that the user edited get the file's usual ones.
"""

from __future__ import annotations

import os
from difflib import SequenceMatcher
from pathlib import Path

import msgspec

from codecompanion.errors import ToolError
from codecompanion.formats.text_files import TextFile, printable, split_lines
from codecompanion.tools.files.code_files import why_it_becomes_code
from codecompanion.tools.files.diff import common_length, file_diff
from codecompanion.tools.tool import Accepted, ApprovalQuestion

MAX_SHOWN_CHARS = 4_000_000
"""Maximum length of a file that the editor compares; longer files would block it, so it gets a diff of them instead."""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """The current and proposed content of one file (None if it does not exist). `name` is its displayed path."""

    path: Path
    name: str
    before: TextFile | None
    after: TextFile | None


def shown(file: TextFile | None) -> str:
    """Return the text as the editor shows it, or "" for no file."""
    return printable(file.text) if file is not None else ""


def question(proposal: Proposal, *, key: str, title: str, body: str = "") -> ApprovalQuestion:
    """Return the question for the user; without a `body`, it shows the diff of the whole file."""
    before, after = shown(proposal.before), shown(proposal.after)
    becomes = ""
    if proposal.after is not None:
        is_new = not os.path.lexists(proposal.path)
        is_in_package = (proposal.path.parent / "__init__.py").exists()
        text = str(proposal.path)
        becomes = why_it_becomes_code(text, before, after, is_new=is_new, is_in_package=is_in_package)
    if len(before) + len(after) > MAX_SHOWN_CHARS:
        before = after = ""
    return ApprovalQuestion(
        key=key,
        title=title,
        body=body or proposed_diff(proposal),
        filetype="text" if body else "diff",
        path=str(proposal.path),
        before=before,
        after=after,
        becomes=becomes,
    )


def proposed_diff(proposal: Proposal) -> str:
    """Return the unified diff of the proposal."""
    before = None if proposal.before is None else proposal.before.text
    after = None if proposal.after is None else proposal.after.text
    return file_diff(proposal.name, before, after)


def as_accepted(proposal: Proposal, accepted: Accepted | None) -> tuple[Proposal, str]:
    """Return the change to make, and a message telling the model how it differs from the proposal.

    Raises:
        ToolError: the user edited the proposal, and the file has changed since.
    """
    if accepted is None or split_lines(accepted.text) == split_lines(accepted.after):
        return proposal, ""
    if shown(proposal.before) != accepted.before:
        raise ToolError(
            f"{proposal.name} changed while the user reviewed the edit, and the user had edited the proposal."
            " Nothing was written; read the file again."
        )
    like = proposal.after or proposal.before or TextFile("")
    text = with_own_line_ends(like, accepted.text)
    if proposal.before is not None and split_lines(accepted.text) == split_lines(accepted.before):
        nothing = msgspec.structs.replace(proposal, after=proposal.before)
        return nothing, f"The user removed everything from this change; {proposal.name} was not changed."
    written = msgspec.structs.replace(proposal, after=msgspec.structs.replace(like, text=text))
    diff = file_diff(proposal.name, accepted.after if proposal.after is not None else None, accepted.text)
    return written, (
        "The user edited your proposal before accepting it. The file now differs from your proposal"
        f" (- proposed by you, + written instead):\n{diff}"
    )


def with_own_line_ends(like: TextFile, text: str) -> str:
    """Return `text` with the bytes and line endings of `like` on every unchanged line."""
    visible = printable(like.text)
    if visible == like.text:
        return text
    own, shown_lines, lines = like.text.split("\n"), visible.split("\n"), text.split("\n")
    end = "\r" if like.newline == "\r\n" else ""
    head = common_length(shown_lines, lines)
    tail = common_length(shown_lines[head:][::-1], lines[head:][::-1])
    middle, new = slice(head, len(own) - tail), slice(head, len(lines) - tail)
    result = own[:head]
    for kind, first, last, low, high in SequenceMatcher(
        None, shown_lines[middle], lines[new], autojunk=False
    ).get_opcodes():
        same = own[middle][first:last] if kind == "equal" else [line + end for line in lines[new][low:high]]
        result += same
    result += own[len(own) - tail :]
    if end and len(result) > 0 and result[-1].endswith("\r") and not own[-1].endswith("\r"):
        result[-1] = result[-1].removesuffix("\r")  # there is no line ending after the last newline
    return "\n".join(result)
