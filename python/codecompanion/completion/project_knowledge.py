"""Chooses the content of other files to show to the model: signatures of names near the cursor, and similar chunks.

Pure: the index and the files arrive as arguments. The selection is ordered by path and line, not by score, so that it
stays the same between requests and hits the server's prompt cache.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace, nsmallest

import msgspec

from codecompanion.completion.near_names import NAME
from codecompanion.completion.prompt_budgets import budgets
from codecompanion.completion.similar_chunks import Chunk, FileChunks, ScoredChunk, score_chunks
from codecompanion.model.code import Definition

_TYPES = ("class", "interface", "type", "module")
_LEFT_OUT = "…"
_MIN_PIECE_CHARS = 60
"""The search for chunks stops when fewer characters than this are free, because hardly any chunk fits."""


class ProjectFile(msgspec.Struct, frozen=True):
    """A file that supplies chunks; `recent`: its recently edited or visited lines."""

    path: str
    chunks: FileChunks
    recent: tuple[tuple[int, int], ...] = ()


class ProjectView(msgspec.Struct, frozen=True):
    """The project information available for one cursor position.

    The edited file contributes only chunks outside the window.

    `files_with`: maps each name to the number of files, out of `total_files`, that contain it. `definitions`: pairs
    (path, definition) of names near the cursor, of imported names, and of the members of types among them.
    """

    files: tuple[ProjectFile, ...] = ()
    definitions: tuple[tuple[str, Definition], ...] = ()
    files_with: Mapping[str, int] = {}
    total_files: int = 0


class KnownFile(msgspec.Struct, frozen=True):
    """The text shown to the model for one file."""

    path: str
    text: str

    def cost(self, chars_per_line: int) -> int:
        """Return the approximate number of characters that the file takes in a prompt."""
        return _entry_cost(self.path, chars_per_line) + len(self.text) + self.text.count("\n") * chars_per_line


def choose(
    view: ProjectView, weights: Mapping[str, float], shown: str, max_chars: int, chars_per_line: int = 0
) -> tuple[KnownFile, ...]:
    """Choose the text of other files to include, by path, in at most `max_chars`, including paths and separators.

    `weights`: the names near the cursor; `shown`: the part of the file already in the prompt; `chars_per_line`: the
    characters that the prompt format adds to each line.
    """
    table = budgets()
    left = max_chars
    signatures: dict[str, list[str]] = defaultdict(list)
    limit = min(table.signature_chars, max_chars // 2)
    for path, line in _signatures(view, weights, shown):
        cost = len(line) + 1 + chars_per_line + (0 if path in signatures else _entry_cost(path, chars_per_line))
        if cost <= limit:
            limit -= cost
            left -= cost
            signatures[path].append(line)
    chosen: dict[str, list[Chunk]] = defaultdict(list)
    lines = {line.strip() for line in shown.split("\n")}
    worth = _worth(view, weights)
    for scored in _by_turns(_best(view, worth), worth, shown):
        if left < _MIN_PIECE_CHARS:
            break
        chunk, path = scored.chunk, scored.path
        lines_cost = (chunk.text.count("\n") + 2) * chars_per_line
        cost = len(chunk.text) + 3 + lines_cost
        cost += 0 if path in chosen or path in signatures else _entry_cost(path, chars_per_line)
        if cost <= left and not _is_known(chunk, lines):
            left -= cost
            chosen[path].append(chunk)
    return tuple(
        KnownFile(path, _text(signatures.get(path, []), chosen.get(path, [])))
        for path in sorted({*signatures, *chosen})
    )


def _entry_cost(path: str, chars_per_line: int) -> int:
    """Return the number of characters needed for a file in addition to its text, in any prompt format (`forms`)."""
    return len(path) + 16 + chars_per_line


def _best(view: ProjectView, worth: Mapping[str, int]) -> list[ScoredChunk]:
    """Return the most similar chunks, best first."""
    table = budgets().chunks
    scored: list[ScoredChunk] = []
    for file in view.files:
        scored += score_chunks(file.path, file.chunks, worth, file.recent)
    return nsmallest(table.max_chunks, scored, key=lambda one: (-one.score, one.path, one.chunk.start))


def _by_turns(scored: Sequence[ScoredChunk], worth: Mapping[str, int], shown: str) -> Iterator[ScoredChunk]:
    """Yield the chunks one by one, each time the chunk that adds most to the prompt and the chunks already yielded."""
    table = budgets().chunks
    known, counts = frozenset(NAME.findall(shown)), dict[str, float](worth)
    turns = [_Turn(one, known, worth, table.novelty) for one in scored]
    left = [(-turn.score(counts), place) for place, turn in enumerate(turns)]
    heapify(left)
    while left:
        place = left[0][1]
        now = -turns[place].score(counts)
        heapreplace(left, (now, place))
        if left[0][1] != place:
            continue  # weights only decrease: a chunk that is still first is the best of all
        heappop(left)
        yield turns[place].scored
        for name in turns[place].near:
            counts[name] *= table.repeated


class _Turn:
    """A queued chunk: its names that also occur near the cursor, and a score that depends on its share of new names."""

    def __init__(self, scored: ScoredChunk, known: frozenset[str], worth: Mapping[str, int], power: float) -> None:
        names = scored.chunk.names
        self.scored = scored
        self.near = sorted(names & worth.keys())
        self._whole = sum(worth[name] for name in self.near)
        self._own: float = scored.score * ((len(names - known) + 1) / (len(names) + 1)) ** power

    def score(self, counts: Mapping[str, float]) -> float:
        """Return the current worth of the chunk, with names weighted by `counts`."""
        return self._own * sum(counts[name] for name in self.near) / self._whole if self._whole else self._own


def _worth(view: ProjectView, weights: Mapping[str, float]) -> dict[str, int]:
    """Return the worth of each name: higher for near and rare names; names in too many chunks are left out."""
    table = budgets().chunks
    total = sum(len(file.chunks.chunks) for file in view.files)
    worth: dict[str, int] = {}
    for name, weight in weights.items():
        count = sum(len(file.chunks.by_name.get(name, ())) for file in view.files)
        if 0 < count <= max(table.few, total * table.max_share):
            worth[name] = round(1000 * weight * _rarity(view, name) * math.log(1 + total / count))
    return worth


def _rarity(view: ProjectView, name: str) -> float:
    if not view.total_files:
        return 1.0
    count = view.files_with.get(name, 0)
    return math.log(1 + view.total_files / (count or budgets().near.unknown_in))


def _is_known(chunk: Chunk, lines: set[str]) -> bool:
    """Return whether most lines of a chunk are already visible in the window, as in a copy or the same file."""
    own = [line.strip() for line in chunk.text.split("\n") if len(line.strip()) > 3]
    known = sum(line in lines for line in own)
    return known > budgets().chunks.max_known * len(own)


def _signatures(view: ProjectView, weights: Mapping[str, float], shown: str) -> Iterator[tuple[str, str]]:
    """Yield (path, line) for definitions of names near the cursor, best first; types are followed by their members."""
    table = budgets().signatures
    by_name: dict[str, list[tuple[str, Definition]]] = defaultdict(list)
    members: dict[tuple[str, str], list[Definition]] = defaultdict(list)
    for path, definition in view.definitions:
        by_name[definition.name].append((path, definition))
        if definition.parent:
            members[path, definition.parent].append(definition)
    done: set[tuple[str, str]] = set()
    for name in sorted(weights, key=lambda name: (-weights[name], name)):
        found = by_name.get(name, [])
        if len(found) > table.max_definitions:
            continue
        for path, definition in found:
            for line in _with_members(definition, members[path, _full_name(definition)][: table.max_members]):
                if (path, line) not in done and line.strip() not in shown:
                    done.add((path, line))
                    yield path, line


def _with_members(definition: Definition, members: Iterable[Definition]) -> Iterator[str]:
    yield definition.signature or definition.name
    if definition.kind in _TYPES:
        yield from (f"    {member.signature or member.name}" for member in members if not _is_private(member.name))


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__init__")


def _full_name(definition: Definition) -> str:
    return f"{definition.parent}.{definition.name}" if definition.parent else definition.name


def _text(signatures: Sequence[str], chunks: Sequence[Chunk]) -> str:
    """Return the text to show for a file: its signatures, then its chunks, with a marker for omitted lines."""
    parts = list(signatures)
    end = 0
    for chunk in sorted(chunks, key=lambda chunk: chunk.start):
        if parts and chunk.start > end + 1:
            parts.append(_LEFT_OUT)
        parts.append(chunk.text)
        end = chunk.end
    return "\n".join(parts)
