"""Makes and logs a change to one file: in the editor if the file is open there, otherwise on disk.

Both contents are logged before anything is changed; after a crash at any moment the file is either unchanged or as the
log records it (architecture.md).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec

from codecompanion.errors import ToolError
from codecompanion.formats import text_files
from codecompanion.formats.text_files import TextFile
from codecompanion.model.history import FileChangeState
from codecompanion.tools.file_changes.proposal import Proposal, as_accepted, shown
from codecompanion.tools.files.diff import count_lines, file_diff
from codecompanion.tools.files.disk import in_thread, opened_folder, remove_file, write_atomic
from codecompanion.tools.files.open_files import Changed, OpenFile
from codecompanion.tools.tool import (
    NOTHING,
    ChangeResult,
    FileChange,
    PendingChange,
    RevertedChanges,
    ToolContext,
    ToolOutput,
)
from codecompanion.waiting import to_the_end

ATTEMPTS = 5
"""Maximum number of times a change is recomputed because the user typed into the file meanwhile."""
MAX_TOLD_CHARS = 4_000
"""Maximum number of characters of a formatter's changes quoted to the model."""


class Plan(msgspec.Struct, frozen=True):
    """A change planned by a tool, and the result texts for the model: as planned (`done`), or as edited by the user."""

    proposal: Proposal
    done: str
    done_otherwise: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a change: the file's new content, and whether it still needs to be saved."""

    change: FileChange
    after: TextFile | None
    state: str
    stays_open: bool = False


def is_there(path: Path, context: ToolContext) -> bool:
    """Return whether the file exists on disk, or so far only in the editor."""
    opened = context.opened.at(path)
    return os.path.lexists(path) or (opened is not None and opened.modified)


def current_text(path: Path, context: ToolContext) -> TextFile:
    """Return the file's text as the user sees it: from its buffer if it is open, else from disk.

    Raises:
        UnreadableFile: the file does not exist, or is not text.
    """
    opened = context.opened.at(path)
    if opened is not None and opened.text is None:
        most = text_files.MAX_READ_BYTES
        raise text_files.UnreadableFile(f"{path} is too large; at most {most:,} bytes can be read.")
    if opened is None or opened.text is None or not (opened.modified or path.exists()):
        return text_files.read_text(path)
    if "\0" in opened.text[: text_files.SNIFFED_BYTES]:
        raise text_files.UnreadableFile(f"{path} is a binary file.")
    return TextFile(opened.text)


async def change_file(plan: Callable[[ToolContext], Plan], context: ToolContext, path: Path) -> ToolOutput:
    """Carry out a tool's plan, recomputing it if the file changes meanwhile; return the result for the model.

    Raises:
        ToolError: nothing was changed; the message gives the reason.
    """
    for attempt in range(ATTEMPTS):
        opened = await context.editor.look([path]) if attempt else context.opened
        seen = msgspec.structs.replace(context, opened=opened)
        made = await in_thread(lambda _check, seen=seen: plan(seen))  # type: ignore[misc]
        proposal, note = await asyncio.to_thread(as_accepted, made.proposal, context.accepted)
        if proposal.before is not None and proposal.after == proposal.before:
            same = f"{proposal.name} already has this content; nothing was changed."
            return ToolOutput(text=note or same, summary="nothing accepted" if note else counts(0, 0))
        outcome = await carry_out(proposal, seen)
        if outcome is not None:
            return _output(outcome, proposal, note or made.done, made.done_otherwise if note else "")
    raise ToolError(f"{made.proposal.name} keeps changing in the editor. Nothing was changed; try again.")


async def carry_out(
    proposal: Proposal, context: ToolContext, reverts: RevertedChanges = NOTHING, *, save: bool = True
) -> Outcome | None:
    """Log and make the change; return None, doing nothing, if the buffer changed meanwhile.

    If `save` is false, the change is left in the editor for the user to save; the file must be open there. Cancellation
    waits for a change in progress, so that its result is logged.

    Raises:
        ToolError: nothing was changed; the message gives the reason.
    """
    opened = context.opened.at(proposal.path)
    if opened is not None and proposal.after is not None and opened.locked == "nomodifiable" and opened.modified:
        raise ToolError(
            f"{proposal.name} has unsaved changes in the editor and cannot be modified there ('modifiable' is off)."
            " Nothing was changed; ask the user."
        )
    if not save and (opened is None or opened.locked):
        raise ToolError(f"{proposal.name} is not open in the editor. Nothing was changed.")
    in_editor = opened if opened is not None and proposal.after is not None and _takes_changes(opened) else None
    before, mode, link = await asyncio.to_thread(_current_content, proposal, in_editor)
    after = None if proposal.after is None else text_files.encode(proposal.after)
    to_change = PendingChange(
        path=proposal.path, name=proposal.name, before=before, after=after, mode=mode, link=link, reverts=reverts
    )
    change_id = await context.recorder.begin(to_change)
    return await to_the_end(_carry_out(proposal, context, in_editor, change_id, save))


def _takes_changes(opened: OpenFile) -> bool:
    """Return whether to make the change in the buffer; a read-only, unmodified buffer's file is changed on disk."""
    return opened.modified or not opened.locked


async def _carry_out(
    proposal: Proposal, context: ToolContext, in_editor: OpenFile | None, change_id: str, save: bool
) -> Outcome | None:
    recorder = context.recorder
    try:
        if in_editor is not None:
            changed = await _change_in_editor(proposal, context, in_editor, save)
        else:
            changed = await _change_on_disk(proposal, context)
    except BaseException as error:
        await recorder.end(change_id, ChangeResult(state="failed", reason=str(error)))
        raise
    if changed.state == "stale":
        await recorder.end(change_id, ChangeResult(state="failed", reason="the buffer changed in the meantime"))
        return None
    if changed.state == "refused" or changed.state == "unknown":
        # If the editor stopped answering, it may have made the change: the log must not say that it did not.
        state: FileChangeState = "failed" if changed.state == "refused" else "unknown"
        await recorder.end(change_id, ChangeResult(state=state, reason=changed.reason))
        raise ToolError(changed.reason)
    after = proposal.after
    if changed.text is not None:
        after = TextFile(changed.text)
    diff = file_diff(
        proposal.name,
        None if proposal.before is None else proposal.before.text,
        None if after is None else after.text,
    )
    added, removed = count_lines(diff)
    change = FileChange(
        change_id=change_id, path=str(proposal.path), name=proposal.name, added=added, removed=removed, diff=diff,
        unsaved=changed.state == "unsaved",
    )  # fmt: skip
    left = None if changed.text is None else text_files.encode(TextFile(changed.text))
    await recorder.end(change_id, ChangeResult(state=changed.state, after=left, added=added, removed=removed))
    opened = context.opened.at(proposal.path)
    stays_open = proposal.after is None and opened is not None and opened.modified
    return Outcome(change=change, after=after, state=changed.state, stays_open=stays_open)


async def _change_in_editor(proposal: Proposal, context: ToolContext, opened: OpenFile, save: bool) -> Changed:
    after = proposal.after or TextFile("")
    await asyncio.to_thread(_make_folder, proposal.path.parent)
    return await context.editor.change(opened, after.text, save=save)


def _make_folder(folder: Path) -> None:
    try:
        with opened_folder(folder, make=True):
            pass
    except OSError as error:
        raise ToolError(f"{folder} was not created: {text_files.reason(error)}. Nothing was changed.") from error


async def _change_on_disk(proposal: Proposal, context: ToolContext) -> Changed:
    def work(check: Callable[[], None]) -> None:
        if proposal.after is not None:
            write_atomic(proposal.path, text_files.encode(proposal.after), check)
            return
        check()
        try:
            remove_file(proposal.path)
        except OSError as error:
            raise ToolError(f"{proposal.name} was not deleted: {text_files.reason(error)}.") from error

    await in_thread(work)
    await context.editor.reload(None if proposal.after is not None else proposal.path)
    return Changed(state="written")


def _current_content(proposal: Proposal, in_editor: OpenFile | None) -> tuple[bytes | None, int, str]:
    """Return the content, mode and link target of the file to change.

    The content is None if the file is missing or too large.

    Raises:
        ToolError: the file exists but cannot be read, so its content would be lost.
    """
    path = proposal.path
    if in_editor is not None:
        return (None if proposal.before is None else text_files.encode(proposal.before)), 0, ""
    with contextlib.suppress(OSError):
        if path.is_symlink() and proposal.after is None:
            return None, 0, str(path.readlink())
        mode = stat.S_IMODE(path.stat().st_mode)
        if proposal.before is not None and proposal.after is not None:
            return text_files.encode(proposal.before), mode, ""
        with contextlib.suppress(text_files.UnreadableFile):
            return text_files.read_bytes(path), mode, ""
    return None, 0, ""


def _output(outcome: Outcome, proposal: Proposal, sentence: str, otherwise: str) -> ToolOutput:
    change, notes = outcome.change, []
    summary = counts(change.added, change.removed)
    if otherwise:
        summary += " · edited by you"
    if outcome.state == "unsaved":
        notes.append(
            "The file has unsaved changes in the editor, so the edit is in the buffer and not on disk yet: read_file"
            " and grep_search show it, but commands do not see it until the user saves the file."
        )
    if outcome.stays_open:
        notes.append("The editor still has its unsaved changes.")
    formatted = _formatted(outcome, proposal)
    if formatted:
        notes.append(formatted)
    text = " ".join(part for part in (otherwise, sentence, *notes) if part)
    return ToolOutput(text=text, summary=summary, change=change)


def _formatted(outcome: Outcome, proposal: Proposal) -> str:
    """Return the changes made by format-on-save, so that the model's next edit matches the file."""
    wanted, found = shown(proposal.after), shown(outcome.after)
    if outcome.after is None or wanted == found:
        return ""
    diff = file_diff(proposal.name, wanted, found)
    if len(diff) > MAX_TOLD_CHARS:
        return "Saving the file changed it further (format on save); read it again before the next edit."
    return f"Saving the file changed it further (format on save):\n{diff}"


def counts(added: int, removed: int) -> str:
    """Format the counts as `+3 −1`."""
    parts = [f"+{added:,}"] if added else []
    parts += [f"−{removed:,}"] if removed else []
    return " ".join(parts) or "no lines changed"
