"""Builds the context of a cursor position from its file and project knowledge reused between keystrokes."""

from __future__ import annotations

import msgspec

from codecompanion.completion.families import Family
from codecompanion.completion.forms import build_project_prompt, line_cost
from codecompanion.completion.project_knowledge import KnownFile, ProjectView, choose
from codecompanion.completion.prompt import FimPrompt
from codecompanion.completion.prompt_plan import NO_ANCHOR, Plan, anchor_of, plan_prompt
from codecompanion.session.complete.project_view import ProjectReader, RecentRange

KEPT_LINES = 8
"""Maximum number of lines that the cursor may move before the knowledge of the project is selected again.

Until then, the server does not have to process the same beginning of a prompt again.
"""
_SPARE_CHARS = 200
"""Number of characters reserved for text typed before the next selection."""
_PACKING_CHARS = 200
"""Number of additional characters needed temporarily while snippets are packed."""
_WASTED_CHARS = 400
"""Maximum number of characters that may stay unused."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A cursor position in a file of a project.

    `head`: text above `before` that is not adjacent to it; `line` is 0-based.
    """

    path: str
    before: str
    after: str
    head: str = ""
    line: int = 0
    recent: tuple[RecentRange, ...] = ()


class Shown(msgspec.Struct, frozen=True):
    """The text shown to the model."""

    imports: str
    prefix: str
    suffix: str
    known: tuple[KnownFile, ...] = ()


def make_project_prompt(
    reader: ProjectReader, family: Family, path: str, before: str, after: str, total: int
) -> FimPrompt:
    """Return the prompt of at most `total` characters for a position in the file at `path` (relative to the root)."""
    place = Place(path=path, before=before, after=after)
    shown = SteadyKnowledge(is_steady=False).show(reader, place, total, line_cost(family, path))
    return build_project_prompt(
        family, shown.imports, shown.prefix, shown.suffix, path=path, project=reader.root.name, known=shown.known
    )


class _Kept(msgspec.Struct, frozen=True):
    """The last selection: its position, the version of the project, and its size in characters."""

    root: str = ""
    version: int = 0
    path: str = ""
    line: int = 0
    size: int = 0
    known: tuple[KnownFile, ...] = ()


class SteadyKnowledge:
    """Knowledge of a project that is reused while the user types in one place. Blocks: call it in a thread."""

    def __init__(self, *, is_steady: bool = True) -> None:
        """Start empty. If not `is_steady`, each prompt is the best possible, independent of earlier prompts."""
        self._is_steady = is_steady
        self._kept: _Kept | None = None
        self._anchor = ("", "")

    def show(self, reader: ProjectReader, place: Place, total: int, cost: int | None) -> Shown:
        """Return the context of a position.

        `cost`: extra characters per line of other files, None = show no other files.
        """
        kept, version = self._kept, reader.version
        if cost is None:
            plan = self._plan(place, total, 0)
            return Shown(plan.imports, plan.window.prefix, plan.window.suffix)
        if kept is not None and kept.known and self._is_near(kept, reader, place):
            plan = self._plan(place, total, kept.size + _SPARE_CHARS)
            if plan.knowledge_chars >= kept.size:
                return Shown(plan.imports, plan.window.prefix, plan.window.suffix, kept.known)
        plan = self._plan(place, total, None)
        window = msgspec.structs.replace(plan.window, above=place.head + plan.window.above)
        spare = _SPARE_CHARS if self._is_steady else 0
        known: tuple[KnownFile, ...] = ()
        if plan.knowledge_chars > spare:
            view = reader.view(place.path, window, plan.weights, place.recent)
            known = _choose(view, plan, plan.knowledge_chars - spare, cost)
            size = sum(one.cost(cost) for one in known)
            if size + _WASTED_CHARS < plan.knowledge_chars and (plan.window.above or plan.window.below):
                # The file may use the project's spare room; the extra room lets all chunks be packed again.
                room = size + _PACKING_CHARS
                plan = self._plan(place, total, room + spare)
                known = _choose(view, plan, min(room, plan.knowledge_chars), cost)
        if self._is_steady:
            size = sum(one.cost(cost) for one in known)
            self._kept = _Kept(str(reader.root), version, place.path, place.line, size, known)
        return Shown(plan.imports, plan.window.prefix, plan.window.suffix, known)

    def _plan(self, place: Place, total: int, least: int | None) -> Plan:
        anchor = ""
        if self._is_steady:
            anchor = self._anchor[1] if self._anchor[0] == place.path else NO_ANCHOR
        plan = plan_prompt(place.path, place.before, place.after, total, head=place.head, anchor=anchor, least=least)
        self._anchor = (place.path, anchor_of(plan.window))
        return plan

    def _is_near(self, kept: _Kept, reader: ProjectReader, place: Place) -> bool:
        same = (kept.root, kept.path, kept.version) == (str(reader.root), place.path, reader.version)
        return self._is_steady and same and abs(kept.line - place.line) <= KEPT_LINES


def _choose(view: ProjectView, plan: Plan, room: int, cost: int) -> tuple[KnownFile, ...]:
    shown = plan.imports + plan.window.prefix + plan.window.suffix
    return choose(view, plan.weights, shown, room, cost)
