"""Updates the file changes that tools made in buffers with unsaved changes, once the user saves or discards a buffer.

A saved change is logged again as written. A change that neither a buffer nor the file contains any more is logged as
reverted, so that it is not listed as effective and can be reapplied.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from codecompanion.errors import Busy, ToolError
from codecompanion.formats import text_files
from codecompanion.formats.text_files import printable, split_lines
from codecompanion.model.history import FileChangeEnded
from codecompanion.session.chat.chat import Chat
from codecompanion.session.files.change_list import FileChanged, changes_of
from codecompanion.session.files.file_log import FileLog
from codecompanion.session.files.revert_note import missing_note, sentence_for_user
from codecompanion.session.files.revert_plan import Clash, Contents, gone_from, revert_change, revert_step
from codecompanion.tools.file_changes.file_change import current_text, is_there
from codecompanion.tools.files.diff import file_diff
from codecompanion.tools.files.open_files import Opened
from codecompanion.tools.tool import ChangeResult, PendingChange, RevertedChanges
from codecompanion.wire.events import Severity


async def settle_unsaved(chat: Chat, contents: Contents) -> tuple[bool, Sequence[FileChanged]]:
    """Log which unsaved changes were saved or discarded since; return whether there are any, and the discarded ones.

    Changes in a buffer that still has unsaved changes stay as they are, and so do all if the editor does not answer.
    """
    changes = {change.id: change for change in changes_of(await chat.log.events())}
    unsaved = [change for change in changes.values() if change.state == "unsaved" and not change.reverted]
    if not unsaved:
        return False, ()
    opened = await chat.services.editor.look([Path(change.began.path) for change in unsaved])
    if opened.silent:
        return False, ()
    lost: list[FileChanged] = []
    is_any = False
    for change in unsaved:
        file = opened.at(Path(change.began.path))
        if file is not None and file.modified:
            continue
        try:
            now = await asyncio.to_thread(_text_now, chat, change, opened)
        except (text_files.UnreadableFile, ToolError):
            continue
        is_any = True
        if await asyncio.to_thread(is_missing, now, change, contents):
            await _log_as_missing(chat, change, changes, now, contents)
            lost.append(change)
        else:
            ended = FileChangeEnded(
                change_id=change.id, state="written", after=change.after, added=change.added, removed=change.removed
            )
            await chat.log.write_beside(ended)
    for name, count in Counter(change.began.name for change in lost).items():
        await _tell(chat, name, count)
    return is_any, lost


def _text_now(chat: Chat, change: FileChanged, opened: Opened) -> str | None:
    context = msgspec.structs.replace(chat.services.tool_context(chat.snapshot), opened=opened)
    path = Path(change.began.path)
    return printable(current_text(path, context).text) if is_there(path, context) else None


def is_missing(now: str | None, change: FileChanged, contents: Contents) -> bool:
    """Return whether the text contains nothing of the change.

    If later changes overlap with it, it is missing only if all its removed lines are back and its added lines are not
    in the text.
    """
    before, after = contents.text(change.began.before), contents.text(change.after)
    try:
        return revert_change(now, before, after) == now
    except Clash:
        if now is None or before is None or after is None:
            return now is None
        lines = split_lines(now)
        removed, added = _runs(file_diff("", before, after))
        return all(_contains(lines, run) for run in removed) and not any(_contains(lines, run) for run in added)


def _runs(diff: str) -> tuple[list[list[str]], list[list[str]]]:
    """Return the runs of removed lines and of added lines in a diff."""
    found: dict[str, list[list[str]]] = {"-": [], "+": []}
    last = ""
    for row in diff.split("\n")[2:]:
        sign = row[:1]
        if sign in found:
            if sign != last:
                found[sign].append([])
            found[sign][-1].append(row[1:])
        last = sign
    return found["-"], found["+"]


def _contains(lines: list[str], run: list[str]) -> bool:
    return any(lines[at : at + len(run)] == run for at in range(len(lines) - len(run) + 1))


async def _log_as_missing(
    chat: Chat, change: FileChanged, by_id: dict[str, FileChanged], now: str | None, contents: Contents
) -> None:
    """Log a revert that changes no file."""
    step, name = revert_step(change, by_id), change.began.name
    gone = tuple(gone_from(now, one, contents, None, is_back=step.is_back) for one in step.of)
    log = FileLog(chat.log.write_beside, chat.services.store.put_blob, chat.services.new_token)
    content = None if now is None else now.encode("utf-8", "surrogateescape")
    reverts = RevertedChanges(changes=step.named, gone=gone)
    pending = PendingChange(path=Path(change.began.path), name=name, before=content, after=content, reverts=reverts)
    await log.end(await log.begin(pending), ChangeResult(state="written"))


async def _tell(chat: Chat, name: str, count: int) -> None:
    """Tell the model and the user that a file no longer has these changes."""
    note = missing_note(name, "your change" if count == 1 else f"your {count} changes", chat.services.new_token())

    async def join() -> str:
        await chat.context.join("", chat.log.view.cycle + 1)
        return ""

    chat.context.add(note)  # a running reply has its request: the note joins the next turn
    if chat.task is None:
        with contextlib.suppress(Busy):
            await chat.occupy(join)
    chat.notice(Severity.INFO, sentence_for_user(note))
    chat.show_meter()
