"""Finds prompt files, `*.md` in the user's folders and in the project's, and decides which may be read.

A project's file must be inside the repository: a link to the outside is refused. Files in the project belong to the
project, even if the user's configuration names their folder.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from codecompanion.formats import text_files
from codecompanion.formats.short_path import short_path
from codecompanion.prompt_library.prompt_file import Origin

PROJECT_FOLDER = Path(".codecompanion", "prompts")
MAX_FILES, MAX_FOLDERS, MAX_DEPTH, MAX_BYTES = 200, 500, 5, 262_144
"""Limits on files, folders, depth and size; anything beyond them is not read."""


class PromptText(msgspec.Struct, frozen=True):
    """The text of a prompt file with Unix line endings; `label` is its displayed name."""

    real: str
    label: str
    sha256: str
    origin: Origin
    text: str
    stem: str


class Refused(msgspec.Struct, frozen=True):
    """The reason why a file was not read, as one sentence that names the file."""

    text: str


def project_of(root: Path) -> Path:
    """Return the repository that contains a folder, else the folder."""
    real = root.resolve()
    return next((folder for folder in (real, *real.parents) if folder.joinpath(".git").exists()), real)


def find_prompts(user_folders: Sequence[str], own_folder: str, root: Path) -> Iterator[PromptText | Refused]:
    """Yield the files of the user's folders, then the project's. Blocks.

    `own_folder` always belongs to the user, even while it is open as a project; other folders below the project's
    folder belong to the project.
    """
    project = project_of(root)
    seen = set[str]()
    folders = [(Path(own_folder).expanduser(), True)] if own_folder else []
    folders += [(root / Path(folder).expanduser(), False) for folder in user_folders]
    for folder, is_own in (*folders, (project / PROJECT_FOLDER, False)):
        real = Path(os.path.realpath(folder))
        is_project = not is_own and (real.is_relative_to(project) or folder.absolute().is_relative_to(project))
        yield from _files_in(folder, project if is_project else None, seen)


def _files_in(folder: Path, project: Path | None, seen: set[str]) -> Iterator[PromptText | Refused]:
    paths = list(islice(_markdown_files(folder, follow=project is None), MAX_FILES + 1))
    if len(paths) > MAX_FILES:
        yield Refused(f"{folder}: it contains more than {MAX_FILES} prompts; the others are not read.")
    for path in paths[:MAX_FILES]:
        real = Path(os.path.realpath(path))
        if str(real) in seen:
            continue
        seen.add(str(real))
        label = _label(path, project)
        if project is not None and project not in real.parents:
            yield Refused(f"{label}: it links outside the project, so it is not read.")
            continue
        try:
            content = text_files.read_bytes(real, MAX_BYTES)
        except text_files.UnreadableFile as error:
            yield Refused(f"{label}: {error}")
            continue
        if text_files.is_binary(content):
            yield Refused(f"{label}: it is a binary file.")
            continue
        text = text_files.printable(text_files.decode(content).text)
        origin: Origin = "user" if project is None else "project"
        yield PromptText(str(real), label, hashlib.sha256(content).hexdigest(), origin, text, path.stem)


def _markdown_files(folder: Path, *, follow: bool) -> Iterator[Path]:
    for current, folders, names in islice(os.walk(folder, followlinks=follow), MAX_FOLDERS):
        depth = len(Path(current).relative_to(folder).parts)
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if depth < MAX_DEPTH else []
        yield from (Path(current, name) for name in sorted(names) if name.endswith(".md") and name[0] != ".")


def _label(path: Path, project: Path | None) -> str:
    """Return the displayed name of a file: relative to the project's folder, or to the home folder."""
    absolute = path.absolute()
    if project is not None and absolute.is_relative_to(project):
        name = absolute.relative_to(project).as_posix()
    else:
        name = short_path(absolute)
    return "".join(character if character.isprintable() else "\ufffd" for character in name)
