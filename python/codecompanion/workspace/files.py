"""Lists the project's files, and reads text files.

The walk leaves out files that the project itself ignores (`.gitignore` at every level up to the repository's root,
`.git/info/exclude`) and folders that are never a project's own text. It does not follow symbolic links; targets inside
the workspace are found at their own path.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from codecompanion.errors import CodeCompanionError
from codecompanion.formats import text_files

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

IGNORED_NAMES = frozenset(
    {".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv", ".tox", ".nox", ".DS_Store"}
    | {".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis"}
)
"""Files and folders that are left out even without an ignore file."""


class _Ignores:
    """The ignore rules of one folder: the nearest ignore file that matches decides, as in git."""

    def __init__(self, layers: tuple[tuple[str, GitIgnoreSpec], ...] = ()) -> None:
        self._layers = layers

    def inside(self, folder: str, *names: str) -> _Ignores:
        """Return these rules extended by those in the named ignore files of the folder."""
        layers = self._layers
        for name in names:
            spec = _read_ignore_file(Path(folder, name))
            if spec is not None:
                layers = (*layers, (folder.rstrip("/") + "/", spec))
        return _Ignores(layers)

    def ignores(self, path: str, is_folder: bool) -> bool:
        """Return whether the absolute path is ignored, without considering its parents."""
        name = path + "/" if is_folder else path
        for base, spec in reversed(self._layers):
            verdict = spec.check_file(name[len(base) :]).include
            if verdict is not None:
                return verdict
        return False


def _read_ignore_file(path: Path) -> GitIgnoreSpec | None:
    try:
        content = text_files.read_bytes(path, 1_000_000)
    except CodeCompanionError:
        return None
    from pathspec import GitIgnoreSpec  # not needed before a folder is searched

    lines = text_files.decode(content).text.splitlines()
    spec = GitIgnoreSpec.from_lines(line for line in lines if _is_pattern(line))
    return spec if len(spec) else None


def _is_pattern(line: str) -> bool:
    """Return whether pathspec accepts the line; git skips lines that it cannot parse, and so does this module."""
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def _outer_ignores(folder: str) -> _Ignores:
    """Return the rules of the parent folders, up to the root of the folder's repository.

    If the folder itself is ignored, it was requested on purpose, and no rules apply.
    """
    folders = [folder, *(str(parent) for parent in Path(folder).parents)]
    for depth, root in enumerate(folders):
        if os.path.lexists(Path(root, ".git")):
            rules = _Ignores().inside(root, ".git/info/exclude")
            for above in reversed(folders[1 : depth + 1]):
                rules = rules.inside(above, ".gitignore")
            return _Ignores() if depth and rules.ignores(folder, is_folder=True) else rules
    return _Ignores()


def walk(folder: Path, *, include_ignored: bool = False) -> Iterator[Path]:
    """Yield every regular file below the folder, sorted by path parts, applying the parents' ignore rules too.

    Folders that cannot be read are left out. `include_ignored`: yield ignored files too, except git's own.
    """
    rules = _Ignores() if include_ignored else _outer_ignores(str(folder))
    yield from _walk(str(folder), rules, include_ignored)


def _walk(folder: str, outer: _Ignores, include_ignored: bool) -> Iterator[Path]:
    rules = outer if include_ignored else outer.inside(folder, ".gitignore")
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
    except OSError:
        return
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name == ".git" or (not is_folder and not entry.is_file(follow_symlinks=False)):
            continue
        if not include_ignored and (entry.name in IGNORED_NAMES or rules.ignores(entry.path, is_folder)):
            continue
        if is_folder:
            yield from _walk(entry.path, rules, include_ignored)
        else:
            yield Path(entry.path)
