"""Renders the artifact for the model: seven sections within a byte budget (R-316…R-318).

Sections are filled by importance (goal, constraints and warnings first) and shown in canonical order, so a small budget
drops the least important ones. The unused share of a section goes to constraints and warnings first (R-317). Every item
is a single line that starts with `- `, so it cannot start a section.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from codecompanion.context.artifact.artifact import EARLIER, Artifact, OpenThread, is_quoted, quoted
from codecompanion.context.artifact.why_files_matter import importance, in_words, summed_uses
from codecompanion.context.ledger.goal import GOAL_BYTES
from codecompanion.context.ledger.lines import cut_bytes
from codecompanion.context.message_facts.demands import is_strict
from codecompanion.context.strategy_parameters import SummarySize

HEADER = "Compaction Summary:"
NONE_LINE = "- (none)"
CONSTRAINTS, WARNINGS = "Constraints & Preferences", "Critical Context"

DERIVED_BYTES, EPISODE_BYTES, VERIFICATION_BYTES, FILE_BYTES = 320, 360, 240, 240
MAX_FILES, MAX_HINTS, MAX_EVIDENCE = 12, 3, 8
_MIN_BYTES = 60
"""Minimum size of a truncated line, in bytes."""


def budget_bytes(size: SummarySize, window: int, target: int) -> int:
    """Return the byte budget of the rendered summary; `target` is 0 if there is none."""
    tokens = max(size.min_tokens, min(size.max_tokens, window // max(1, size.share)))
    if target > 0:
        tokens = min(tokens, target // max(1, size.target_share))
    return tokens * size.bytes_per_token


class _Block(msgspec.Struct, frozen=True):
    """One section: its heading, its rendered lines, and its share of the budget.

    `order`: line indexes, most important first. The first `rules` of them are constraints or warnings, which no
    other line may displace.
    """

    heading: str
    lines: tuple[str, ...]
    share: float
    order: tuple[int, ...]
    rules: int = 0

    def line_size(self, place: int) -> int:
        """Return the size of a line in bytes."""
        return _size("\n" + self.lines[place])

    def shown(self, places: Collection[int], short: Mapping[int, str]) -> str:
        """Return the section with the lines at these indexes; `short` maps indexes to truncated lines."""
        lines = [short.get(place, line) for place, line in enumerate(self.lines) if place in places]
        return "\n".join((self.heading, *(lines or [NONE_LINE])))


def render(artifact: Artifact, limit: int) -> str:
    """Return the summary in at most `limit` bytes, without the least important lines (R-317).

    After the goal, constraints and warnings get half of the bytes. Then every section gets its share, and at least its
    most important line; the rest goes to constraints and warnings, then to the other sections. As long as there is
    room, the newest turn that does not fit is truncated instead of dropped (R-314). If not all constraints fit, they
    lose their turn names.
    """
    if limit < _size(HEADER):
        return cut_bytes(HEADER, limit)
    layout = _lay_out(artifact, limit)
    if artifact.constraint_turn_ids and not layout.has_all(_CONSTRAINTS):
        layout = _lay_out(msgspec.structs.replace(artifact, constraint_turn_ids={}), limit)
    return "".join(_assembled({name: layout.shown(name) for name in layout.places}))


def _lay_out(artifact: Artifact, limit: int) -> _SummaryLayout:
    layout = _SummaryLayout(_blocks(artifact), limit)
    if layout.open_all(_FIRST, may_cut=True):
        layout.add_rules(limit // 2)
        layout.open_all(_OTHERS)
        for name in tuple(layout.places):
            layout.fill(name, int(limit * layout.blocks[name].share))
        layout.add_rules(limit)
        layout.open_all((name for name in _OTHERS if name not in layout.places), may_cut=True)
        for name in tuple(layout.places):
            layout.fill(name, limit)
        layout.cut_one_in("done")
    return layout


class _SummaryLayout:
    """A summary being filled; `places` maps each open section to the indexes of its lines."""

    def __init__(self, blocks: Mapping[str, _Block], limit: int) -> None:
        self.blocks, self.places = blocks, dict[str, set[int]]()
        self._room = limit - _size(HEADER)
        self._taken: dict[str, int] = {}
        self._short: dict[str, dict[int, str]] = {}

    def shown(self, name: str) -> str:
        """Return a section as filled so far."""
        return self.blocks[name].shown(self.places[name], self._short.get(name, {}))

    def has_all(self, name: str) -> bool:
        """Return whether the section contains all of its lines in full."""
        return len(self.places.get(name, ())) == len(self.blocks[name].lines) and name not in self._short

    def open_all(self, names: Iterable[str], *, may_cut: bool = False) -> bool:
        """Open these sections with their most important lines, stopping at the first that does not fit (R-317).

        `may_cut`: if a line does not fit, truncate it to the remaining room.
        """
        return all(self._open(name, may_cut=may_cut) for name in names)

    def _open(self, name: str, *, may_cut: bool) -> bool:
        block, first = self.blocks[name], self.blocks[name].order[:1]
        size = _size("\n\n" + block.shown(first, {}))
        heading = _size("\n\n## Progress") if name in _PROGRESS and not self.places.keys() & _PROGRESS else 0
        over = size + heading - self._room
        if over > 0:
            if not (may_cut and first) or not self._cut(name, first[0], block.line_size(first[0]) - over):
                return False
            size = _size("\n\n" + block.shown(first, self._short[name]))
        self.places[name], self._taken[name] = set(first), size
        self._room -= size + heading
        return True

    def add_rules(self, most: int) -> None:
        """Add constraints and warnings alternately while they fit, up to `most` bytes together."""
        queues = [self.blocks[name].order[: self.blocks[name].rules] for name in _RULES]
        for name, place in _by_turns(dict(zip(_RULES, queues, strict=True))):
            if sum(self._taken[name] for name in _RULES) + self.blocks[name].line_size(place) <= most:
                self._add(name, place)

    def fill(self, name: str, most: int) -> None:
        """Add lines of a section while they fit, up to `most` bytes."""
        for place in self.blocks[name].order:
            if place in self.places[name]:
                continue
            if self._taken[name] + self.blocks[name].line_size(place) > most or not self._add(name, place):
                return

    def cut_one_in(self, name: str) -> None:
        """Add the first line of a section that did not fit, truncated to the room left."""
        left = [place for place in self.blocks[name].order if place not in self.places.get(name, ())]
        if name in self.places and left and self._cut(name, left[0], self._room):
            self.places[name].add(left[0])
            self._room -= _size("\n" + self._short[name][left[0]])

    def _cut(self, name: str, place: int, size: int) -> bool:
        """Truncate a line to `size` bytes including its line break; return False if `size` is too small."""
        if size < _MIN_BYTES:
            return False
        line = self.blocks[name].lines[place].removeprefix("- ")
        self._short.setdefault(name, {})[place] = _line(line, size - _size("\n- "))
        return True

    def _add(self, name: str, place: int) -> bool:
        size = self.blocks[name].line_size(place)
        if place in self.places[name] or size > self._room:
            return False
        self.places[name].add(place)
        self._taken[name] += size
        self._room -= size
        return True


def _by_turns(queues: Mapping[str, Sequence[int]]) -> Iterable[tuple[str, int]]:
    for n in range(max(map(len, queues.values()))):
        yield from ((name, queue[n]) for name, queue in queues.items() if n < len(queue))


def _assembled(laid: Mapping[str, str]) -> Iterable[str]:
    yield HEADER
    progress = False
    for name in _CANONICAL:
        if name not in laid:
            continue
        if name in _PROGRESS and not progress:
            progress = True
            yield "\n\n## Progress"
        yield "\n\n" + laid[name]


_CANONICAL = ("goal", "constraints", "done", "in_progress", "blocked", "decisions", "next", "critical", "files")
_BY_IMPORTANCE = ("goal", "constraints", "critical", "in_progress", "blocked", "done", "decisions", "next", "files")
_CONSTRAINTS = _BY_IMPORTANCE[1]
_FIRST, _OTHERS, _RULES = _BY_IMPORTANCE[:3], _BY_IMPORTANCE[3:], _BY_IMPORTANCE[1:3]
_PROGRESS = frozenset({"done", "in_progress", "blocked"})


def _blocks(artifact: Artifact) -> dict[str, _Block]:
    """Return every section with its lines, the newest last."""
    threads = artifact.open_threads
    goal = (f"- {cut_bytes(artifact.session_objective, GOAL_BYTES)}",) if artifact.session_objective else ()
    decisions = tuple(
        _line(("[superseded] " if item.status == "superseded" else "") + _said(item.decision, item.source_turn_id)
              + (f" (because {item.rationale})" if item.rationale else ""), DERIVED_BYTES)
        for item in artifact.settled_decisions
    )  # fmt: skip
    later = (*_threads(threads, "deferred"), *_threads(threads, "pending", blocking=False))
    turn_of = artifact.constraint_turn_ids
    constraints = tuple(
        _line(_said(quoted(text), turn_of[text]) if text in turn_of else text, DERIVED_BYTES)
        for text in artifact.constraints
    )
    told = [
        _line(_said(fact.fact, fact.source_turn_id), DERIVED_BYTES)
        for fact in artifact.workspace_facts
        if not fact.path
    ]
    warnings = [line for line in told if not line.startswith("- " + EARLIER)]
    evidence = (*(line for line in told if line not in warnings), *_evidence(artifact))
    files = _files(artifact)
    return {
        "goal": _newest_first("## Goal", goal, 0.08),
        "constraints": _rules(f"## {CONSTRAINTS}", (), constraints, 0.14),
        "done": _newest_first("### Done", _done(artifact), 0.26),
        "in_progress": _newest_first("### In Progress", _threads(threads, "pending", blocking=True), 0.08),
        "blocked": _newest_first("### Blocked", _threads(threads, "blocked"), 0.06),
        "decisions": _newest_first("## Key Decisions", decisions, 0.12),
        "next": _newest_first("## Next Steps", later, 0.09),
        "critical": _rules(f"## {WARNINGS}", evidence, warnings, 0.10),
        "files": _Block("## Relevant Files", files, 0.16, tuple(range(len(files)))),
    }


def _newest_first(heading: str, lines: tuple[str, ...], share: float) -> _Block:
    return _Block(heading, lines, share, tuple(range(len(lines)))[::-1])


def _rules(heading: str, others: Iterable[str], rules: Iterable[str], share: float) -> _Block:
    """Return a section with rules first: strict ones, then the newest; then the other lines (R-317)."""
    told = tuple(dict.fromkeys(rules))
    lines = (*dict.fromkeys(line for line in others if line not in told), *told)
    before = len(lines) - len(told)
    ranked = sorted(range(before, len(lines)), key=lambda place: (not is_strict(lines[place]), -place))
    return _Block(heading, lines, share, (*ranked, *range(before)[::-1]), len(ranked))


def _threads(threads: Iterable[OpenThread], status: str, *, blocking: bool | None = None) -> tuple[str, ...]:
    return tuple(
        _thread(thread) for thread in threads if thread.status == status and blocking in (None, thread.blocking)
    )


def _thread(thread: OpenThread) -> str:
    waits = "waiting on the user: " if thread.owner == "user" else ""
    later = "[deferred] " if thread.status == "deferred" else ""
    return _line(later + waits + _said(thread.item, thread.source_turn_id), DERIVED_BYTES)


def _said(item: str, turn_id: str) -> str:
    """Return the text of an item; a quoted sentence is prefixed with its turn (R-314)."""
    return f"{turn_id}: {item}" if turn_id and is_quoted(item) else item


def _done(artifact: Artifact) -> tuple[str, ...]:
    return tuple(_line(f"{_turns(e.source_turn_ids)}{e.summary}", EPISODE_BYTES) for e in artifact.completed_episodes)


def _turns(ids: Sequence[str]) -> str:
    return f"{ids[0]}{f'…{ids[-1]}' if len(ids) > 1 else ''}: " if ids else ""


def _evidence(artifact: Artifact) -> tuple[str, ...]:
    """Return the latest failures and runtime notes."""
    lines = [
        _line(f"{_turns(episode.source_turn_ids)}{'' if v.kind == 'runtime_note' else 'failed: '}{v.value}",
              VERIFICATION_BYTES)
        for episode in artifact.completed_episodes[::-1]
        for v in episode.verification
        if not v.succeeded and v.kind != "turn_status"
    ]  # fmt: skip
    return tuple(lines[:MAX_EVIDENCE][::-1])


def _files(artifact: Artifact) -> tuple[str, ...]:
    """Return a line per file with its uses and the facts about it, then the recall hints.

    Changed files come first, then files the user named, then the others; within each group, the latest first.
    """
    uses = summed_uses(artifact.completed_episodes)
    notes: dict[str, list[str]] = {}
    for episode in artifact.completed_episodes[::-1]:
        for path in (*episode.touched_paths, *episode.file_uses):
            notes.setdefault(path, [in_words(uses[path])] if path in uses else [])
    for fact in artifact.workspace_facts[::-1]:
        if fact.path:
            notes.setdefault(fact.path, []).append(fact.fact)
    ranked = sorted(notes, key=lambda path: importance(uses.get(path, {})), reverse=True)
    lines = [
        _line(path + (f": {'; '.join(dict.fromkeys(notes[path]))}" if notes[path] else ""), FILE_BYTES)
        for path in ranked
    ]
    hints = [
        _line(f"recall {', '.join(hint.call_ids)} {hint.when}", FILE_BYTES)
        for hint in artifact.page_in_hints[::-1]
        if hint.call_ids
    ]
    return (*lines[:MAX_FILES], *hints[:MAX_HINTS])


def _line(text: str, limit: int) -> str:
    return "- " + cut_bytes(text, limit)


def _size(text: str) -> int:
    return len(text.encode("utf-8"))
