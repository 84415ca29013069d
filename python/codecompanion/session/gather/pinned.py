"""Pieces the user wants in every question: read again as they are now, first of all (issue 11, section 2)."""

from __future__ import annotations

from collections.abc import Callable, Collection

from codecompanion.model.gathered import Snippet
from codecompanion.retrieval.smart_snippets import MAX_LINES_AFTER_START, split_lines
from codecompanion.session.gather.project_code import ProjectCode


def read_pinned(code: ProjectCode, places: Collection[tuple[str, int]], check: Callable[[], None]) -> list[Snippet]:
    """Return the definitions that begin at these places (path, line), or the lines from there on. Blocks."""
    found = list[Snippet]()
    for path, start in sorted(places):
        check()
        text = code.read(path) if path in code.listed(check) or path in code.unsaved else None
        lines = split_lines(text) if text is not None else []
        if not 1 <= start <= len(lines):
            continue
        here = [one for one in code.parse(path).definitions if one.start == start]
        end = here[0].end if here else min(start + MAX_LINES_AFTER_START, len(lines))
        found.append(
            Snippet(
                path=path,
                start=start,
                end=end,
                text="\n".join(lines[start - 1 : end]),
                kind=here[0].kind if here else "block",
                name=here[0].name if here else "",
                score=1.0,
                is_selected=True,
                source="pinned",
                scores=(("pinned", 1.0),),
            )
        )
    return found
