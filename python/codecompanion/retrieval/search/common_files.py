"""Lists the common files that describe a project, for questions about the project as a whole (R-236).

Contains the document's list of names and our additions: language manifests and program entry points.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

BROAD_WORDS = ("overview", "architecture", "structure", "stack", "codebase", "project", "scaffold")
BROAD_PHRASE = "how does the app work"
MANIFESTS = ("pyproject.toml", "Cargo.toml", "go.mod")
"""Names of manifests that the document does not list."""
NAMES = (
    *("README.md", "readme.md", "package.json", "CONTRIBUTING.md", "docs/README.md", "docs/architecture.md"),
    *MANIFESTS,
)
ENTRY_POINTS = ("main.py", "src/main.*", "src/index.*", "lua/*/init.lua", "plugin/*.lua")
MAX_ENTRY_POINTS = 3
MAX_CHARS = 5000
CUT = "...(truncated)"


def is_broad(question: str) -> bool:
    """Return whether a question is about the project as a whole (R-236)."""
    lowered = question.lower()
    return BROAD_PHRASE in lowered or any(word in lowered for word in BROAD_WORDS)


def common_files(paths: Iterable[str], *, every_manifest: bool = True) -> tuple[str, ...]:
    """Return the project's common files (README, manifests, …), followed by at most three entry points.

    `every_manifest`: include manifests that the document does not list.
    """
    known = set(paths)
    named = tuple(name for name in NAMES if name in known and (every_manifest or name not in MANIFESTS))
    return (*named, *_entry_points(known)[:MAX_ENTRY_POINTS])


def cut_common(text: str) -> str:
    """Return the text of a common file, truncated after 5000 characters with a marker (R-236)."""
    return text if len(text) <= MAX_CHARS else text[:MAX_CHARS] + CUT


def _entry_points(known: set[str]) -> list[str]:
    found = list[str]()
    for pattern in ENTRY_POINTS:
        same_depth = (path for path in known if path.count("/") == pattern.count("/"))
        found += sorted(path for path in same_depth if fnmatch.fnmatchcase(path, pattern))
    return found
