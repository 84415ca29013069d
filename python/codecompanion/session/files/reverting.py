"""Reverts changes of files, three-way against whatever came later, and never loses that (architecture.md).

A revert is a change like any other: logged with both texts before it is made, in the editor where the file is open,
and it can be reverted itself. What overlaps with later changes stays as it is, unless the user wants the conflict
markers in the editor.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.errors import InputError, StoreError, ToolError
from codecompanion.formats import text_files
from codecompanion.formats.text_files import TextFile, printable
from codecompanion.model.history import LogEvent
from codecompanion.model.messages import REAPPLIED_TAG, REVERTED_TAG, Message
from codecompanion.session.chat import Chat
from codecompanion.session.files.change_list import FileChanged, changes_of
from codecompanion.session.files.file_log import FileLog
from codecompanion.session.state import State
from codecompanion.tools.base import HowEnded, ToChange, ToolContext
from codecompanion.tools.files.diff import file_diff, hunks_of, without_hunk
from codecompanion.tools.files.disk import make_link, set_mode
from codecompanion.tools.files.file_change import ATTEMPTS, carry_out, counts, current_text, is_there
from codecompanion.tools.files.open_files import Opened
from codecompanion.tools.files.proposal import Proposal, with_own_line_ends
from codecompanion.wire.events import ChangesReverted
from codecompanion.wire.requests import ListChanges, RevertChanges, ShowChange
from codecompanion.workspace.merge import merge

LABELS = ("the file now", "after the change", "before the change")


class Conflict(msgspec.Struct, frozen=True):
    """A file that was left as it is: why, and whether the texts can be compared, or merged with conflict markers."""

    path: str
    name: str
    reason: str
    changes: tuple[str, ...]
    can_compare: bool = False
    can_mark: bool = False


class Clash(Exception):
    """A change cannot be taken back; `marked` is the text with conflict markers, None when there is none.

    `overlaps`: there are three texts to be compared.
    """

    def __init__(self, reason: str, marked: str | None = None, *, overlaps: bool = False) -> None:
        super().__init__(reason)
        self.marked, self.overlaps = marked, overlaps


class Reverter:
    """The changes of files of one chat, and the hand that takes them back."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat

    async def carry_out(self, request: ListChanges | ShowChange | RevertChanges) -> Any:
        """Carry out what the user asked for; return the answer of `requests`.

        Raises:
            CodeCompanionError: nothing was changed; says why.
        """
        match request:
            case ListChanges(hunks=hunks):
                return await self._list(hunks)
            case ShowChange(change_id=change_id, texts=texts):
                return await self._show(change_id, texts=texts)
            case RevertChanges():
                if self._chat.state is not State.IDLE:
                    raise InputError("Wait until the reply is complete, or stop it with q, then revert.")
                answer: dict[str, Any] = {}

                async def work() -> str:
                    if request.hunk is None:
                        answer.update(await self._revert(request.changes, markers=request.markers))
                    else:
                        answer.update(await self._revert_hunk(request.changes, request.hunk, markers=request.markers))
                    return ""

                await self._chat.occupy(work)
                return answer

    def tell(self, events: Sequence[LogEvent]) -> None:
        """Let the editor mark the changes that are reverted."""
        found = tuple(change.id for change in changes_of(events) if change.reverted)
        self._chat.emit(ChangesReverted(chat=self._chat.chat_id, change_ids=found))

    # ---- listing

    async def _list(self, hunks: bool) -> list[dict[str, Any]]:
        changes = changes_of(await self._chat.log.events())
        return [await asyncio.to_thread(self._row, change, hunks) for change in reversed(changes)]

    def _row(self, change: FileChanged, hunks: bool) -> dict[str, Any]:
        row = {
            "change_id": change.id, "path": change.began.path, "name": change.began.name, "turn": change.turn,
            "turn_id": change.began.turn_id, "question": change.question, "tool": change.tool or "revert",
            "added": change.added, "removed": change.removed, "state": change.state, "reverted": change.reverted,
            "time": change.ts, "created": not change.began.before, "deleted": not change.after,
        }  # fmt: skip
        if hunks:
            row["places"] = msgspec.to_builtins(hunks_of(self._diff(change)))
        return row

    async def _show(self, change_id: str, *, texts: bool) -> dict[str, Any]:
        change = self._find(await self._chat.log.events(), change_id)
        text = await asyncio.to_thread(self._diff, change)
        title = f"{change.began.name} · {counts(change.added, change.removed)}"
        shown = {"title": title, "text": text, "filetype": "diff", "state": "reverted" if change.reverted else "live"}
        if texts:
            shown |= await asyncio.to_thread(self._texts, change)
        return shown

    def _texts(self, change: FileChanged) -> dict[str, str]:
        return {"before": self._text(change.began.before) or "", "after": self._text(change.after) or ""}

    def _diff(self, change: FileChanged) -> str:
        before, after = self._text(change.began.before), self._text(change.after)
        return file_diff(change.began.name, before, after)

    def _find(self, events: Sequence[LogEvent], change_id: str) -> FileChanged:
        for change in changes_of(events):
            if change.id == change_id:
                return change
        raise InputError("This change is not in the history of the chat.")

    # ---- reverting

    async def _revert(self, wanted: Sequence[str], *, markers: bool) -> dict[str, Any]:
        everything = changes_of(await self._chat.log.events())
        changes = [change for change in everything if change.id in set(wanted)]
        if not changes:
            raise InputError("Nothing to revert: no tool changed a file.")
        todo = [change for change in changes if not change.reverted]
        is_back = not todo
        if is_back:  # what is reverted already is brought back: the reverts are reverted
            known = {change.id: change for change in changes}
            todo = [
                _whole(c, known) for c in everything if not c.reverted and not known.keys().isdisjoint(c.began.reverts)
            ]
        by_path: dict[str, list[FileChanged]] = {}
        for change in reversed(todo):  # newest first
            by_path.setdefault(change.began.path, []).append(change)
        done: list[str] = []
        conflicts: list[Conflict] = []
        for of_file in by_path.values():
            taken, left = await self._revert_changes(of_file, markers=markers)
            conflicts += left
            if taken:
                some = f"{len(taken)} of {len(of_file)} changes of " if left else ""
                done.append(some + of_file[0].began.name)
                await self._tell_model(taken)
        self.tell(await self._chat.log.events())
        return {
            "text": _sentence(done, conflicts, "Reapplied" if is_back else "Reverted"),
            "reverted": len(done),
            "conflicts": conflicts,
        }

    async def _revert_hunk(self, wanted: Sequence[str], hunk: int, *, markers: bool) -> dict[str, Any]:
        """Take back one place of a change. The change counts as before until nothing of it is left in the file."""
        change_id = wanted[0] if len(wanted) == 1 else ""
        change = self._find(await self._chat.log.events(), change_id)
        if change.reverted:
            raise InputError("The whole change is reverted already; gX on it in :CodeCompanionRevert brings it back.")
        conflict = await self._revert_file([change], markers=markers, hunk=hunk)
        if conflict is not None:
            return {"text": _sentence([], [conflict], "Reverted"), "reverted": 0, "conflicts": [conflict]}
        events = await self._chat.log.events()
        is_whole = self._find(events, change_id).reverted
        await self._tell_model([change], "your change" if is_whole else "a part of your change")
        self.tell(events)
        name = change.began.name if is_whole else f"one place of {change.began.name}"
        return {"text": _sentence([name], [], "Reverted"), "reverted": 1, "conflicts": []}

    async def _revert_changes(
        self, changes: Sequence[FileChanged], *, markers: bool
    ) -> tuple[list[FileChanged], list[Conflict]]:
        """Take back the changes of one file, newest first, together or, when later edits overlap, those that can be."""
        conflict = await self._revert_file(changes, markers=markers)
        if conflict is None:
            return list(changes), []
        if len(changes) == 1 or not conflict.can_compare:
            return [], [conflict]
        taken: list[FileChanged] = []
        left: list[Conflict] = []
        for change in changes:
            conflict = await self._revert_file([change], markers=False)
            if conflict is None:
                taken.append(change)
                continue
            places = hunks_of(await asyncio.to_thread(self._diff, change))
            which = f"change at line {places[0].line}: " if places else ""
            left.append(msgspec.structs.replace(conflict, reason=which + conflict.reason))
        return taken, left

    async def _revert_file(
        self, changes: Sequence[FileChanged], *, markers: bool, hunk: int | None = None
    ) -> Conflict | None:
        """Take back the changes of one file, newest first, as one change; return why it was left as it is.

        With `hunk` only this place of the one change, which counts as reverted when it was the last one.
        """
        path, name = Path(changes[0].began.path), changes[0].began.name
        ids = tuple(change.id for change in changes)
        for _ in range(ATTEMPTS):
            opened = await self._chat.services.editor.look([path])
            context = self._context(opened)
            try:
                proposal, save, is_whole = await asyncio.to_thread(self._plan, changes, context, markers, hunk)
            except (Clash, ToolError, StoreError) as problem:
                overlaps = isinstance(problem, Clash) and problem.overlaps
                can_mark = overlaps and isinstance(problem, Clash) and problem.marked is not None
                return Conflict(str(path), name, str(problem), ids, overlaps, can_mark)
            reverts = ids if is_whole else ()
            if proposal is None:
                if reverts:
                    await self._log_as_done(path, name, reverts, context)
                return None
            try:
                if await carry_out(proposal, context, reverts, save=save) is not None:
                    await asyncio.to_thread(_restore_mode, path, changes[-1])
                    return None
            except ToolError as problem:
                return Conflict(str(path), name, str(problem), ids)
        return Conflict(str(path), name, "keeps changing in the editor", ids)

    def _plan(
        self, changes: Sequence[FileChanged], context: ToolContext, markers: bool, hunk: int | None = None
    ) -> tuple[Proposal | None, bool, bool]:
        """Return the change that takes all of them back, None when the file is so already.

        Then whether to save it, and whether nothing of the changes is left with it: after `hunk` there may be others.
        """
        first = changes[-1].began
        path, name = Path(first.path), first.name
        _check_still_there(path)
        if first.link:
            _restore_link(path, first.link)
            return None, True, True
        now = current_text(path, context) if is_there(path, context) else None
        text: str | None = None if now is None else printable(now.text)
        started, save = text, True
        for change in changes:
            before, after = self._text(change.began.before), self._text(change.after)
            try:
                if change.began.mode and not change.began.before:
                    raise Clash("too large to be kept")
                if hunk is not None and before is not None and after is not None:
                    before = without_hunk(before, after, hunk)
                    if before is None:
                        raise Clash("has no such place")
                text = taken_back(text, before, after)
            except Clash as clash:
                if not markers or clash.marked is None or len(changes) > 1:
                    raise
                text, save = clash.marked, False
        is_whole = hunk is None or self._is_gone(text, changes[0])
        if text == started:
            return None, True, is_whole
        if text is None:
            return Proposal(path=path, name=name, before=now, after=None), True, is_whole
        stored = self._file(first.before)
        if now is None and stored is not None and printable(stored.text) == text:
            return Proposal(path=path, name=name, before=None, after=stored), True, is_whole
        like = now or stored or TextFile("")
        after_file = msgspec.structs.replace(like, text=with_own_line_ends(like, text))
        return Proposal(path=path, name=name, before=now, after=after_file), save, is_whole

    def _is_gone(self, text: str | None, change: FileChanged) -> bool:
        """Return whether a text has nothing of a change: to take it back would leave the text as it is."""
        try:
            return taken_back(text, self._text(change.began.before), self._text(change.after)) == text
        except Clash:
            return False

    def _context(self, opened: Opened) -> ToolContext:
        services, chat = self._chat.services, self._chat
        context = services.tool_context(chat.snapshot)
        log = FileLog(chat.log.write, services.store.put_blob, services.new_token)
        return msgspec.structs.replace(context, opened=opened, recorder=log)

    async def _log_as_done(self, path: Path, name: str, ids: tuple[str, ...], context: ToolContext) -> None:
        """Log a revert of what was so already: from here on it counts as reverted."""
        now = None
        if await asyncio.to_thread(is_there, path, context):
            with contextlib.suppress(text_files.UnreadableFile):  # a link that was restored
                now = text_files.encode(await asyncio.to_thread(current_text, path, context))
        change_id = await context.recorder.begin(ToChange(path=path, name=name, before=now, after=now, reverts=ids))
        await context.recorder.end(change_id, HowEnded(state="written"))

    async def _tell_model(self, changes: Sequence[FileChanged], which: str = "your change") -> None:
        """Tell the model in one line, with the next request."""
        name = changes[0].began.name
        back = all(change.began.reverts for change in changes)
        what = f"reapplied {which}" if back else f"reverted {which}"
        if len(changes) > 1:
            what += "s"
        text = f"The user {what} of `{name}`. Read the file again before you change it."
        tag = REAPPLIED_TAG if back else REVERTED_TAG
        message = Message(id=self._chat.services.new_token(), role="user", tag=tag, path=name, content=text)
        self._chat.context.add(message)
        await self._chat.context.join("", self._chat.log.view.cycle + 1)
        self._chat.show_meter()

    # ---- stored contents

    def _file(self, sha256: str) -> TextFile | None:
        return text_files.decode(self._chat.services.store.read_blob(sha256)) if sha256 else None

    def _text(self, sha256: str) -> str | None:
        """Return a stored content as it is compared: Unix line ends; None when there was no file."""
        file = self._file(sha256)
        return None if file is None else printable(file.text)


def _whole(revert: FileChanged, changes: Mapping[str, FileChanged]) -> FileChanged:
    """Return a revert as if it had taken back the whole of its one change: the last of its places may be all it did."""
    change = changes.get(revert.began.reverts[0]) if len(revert.began.reverts) == 1 else None
    if change is None or not (change.began.before and change.after):
        return revert
    began = msgspec.structs.replace(revert.began, before=change.after)
    return msgspec.structs.replace(revert, began=began, after=change.began.before)


def taken_back(now: str | None, before: str | None, after: str | None) -> str | None:
    """Return the text without the change from `before` to `after`; None is no file.

    Raises:
        Clash: it overlaps with what came later.
    """
    if now == after:
        return before
    if now == before:
        return now
    if after is None:
        raise Clash("exists again")
    if before is None:
        raise Clash("changed since then")
    if now is None:
        raise Clash("deleted since then")
    merged = merge(after, now, before, LABELS)
    if merged.problem:
        raise Clash(merged.problem, overlaps=True)
    if merged.conflicts:
        raise Clash("later changes overlap", merged.text, overlaps=True)
    return merged.text


def _check_still_there(path: Path) -> None:
    """Check that the logged path, which had no links in it, still means the same file.

    Raises:
        Clash: a link leads elsewhere now: out of the workspace, or to a file that something runs.
    """
    folder = Path(os.path.realpath(path.parent))
    if folder != path.parent:
        raise Clash(f"its folder is now a link to {folder}")


def _restore_link(path: Path, target: str) -> None:
    if os.path.lexists(path):
        raise Clash("exists again")
    try:
        make_link(path, target)
    except OSError as error:
        raise Clash(f"it cannot be restored: {text_files.reason(error)}") from error


def _restore_mode(path: Path, oldest: FileChanged) -> None:
    """Give a file that was deleted its permissions back."""
    if oldest.began.mode and not oldest.after:
        with contextlib.suppress(OSError, ToolError):
            set_mode(path, oldest.began.mode)


def _sentence(done: Sequence[str], conflicts: Sequence[Conflict], verb: str) -> str:
    parts = []
    if done:
        parts.append(f"{verb} {done[0] if len(done) == 1 else f'{len(done)} files'}.")
    if conflicts:
        names = ", ".join(f"{one.name} ({one.reason})" for one in conflicts[:3])
        more = f" and {len(conflicts) - 3} more" if len(conflicts) > 3 else ""
        parts.append(f"Not changed: {names}{more}.")
    return " ".join(parts)
