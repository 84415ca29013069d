"""Describes a project's architecture from file names and manifests: languages, frameworks, folders (R-240).

It is attached to questions about the structure of the project. The names are data (`architecture.toml`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from codecompanion.formats.package_table import package_table
from codecompanion.formats.plural import counted
from codecompanion.retrieval.rendering import shown

MAX_FOLDERS, MAX_LANGUAGES, MIN_PATTERN_FOLDERS = 20, 6, 2
MAX_MANIFEST_CHARS = 100_000


def manifests_of(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the manifests at the root of a project; their text names the tools that the project uses."""
    known = package_table("retrieval/architecture.toml")["manifests"]
    return tuple(path for path in paths if path in known)


def describe_architecture(
    paths: Sequence[str], manifests: Mapping[str, str], languages: Mapping[str, int], entry_points: Sequence[str]
) -> str:
    """Return a few lines about a project; "" if it has no files.

    `manifests` are the contents of `manifests_of`; `languages` counts files by language.
    """
    if not paths:
        return ""
    table = package_table("retrieval/architecture.toml")
    lines = [f"- Size: {counted(len(paths), 'file')}"]
    most = sorted(languages.items(), key=lambda one: (-one[1], one[0]))[:MAX_LANGUAGES]
    lines += _line("Languages", [f"{name} ({count})" for name, count in most])
    lines += _line("Built with", dict.fromkeys(table["manifests"][path] for path in manifests))
    lines += _line("Frameworks and libraries", _frameworks(manifests, table["frameworks"]))
    lines += _line("Patterns", _patterns(paths, table["patterns"]))
    lines += _line("Entry points", map(shown, entry_points))
    lines += _line("Folders", _folders(paths))
    return "\n".join(lines)


def _line(title: str, items: Iterable[str]) -> list[str]:
    found = ", ".join(items)
    return [f"- {title}: {found}"] if found else []


def _frameworks(manifests: Mapping[str, str], names: Mapping[str, str]) -> list[str]:
    text = "\n".join(content[:MAX_MANIFEST_CHARS] for content in manifests.values()).lower()
    return [
        shown_name
        for name, shown_name in names.items()
        if name in text and re.search(rf"(?<![\w@/.-]){re.escape(name)}(?![\w/.-]*[\w/])", text)
    ]


def _patterns(paths: Sequence[str], patterns: Mapping[str, Sequence[str]]) -> list[str]:
    there = {part for path in paths for part in path.split("/")[:-1]}
    return [name for name, folders in patterns.items() if len(there.intersection(folders)) >= MIN_PATTERN_FOLDERS]


def _folders(paths: Sequence[str]) -> list[str]:
    """Return the folders with the most files, two levels deep, with their file counts."""
    count = Counter("/".join(path.split("/")[:-1][:2]) for path in paths if "/" in path)
    largest = sorted(count.items(), key=lambda one: (-one[1], one[0]))[:MAX_FOLDERS]
    return [f"{shown(folder)}/ ({number})" for folder, number in sorted(largest)]
