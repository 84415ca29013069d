"""Formats other files of the project for a model: in the format of its family, or else as comments (R-259).

Qwen has a format for the files of a repository. Other models see them as comments at the top of the file: every model
understands comments, and none mistakes them for the code at the cursor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import PurePosixPath

import msgspec

from codecompanion.completion.families import Family, without_tokens
from codecompanion.completion.project_knowledge import KnownFile
from codecompanion.completion.prompt import FimPrompt, build_prompt
from codecompanion.formats.package_table import package_table


def build_project_prompt(
    family: Family, imports: str, prefix: str, suffix: str, *, path: str, project: str, known: Sequence[KnownFile]
) -> FimPrompt:
    """Return the prompt with project knowledge, or without it if there is none. `path`: the edited file."""
    made = build_prompt(family, imports, prefix, suffix)
    if not known:
        return made
    if family.repository is None or not family.fills_in:
        comments = as_comments(known, path, family)
        start = len(family.prefix) if family.fills_in else 0
        return msgspec.structs.replace(made, prompt=made.prompt[:start] + comments + made.prompt[start:])
    name, mark = family.repository.name, family.repository.file
    files = "".join(f"{mark}{without_tokens(one.path, family)}\n{without_tokens(one.text, family)}\n" for one in known)
    head = f"{name}{without_tokens(project, family)}\n{files}{mark}{without_tokens(path, family)}\n"
    return msgspec.structs.replace(made, prompt=head + made.prompt, stop=(*made.stop, mark, name))


def line_cost(family: Family, path: str) -> int | None:
    """Return how many characters a prompt for `path` adds to each line of another file, or None if it can show none."""
    if family.repository is not None and family.fills_in:
        return 0
    mark = _marks().get(PurePosixPath(path).suffix.lower())
    return None if mark is None else len(mark) + 1


def as_comments(known: Iterable[KnownFile], path: str, family: Family) -> str:
    """Return the files as comments in the language of `path`, or "" if its comment syntax is unknown."""
    mark = _marks().get(PurePosixPath(path).suffix.lower())
    if mark is None:
        return ""
    lines = (line for one in known for line in (f"Path: {one.path}", *one.text.split("\n")))
    return without_tokens("".join(f"{mark} {line}".rstrip() + "\n" for line in lines), family)


@cache
def _marks() -> dict[str, str]:
    table: dict[str, str] = package_table("completion/comment_marks.toml")
    return {ending: mark for mark, endings in table.items() for ending in endings.split()}
