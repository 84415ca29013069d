"""The artifact as the model reads it: seven sections within a byte budget (R-316…R-318).

Blocks are laid in by importance, goal, constraints and warnings first, and shown in their canonical order, so that a
small budget costs the least important sections (R-317). Every item stands on one line behind `- `: it cannot open a
section.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from codecompanion.context.artifact_schema import Artifact, OpenThread
from codecompanion.context.ledger_lines import neutral

RENDERER_VERSION = 1
HEADER = "Compaction Summary:"
NONE_LINE = "- (none)"
_MARK = "…"

GOAL_BYTES, DERIVED_BYTES, EPISODE_BYTES, VERIFICATION_BYTES, FILE_BYTES = 240, 320, 360, 240, 240
MOST_FILES, MOST_HINTS, MOST_WARNINGS = 12, 3, 8


class SummarySize(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long the rendered summary may be: input limit / `share`, clamped, at most a part of the target (R-317)."""

    share: int = 64
    min_tokens: int = 256
    max_tokens: int = 1024
    target_share: int = 4
    bytes_per_token: int = 4


def budget_bytes(size: SummarySize, input_limit: int, target: int) -> int:
    """Return the bytes the rendered summary may have; `target` 0 = there is none."""
    tokens = max(size.min_tokens, min(size.max_tokens, input_limit // max(1, size.share)))
    if target > 0:
        tokens = min(tokens, target // max(1, size.target_share))
    return tokens * size.bytes_per_token


def cut_bytes(text: str, limit: int) -> str:
    """Return the text on one line, in at most `limit` bytes of UTF-8, never in the middle of a character."""
    text = " ".join(neutral(text).split())
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8")
    room = max(0, limit - len(_MARK.encode()))
    return data[:room].decode("utf-8", "ignore").rstrip() + (_MARK if limit >= len(_MARK.encode()) else "")


class _Block(msgspec.Struct, frozen=True):
    """One section: its heading, its lines with the most important first, and its share of the budget."""

    heading: str
    lines: tuple[str, ...]
    share: float
    newest_last: bool = True


def render(artifact: Artifact, limit: int) -> str:
    """Return the summary in at most `limit` bytes; what is left out is what matters least."""
    blocks = _blocks(artifact)
    room = limit - _size(HEADER)
    laid: dict[str, str] = {}
    for name in _BY_IMPORTANCE:
        text = _lay(blocks[name], max(0, int(limit * blocks[name].share)))
        if name in _PROGRESS and not laid.keys() & _PROGRESS:
            room -= _size("\n\n## Progress")
        if _size("\n\n" + text) > room:
            # the first block that does not fit ends it.
            break
        room -= _size("\n\n" + text)
        laid[name] = text
    return "".join(_assembled(laid)) if room >= 0 else cut_bytes(HEADER, limit)


def _assembled(laid: dict[str, str]) -> Iterable[str]:
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
_PROGRESS = frozenset({"done", "in_progress", "blocked"})


def _lay(block: _Block, share: int) -> str:
    """Return the section with as many lines as its share holds, at least the most important one."""
    kept: list[str] = []
    left = share - _size(block.heading)
    for line in block.lines:
        left -= _size(line) + 1
        if kept and left < 0:
            break
        kept.append(line)
    if block.newest_last:
        kept.reverse()
    return "\n".join((block.heading, *(kept or [NONE_LINE])))


def _blocks(artifact: Artifact) -> dict[str, _Block]:
    """Return every section, its lines with the newest first."""
    threads = artifact.open_threads[::-1]
    goal = (f"- {cut_bytes(artifact.session_objective, GOAL_BYTES)}",) if artifact.session_objective else ()
    decisions = tuple(
        _line(("[superseded] " if item.status == "superseded" else "") + item.decision
              + (f" (because {item.rationale})" if item.rationale else ""), DERIVED_BYTES)
        for item in artifact.settled_decisions[::-1]
    )  # fmt: skip
    later = (*_threads(threads, "pending", blocking=False), *_threads(threads, "deferred"))
    return {
        "goal": _Block("## Goal", goal, 0.08),
        "constraints": _Block(
            "## Constraints & Preferences", tuple(_line(c, DERIVED_BYTES) for c in artifact.constraints[::-1]), 0.14
        ),
        "done": _Block("### Done", _done(artifact), 0.26),
        "in_progress": _Block("### In Progress", _threads(threads, "pending", blocking=True), 0.08),
        "blocked": _Block("### Blocked", _threads(threads, "blocked"), 0.06),
        "decisions": _Block("## Key Decisions", decisions, 0.12),
        "next": _Block("## Next Steps", later, 0.09),
        "critical": _Block("## Critical Context", _critical(artifact), 0.10),
        "files": _Block("## Relevant Files", _files(artifact), 0.16, newest_last=False),
    }


def _threads(threads: Iterable[OpenThread], status: str, *, blocking: bool | None = None) -> tuple[str, ...]:
    return tuple(
        _thread(thread) for thread in threads if thread.status == status and blocking in (None, thread.blocking)
    )


def _thread(thread: OpenThread) -> str:
    waits = "waiting on the user: " if thread.owner == "user" else ""
    later = "[deferred] " if thread.status == "deferred" else ""
    return _line(later + waits + thread.item, DERIVED_BYTES)


def _done(artifact: Artifact) -> tuple[str, ...]:
    return tuple(_line(f"{_turns(e.source_turn_ids)}{e.summary}", EPISODE_BYTES)
                 for e in artifact.completed_episodes[::-1])  # fmt: skip


def _turns(ids: Sequence[str]) -> str:
    return f"{ids[0]}{f'…{ids[-1]}' if len(ids) > 1 else ''}: " if ids else ""


def _critical(artifact: Artifact) -> tuple[str, ...]:
    """Return warnings, then what failed and what the runtime noted, the newest first."""
    warnings = [_line(fact.fact, DERIVED_BYTES) for fact in artifact.workspace_facts[::-1] if not fact.path]
    evidence = [
        _line(f"{_turns(episode.source_turn_ids)}{'' if v.kind == 'runtime_note' else 'failed: '}{v.value}",
              VERIFICATION_BYTES)
        for episode in artifact.completed_episodes[::-1]
        for v in episode.verification
        if not v.succeeded and v.kind != "turn_status"
    ]  # fmt: skip
    return tuple(dict.fromkeys([*warnings, *evidence[:MOST_WARNINGS]]))


def _files(artifact: Artifact) -> tuple[str, ...]:
    """Return the files by how lately they were touched, with what is known of them, then what can be recalled."""
    notes: dict[str, list[str]] = {}
    for episode in artifact.completed_episodes[::-1]:
        for path in episode.touched_paths:
            notes.setdefault(path, [])
    for fact in artifact.workspace_facts[::-1]:
        if fact.path:
            notes.setdefault(fact.path, []).append(fact.fact)
    lines = [_line(path + (f": {'; '.join(dict.fromkeys(said))}" if said else ""), FILE_BYTES)
             for path, said in notes.items()]  # fmt: skip
    hints = [
        _line(f"recall {', '.join(hint.call_ids)} {hint.when}", FILE_BYTES)
        for hint in artifact.page_in_hints[::-1]
        if hint.call_ids
    ]
    return (*lines[:MOST_FILES], *hints[:MOST_HINTS])


def _line(text: str, limit: int) -> str:
    return "- " + cut_bytes(text, limit)


def _size(text: str) -> int:
    return len(text.encode("utf-8"))
