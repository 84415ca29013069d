"""Computes the result of reverting changes of one file before anything is changed (architecture.md)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from codecompanion.formats import text_files
from codecompanion.formats.text_files import TextFile, printable
from codecompanion.model.history import HunksGone
from codecompanion.session.files.change_list import FileChanged, tool_changes, would_reapply
from codecompanion.tools.file_changes.file_change import current_text, is_there
from codecompanion.tools.file_changes.proposal import Proposal, with_own_line_ends
from codecompanion.tools.files.diff import file_diff, hunks_of, without_hunk
from codecompanion.tools.files.disk import make_link
from codecompanion.tools.tool import RevertedChanges, ToolContext
from codecompanion.workspace.merge import merge

LABELS = ("the file now", "after the change", "before the change")


class Clash(Exception):
    """Raised when a change cannot be reverted; `marked` is the text with conflict markers, or None if there is none.

    `overlaps`: later changes overlap, and there are three versions to compare.
    """

    def __init__(self, reason: str, marked: str | None = None, *, overlaps: bool = False) -> None:
        super().__init__(reason)
        self.marked, self.overlaps = marked, overlaps


class Contents:
    """The stored contents of changes as comparable strings, with Unix line endings; None if there was no file."""

    def __init__(self, read_blob: Callable[[str], bytes]) -> None:
        """Create the object. `read_blob` returns the content stored under a sha256."""
        self._read_blob = read_blob

    def file(self, sha256: str) -> TextFile | None:
        """Return a stored file, or None if `sha256` is ""."""
        return text_files.decode(self._read_blob(sha256)) if sha256 else None

    def text(self, sha256: str) -> str | None:
        """Return the stored content of a file as text, or None if `sha256` is ""."""
        file = self.file(sha256)
        return None if file is None else printable(file.text)

    def diff(self, change: FileChanged) -> str:
        """Return the unified diff of a change."""
        return file_diff(change.began.name, self.text(change.began.before), self.text(change.after))


class RevertPlan(msgspec.Struct, frozen=True):
    """The change that reverts others; `proposal` is None if the file already matches. `save`: whether to save it."""

    proposal: Proposal | None
    reverts: RevertedChanges
    save: bool = True


class RevertStep(msgspec.Struct, frozen=True, kw_only=True):
    """A change to revert, or to reapply (`again`).

    `named`: the changes that the log will list as reverted by this step; `of`: the tools' changes that are affected;
    `is_back`: whether the step reapplies them.
    """

    change: FileChanged
    named: tuple[str, ...]
    of: tuple[FileChanged, ...]
    again: bool = False
    is_back: bool = False


def revert_step(change: FileChanged, by_id: Mapping[str, FileChanged]) -> RevertStep:
    """Return the step that reverts a change."""
    of = tuple(tool_changes(change, by_id))
    return RevertStep(change=change, named=(change.id,), of=of, is_back=would_reapply(change, by_id))


def steps_to_reapply(change: FileChanged, by_id: Mapping[str, FileChanged]) -> list[RevertStep]:
    """Return the steps that reapply a reverted change: from its contents, or by reverting its reverts."""
    reverts = [one for one in by_id.values() if not one.reverted and change.id in one.began.reverts]
    is_tools = not change.began.reverts and not change.began.gone
    if not (is_tools and change.began.before and change.after):
        return [revert_step(one, by_id) for one in reversed(reverts)]
    named = tuple(one.id for one in reverts)
    return [RevertStep(change=change, named=named, of=(change,), again=True, is_back=True)]


def hunk_to_revert(change: FileChanged, hunk: int, by_id: Mapping[str, FileChanged]) -> RevertStep:
    """Return the step that reverts one hunk of a change, or that reapplies the hunk if it is not in the file."""
    if not (change.reverted or hunk in change.hunks_gone):
        return RevertStep(change=change, named=(change.id,), of=(change,))
    reverts = (one for one in by_id.values() if not one.reverted and change.id in one.began.reverts)
    alone = tuple(one.id for one in reverts if one.touched == {hunk})
    return RevertStep(change=change, named=alone, of=(change,), again=True, is_back=True)


def plan_revert(
    steps: Sequence[RevertStep], context: ToolContext, contents: Contents, *, markers: bool, hunk: int | None = None
) -> RevertPlan:
    """Return the plan for reverting changes of one file, in this order.

    With `hunk`, only this hunk of a single change.

    Raises:
        Clash: it cannot be reverted, or later changes overlap and conflict markers are not wanted or not possible.
        ToolError: the file cannot be read.
    """
    first = steps[-1].change.began
    path, name = Path(first.path), first.name
    named = tuple(dict.fromkeys(change_id for step in steps for change_id in step.named))
    _check_still_there(path)
    if first.link:
        _restore_link(path, first.link)
        return RevertPlan(None, RevertedChanges(changes=named))
    now = current_text(path, context) if is_there(path, context) else None
    started = None if now is None else printable(now.text)
    save = True
    try:
        text = _without(started, steps, contents, hunk)
    except Clash as clash:
        if not markers or clash.marked is None or len(steps) > 1:
            raise
        text, save = clash.marked, False
    gone: dict[str, HunksGone] = {}
    for step in steps:
        gone |= {one.id: gone_from(text, one, contents, hunk, is_back=step.is_back) for one in step.of}
    reverts = RevertedChanges(changes=named, gone=tuple(gone.values()))
    if text == started:
        return RevertPlan(None, reverts)
    if text is None:
        return RevertPlan(Proposal(path=path, name=name, before=now, after=None), reverts)
    stored = contents.file(first.before)
    if now is None and stored is not None and printable(stored.text) == text:
        return RevertPlan(Proposal(path=path, name=name, before=None, after=stored), reverts)
    like = now or stored or TextFile("")
    after = msgspec.structs.replace(like, text=with_own_line_ends(like, text))
    return RevertPlan(Proposal(path=path, name=name, before=now, after=after), reverts, save)


def _without(text: str | None, steps: Sequence[RevertStep], contents: Contents, hunk: int | None) -> str | None:
    """Return the text with the changes reverted, or with one hunk of a single change reverted.

    Raises:
        Clash: a change cannot be reverted, for example because later changes overlap with it.
    """
    for step in steps:
        change = step.change
        if change.began.mode and not change.began.before:
            raise Clash("too large to be kept")
        before, after = contents.text(change.began.before), contents.text(change.after)
        if hunk is not None and before is not None and after is not None:
            before = without_hunk(before, after, hunk)
            if before is None:
                raise Clash("has no such hunk")
        text = revert_change(text, after, before) if step.again else revert_change(text, before, after)
    return text


def gone_from(
    text: str | None, change: FileChanged, contents: Contents, wanted: int | None, *, is_back: bool
) -> HunksGone:
    """Return the hunks of a change that the text does not contain, so that reverting them would not change it.

    If later changes overlap, the text does not show this, so the `wanted` hunks (None = all) count as requested.
    """
    before, after = contents.text(change.began.before), contents.text(change.after)
    count = max(1, len(hunks_of(contents.diff(change))))
    gone = []
    for hunk in range(count):
        part = before
        if before is not None and after is not None:
            part = without_hunk(before, after, hunk)
        try:
            is_gone = revert_change(text, part, after) == text
        except Clash:
            is_gone = not is_back if wanted in (None, hunk) else change.reverted or hunk in change.hunks_gone
        if is_gone:
            gone.append(hunk)
    return HunksGone(change.id, tuple(gone), count)


def revert_change(now: str | None, before: str | None, after: str | None) -> str | None:
    """Return the text with the change from `before` to `after` reverted; None = no file.

    Raises:
        Clash: the change cannot be reverted, for example because later changes overlap with it.
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
    """Check that the logged path, which had no links in it, still refers to the same file.

    Raises:
        Clash: a symbolic link now leads elsewhere: out of the workspace, or to a file that is executed.
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
