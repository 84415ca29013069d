"""Reverts file changes by three-way merge, and never loses later changes (architecture.md).

A revert is a change like any other: it is logged with both versions before it is made, made in the editor if the file
is open there, and can itself be reverted. Hunks that overlap with later changes stay as they are, unless the user wants
conflict markers in the editor.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.errors import Busy, InputError, StoreError, ToolError
from codecompanion.formats import text_files
from codecompanion.model.history import FileChangeEnded, FileChangeStarted, LogEvent
from codecompanion.model.messages import Message
from codecompanion.session.actions.unsaved_changes import settle_unsaved
from codecompanion.session.chat.chat import Chat
from codecompanion.session.files.change_list import FileChanged, changes_of, kind_of
from codecompanion.session.files.file_log import FileLog
from codecompanion.session.files.revert_note import missing_note, revert_note, sentence_for_user
from codecompanion.session.files.revert_plan import (
    Clash,
    Contents,
    RevertStep,
    hunk_to_revert,
    plan_revert,
    revert_step,
    steps_to_reapply,
)
from codecompanion.session.state import State
from codecompanion.session.tool_calls.audited import file_record, record
from codecompanion.tools.file_changes.file_change import ATTEMPTS, carry_out, counts, current_text, is_there
from codecompanion.tools.files.diff import hunks_of
from codecompanion.tools.files.disk import set_mode
from codecompanion.tools.files.open_files import Opened
from codecompanion.tools.tool import ChangeResult, PendingChange, RevertedChanges, ToolContext
from codecompanion.wire.events import ChangesReverted, Severity
from codecompanion.wire.requests import ListChanges, RevertChanges, ShowChange


class Conflict(msgspec.Struct, frozen=True):
    """A file left unchanged, the reason, and whether its versions can be compared or merged with markers."""

    path: str
    name: str
    reason: str
    changes: tuple[str, ...]
    can_compare: bool = False
    can_mark: bool = False


class Reverter:
    """Reverts the file changes of one chat."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._contents = Contents(lambda sha256: chat.services.store.read_blob(sha256))
        self._settling = asyncio.Lock()

    async def carry_out(self, request: ListChanges | ShowChange | RevertChanges) -> Any:
        """Carry out the user's request; return the answer defined in `requests`.

        Raises:
            CodeCompanionError: nothing was changed; the message says why.
        """
        match request:
            case ListChanges(hunks=hunks):
                await self.settle()
                return await self._list(hunks)
            case ShowChange(change_id=change_id, texts=texts):
                return await self._show(change_id, texts=texts)
            case RevertChanges():
                if self._chat.state is not State.IDLE:
                    raise Busy("Wait until the reply is complete, or stop it with q, then revert.")
                lost = {change.id: change.began.name for change in await self.settle()}
                answer: dict[str, Any] = {}
                if lost.keys() & set(request.changes):  # reverting them now would reapply them
                    names = dict.fromkeys(lost[one] for one in request.changes if one in lost)
                    return _answer([], [], missing=list(names), is_back=False)

                async def work() -> str:
                    if request.hunk is None:
                        answer.update(await self._revert(request.changes, markers=request.markers))
                    else:
                        answer.update(await self._revert_hunk(request.changes, request.hunk, markers=request.markers))
                    return ""

                await self._chat.occupy(work)
                return answer

    def tell(self, events: Sequence[LogEvent]) -> None:
        """Send the ids of the reverted and of the unsaved changes to the editor."""
        changes = changes_of(events)
        reverted = tuple(change.id for change in changes if change.reverted)
        unsaved = tuple(change.id for change in changes if change.is_unsaved)
        self._chat.emit(ChangesReverted(chat=self._chat.chat_id, change_ids=reverted, unsaved_ids=unsaved))

    async def settle(self) -> Sequence[FileChanged]:
        """Update the unsaved changes that were saved or discarded since; return the discarded ones."""
        async with self._settling:
            settled, lost = await settle_unsaved(self._chat, self._contents)
            if settled:
                self.tell(await self._chat.log.events())
        return lost

    # ---- listing

    async def _list(self, hunks: bool) -> list[dict[str, Any]]:
        by_id = {change.id: change for change in changes_of(await self._chat.log.events())}
        return [
            await asyncio.to_thread(self._row, change, hunks) | {"kind": kind_of(change, by_id)}
            for change in reversed(by_id.values())
        ]

    def _row(self, change: FileChanged, hunks: bool) -> dict[str, Any]:
        row = {
            "change_id": change.id, "path": change.began.path, "name": change.began.name, "turn": change.turn,
            "turn_id": change.began.turn_id, "question": change.question, "tool": change.tool,
            "added": change.added, "removed": change.removed, "state": change.state, "reverted": change.reverted,
            "time": change.ts, "created": not change.began.before, "deleted": not change.after,
        }  # fmt: skip
        if hunks:
            row["hunks"] = [
                msgspec.to_builtins(hunk) | {"reverted": change.reverted or at in change.hunks_gone}
                for at, hunk in enumerate(hunks_of(self._contents.diff(change)))
            ]
        return row

    async def _show(self, change_id: str, *, texts: bool) -> dict[str, Any]:
        change = self._find(await self._chat.log.events(), change_id)
        text = await asyncio.to_thread(self._contents.diff, change)
        title = f"{change.began.name} · {counts(change.added, change.removed)}"
        shown = {"title": title, "text": text, "filetype": "diff", "state": "reverted" if change.reverted else "live"}
        if texts:
            shown |= await asyncio.to_thread(self._texts, change)
        return shown

    def _texts(self, change: FileChanged) -> dict[str, str]:
        text = self._contents.text
        return {"before": text(change.began.before) or "", "after": text(change.after) or ""}

    def _find(self, events: Sequence[LogEvent], change_id: str) -> FileChanged:
        for change in changes_of(events):
            if change.id == change_id:
                return change
        raise InputError("This change is not in the chat's history.")

    # ---- reverting

    async def _revert(self, wanted: Sequence[str], *, markers: bool) -> dict[str, Any]:
        by_id = {change.id: change for change in changes_of(await self._chat.log.events())}
        changes = [change for change in by_id.values() if change.id in set(wanted)]
        if not changes:
            raise InputError("Nothing to revert: no tool changed a file.")
        todo = [revert_step(change, by_id) for change in reversed(changes) if not change.reverted]  # newest first
        if not todo:  # changes that are already reverted are reapplied
            todo = [step for change in changes for step in steps_to_reapply(change, by_id)]
        by_path: dict[str, list[RevertStep]] = {}
        for step in todo:
            by_path.setdefault(step.change.began.path, []).append(step)
        done: list[str] = []
        missing: list[str] = []
        conflicts: list[Conflict] = []
        for of_file in by_path.values():
            taken, left, is_changed = await self._revert_steps(of_file, markers=markers)
            conflicts += left
            if not is_changed and not left and not taken[0].is_back:
                missing.append(taken[0].change.began.name)
                await self._add_note(missing_note(missing[-1], _which_changes(taken), self._chat.services.new_token()))
            elif taken:
                name = taken[0].change.began.name
                done.append((f"{len(taken)} of {len(of_file)} changes to " if left else "") + name)
                await self._tell_model(name, _which_changes(taken), back=taken[0].is_back)
        self.tell(await self._chat.log.events())
        return _answer(done, conflicts, missing=missing, is_back=all(step.is_back for step in todo))

    async def _revert_hunk(self, wanted: Sequence[str], hunk: int, *, markers: bool) -> dict[str, Any]:
        """Revert or reapply one hunk of a change; the change stays in effect until all of its hunks are reverted."""
        by_id = {change.id: change for change in changes_of(await self._chat.log.events())}
        change = by_id.get(wanted[0]) if len(wanted) == 1 else None
        if change is None:
            raise InputError("This change is not in the chat's history.")
        step = hunk_to_revert(change, hunk, by_id)
        conflict, is_changed = await self._revert_file([step], markers=markers, hunk=hunk)
        if conflict is not None:
            return _answer([], [conflict], is_back=step.is_back)
        events = await self._chat.log.events()
        now = self._find(events, change.id)
        is_whole = not now.hunks_gone if step.is_back else now.reverted
        name = change.began.name
        which = "your change" if is_whole and not step.is_back else "a part of your change"
        if not (is_changed or step.is_back):
            await self._add_note(missing_note(name, which, self._chat.services.new_token()))
            self.tell(events)
            return _answer([], [], missing=[name], is_back=False)
        await self._tell_model(name, which, back=step.is_back)
        self.tell(events)
        # Reapplying the last missing hunk is reported as a hunk, like its revert.
        is_one_hunk = not is_whole or (step.is_back and not change.reverted)
        return _answer([f"one hunk of {name}" if is_one_hunk else name], [], is_back=step.is_back)

    async def _revert_steps(
        self, steps: Sequence[RevertStep], *, markers: bool
    ) -> tuple[list[RevertStep], list[Conflict], bool]:
        """Revert the changes of one file together or, if later edits overlap, as many as possible.

        The last value is whether the file was changed.
        """
        conflict, is_changed = await self._revert_file(steps, markers=markers)
        if conflict is None:
            return list(steps), [], is_changed
        if len(steps) == 1 or not conflict.can_compare:
            return [], [conflict], False
        taken: list[RevertStep] = []
        left: list[Conflict] = []
        for step in steps:
            conflict, _ = await self._revert_file([step], markers=False)
            if conflict is None:
                taken.append(step)
                continue
            hunks = hunks_of(await asyncio.to_thread(self._contents.diff, step.change))
            which = f"change at line {hunks[0].line}: " if hunks else ""
            left.append(msgspec.structs.replace(conflict, reason=which + conflict.reason))
        return taken, left, True

    async def _revert_file(
        self, steps: Sequence[RevertStep], *, markers: bool, hunk: int | None = None
    ) -> tuple[Conflict | None, bool]:
        """Revert the changes of one file, in this order, as a single change.

        Return a conflict or None, and whether the file was changed: it may have lost the changes before.

        With `hunk`, revert only this hunk of a single change.
        """
        oldest = steps[-1].change
        path, name = Path(oldest.began.path), oldest.began.name
        ids = tuple(step.change.id for step in steps)
        for _ in range(ATTEMPTS):
            opened = await self._chat.services.editor.look([path])
            context = self._context(opened)
            try:
                plan = await asyncio.to_thread(plan_revert, steps, context, self._contents, markers=markers, hunk=hunk)
            except (Clash, ToolError, StoreError) as problem:
                overlaps = isinstance(problem, Clash) and problem.overlaps
                can_mark = overlaps and isinstance(problem, Clash) and problem.marked is not None
                return Conflict(str(path), name, str(problem), ids, overlaps, can_mark), False
            if plan.proposal is None:
                await self._log_as_done(path, name, plan.reverts, context)
                return None, bool(oldest.began.link)
            try:
                if await carry_out(plan.proposal, context, plan.reverts, save=plan.save) is not None:
                    await asyncio.to_thread(_restore_mode, path, oldest)
                    return None, True
            except ToolError as problem:
                return Conflict(str(path), name, str(problem), ids), False
        return Conflict(str(path), name, "keeps changing in the editor", ids), False

    def _context(self, opened: Opened) -> ToolContext:
        services, chat = self._chat.services, self._chat
        context = services.tool_context(chat.snapshot)
        log = FileLog(chat.log.write, services.store.put_blob, services.new_token, on_change=self._record)
        return msgspec.structs.replace(context, opened=opened, recorder=log)

    def _record(self, began: FileChangeStarted, ended: FileChangeEnded) -> None:
        grant = "the user reverts or reapplies"
        files = [file_record(began, ended)]
        record(self._chat.services, event="ran", kind="revert", chat=self._chat.chat_id, grant=grant, files=files)

    async def _log_as_done(self, path: Path, name: str, reverts: RevertedChanges, context: ToolContext) -> None:
        """Log a revert whose result is already in the file, so that the change counts as reverted."""
        now = None
        if await asyncio.to_thread(is_there, path, context):
            with contextlib.suppress(text_files.UnreadableFile):  # a restored symlink
                now = text_files.encode(await asyncio.to_thread(current_text, path, context))
        change_id = await context.recorder.begin(
            PendingChange(path=path, name=name, before=now, after=now, reverts=reverts)
        )
        await context.recorder.end(change_id, ChangeResult(state="written"))

    async def _tell_model(self, name: str, which: str, *, back: bool) -> None:
        """Add a note to the next request that says which change of a file was reverted."""
        await self._add_note(revert_note(name, which, self._chat.services.new_token(), back=back))

    async def _add_note(self, note: Message) -> None:
        self._chat.context.add(note)
        await self._chat.context.join("", self._chat.log.view.cycle + 1)
        if sentence := sentence_for_user(note):
            self._chat.notice(Severity.INFO, sentence)
        self._chat.show_meter()


def _which_changes(steps: Sequence[RevertStep]) -> str:
    """Return the note's words for the reverted changes, such as "your change" or "your 2 changes"."""
    count = len({change.id for step in steps for change in step.of})
    if count > 1:
        return f"your {count} changes"
    change = steps[0].change
    is_part = any(len(change.touched) < told.of for told in change.began.gone)
    return "a part of your change" if is_part else "your change"


def _restore_mode(path: Path, oldest: FileChanged) -> None:
    """Restore the permissions of a file that the revert recreates after its deletion."""
    if oldest.began.mode and not oldest.after:
        with contextlib.suppress(OSError, ToolError):
            set_mode(path, oldest.began.mode)


def _answer(
    done: Sequence[str], conflicts: Sequence[Conflict], *, missing: Sequence[str] = (), is_back: bool
) -> dict[str, Any]:
    text = _sentence(done, conflicts, missing, "Reapplied" if is_back else "Reverted")
    reapplied = is_back and bool(done)
    return {"text": text, "reverted": len(done) + len(missing), "reapplied": reapplied, "conflicts": conflicts}


def _sentence(done: Sequence[str], conflicts: Sequence[Conflict], missing: Sequence[str], verb: str) -> str:
    parts = []
    if done:
        parts.append(f"{verb} {done[0] if len(done) == 1 else f'{len(done)} files'}.")
    if missing:
        files = f"{missing[0]} no longer has" if len(missing) == 1 else f"{len(missing)} files no longer have"
        parts.append(f"Nothing to revert: {files} the change.")
    if conflicts:
        names = ", ".join(f"{one.name} ({one.reason})" for one in conflicts[:3])
        more = f" and {len(conflicts) - 3} more" if len(conflicts) > 3 else ""
        parts.append(f"Not changed: {names}{more}.")
    return " ".join(parts)
