"""Turns locations into search results with their current text, reading each file only once (R-236, R-237)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from codecompanion.model.found_code import COMMON, FoundCode, SearchTier
from codecompanion.retrieval.ranking.places import Place
from codecompanion.retrieval.search.common_files import common_files, cut_common
from codecompanion.session.code.searched_project import SearchedProject


class FoundPlaces:
    """Reads the text of the results of one search."""

    def __init__(self, project: SearchedProject) -> None:
        self._project = project
        self._lines: dict[str, list[str] | None] = {}

    def found(self, place: Place, tier: SearchTier, signals: tuple[tuple[str, float], ...] = ()) -> FoundCode | None:
        """Return the search result for a location, with its text, or None if the file is gone or too short."""
        if place.path not in self._lines:
            text = self._project.read(place.path)
            self._lines[place.path] = None if text is None else text.split("\n")
        lines = self._lines[place.path]
        if lines is None or place.start > len(lines):
            return None
        end = min(place.end, len(lines))
        text = "\n".join(lines[place.start - 1 : end])
        return FoundCode(
            place.path, place.start, end, place.score, tier, place.symbol, text, kind=place.kind, signals=signals
        )

    def common(self, tier: SearchTier, paths: Iterable[str], *, every_manifest: bool) -> Iterator[FoundCode]:
        """Yield results for those `paths` that are common project files; see `common_files` (R-236)."""
        for path in common_files(paths, every_manifest=every_manifest):
            text = self._project.read(path)
            if text is not None:
                lines = text.count("\n") + (not text.endswith("\n"))
                yield FoundCode(path, 1, max(lines, 1), 0.0, tier + COMMON, text=cut_common(text), kind="file")
