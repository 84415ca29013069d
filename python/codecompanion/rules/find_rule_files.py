"""Finds the rule files that a group names (R-549), and decides which of them may be read.

Files of a folder are marked `of_folder`: they join a chat once the user trusts the folder (`session.trust`). A
repository must not gain access to the user's other files: a link or include that leads outside is read only if its
target is a Markdown or text file in a folder for rules, and such a file is marked as well. A file that the user's
configuration names by an absolute or `~` path belongs to the user, wherever it is; if the configuration names a glob or
a folder, only files outside the project do.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from codecompanion.rules.parsers import Include
from codecompanion.settings_sections import RuleFile

RULE_SUFFIXES = frozenset({".md", ".mdc", ".markdown", ".txt", ".rst"})
MAX_FILES = 200
"""Maximum number of files from one glob or folder; a higher number indicates a mistake (such as `**` matching
everything).
"""

_GLOB_SIGNS = frozenset("*?[")
_SKIPPED_FOLDERS = frozenset({".git", "node_modules", "__pycache__", ".venv"})


class Found(msgspec.Struct, frozen=True):
    """An existing rule file: its real path, its label, and whether its includes are followed.

    `of_folder`: the file is in the workspace, or linked from it, and the user's configuration does not name it.
    """

    real: Path
    label: str
    follows_includes: bool = False
    of_folder: bool = False


class Problem(msgspec.Struct, frozen=True):
    """The reason why a file of the group was not read, as one sentence that names the file."""

    text: str


class Missing(msgspec.Struct, frozen=True):
    """An entry of the group that matches no file; this is common for the default group."""

    path: str


def find_files(entry: RuleFile, root: Path) -> Iterator[Found | Problem | Missing]:
    """Yield the files that match one entry (a path, a glob or a folder), sorted."""
    named = _expanded(entry.path)
    by_user = named.is_absolute()
    base = root / named
    follows = entry.parser == "claude"
    if "\0" in entry.path:
        yield Problem(f"The rule file path {entry.path!r} contains a NUL character.")
    elif _GLOB_SIGNS & set(entry.path) and not os.path.lexists(base):
        yield from _several(entry.path, _matches(str(base)), root, follows, by_user)
    elif base.is_dir():
        yield from _several(entry.path, _rule_files_in(base), root, follows, by_user)
    elif os.path.lexists(base):
        yield _checked(base, root, follows, by_user)
    else:
        yield Missing(entry.path)


def find_include(include: Include, source: Found, root: Path) -> Found | Problem | None:
    """Return the file that an include names, next to its source or in the workspace.

    None if the text is not an include.
    """
    beside = source.real.parent
    for spelling in include.spellings:
        named = _expanded(spelling)
        for base in (beside, root):
            path = base / named
            if "\0" not in spelling and _is_file(path):
                return _checked_include(path, source, root)
    if include.alone and any(sign in include.spellings[-1] for sign in "/."):
        return Problem(f"{source.label} includes @{include.spellings[0]}, which does not exist.")
    return None


def label_of(real: Path, root: Path) -> str:
    """Return the displayed name of a rule file: relative to the workspace, with `~`, or absolute."""
    for base, prefix in ((_real(root), ""), (_real(Path.home()), "~/")):
        if base in real.parents:
            return prefix + real.relative_to(base).as_posix()
    return real.as_posix()


def _several(
    named: str, paths: Iterator[Path], root: Path, follows: bool, by_user: bool
) -> Iterator[Found | Problem | Missing]:
    found = []
    for path in paths:
        found.append(path)
        if len(found) > MAX_FILES:
            yield Problem(f"Rules {named}: more than {MAX_FILES} files match, so none was read. Name fewer files.")
            return
    if not found:
        yield Missing(named)
    for path in sorted(found):
        yield _checked(path, root, follows, by_user, is_named=False)


def _matches(pattern: str) -> Iterator[Path]:
    # `Path.glob` does not accept absolute patterns.
    for name in glob.iglob(pattern, recursive=True, include_hidden=True):  # noqa: PTH207
        path = Path(name)
        if _is_file(path) and not _SKIPPED_FOLDERS & set(path.parts):
            yield path


def _rule_files_in(folder: Path) -> Iterator[Path]:
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _SKIPPED_FOLDERS)
        for name in names:
            if Path(name).suffix.lower() in RULE_SUFFIXES:
                yield Path(directory, name)


def _checked(path: Path, root: Path, follows: bool, by_user: bool, *, is_named: bool = True) -> Found | Problem:
    real = _real(path)
    places = (_real(root), repository_of(root), _real(Path.home()))
    inside = _real(root) in real.parents
    is_named_so = not by_user and inside and not path.is_symlink()  # `AGENTS.md -> .env` is not
    if not by_user and not is_named_so and not (_is_below(real, places) and _is_rule_text(real, path.name)):
        return Problem(
            f"Rules {path.name}: it is a link to {real}, which is not read for a project. To use it, name it in your"
            " configuration by its absolute path."
        )
    of_project = inside or repository_of(root) in real.parents
    return Found(real, label_of(real, root), follows, not by_user or (of_project and not is_named))


def _checked_include(path: Path, source: Found, root: Path) -> Found | Problem:
    real, workspace, home = _real(path), _real(root), _real(Path.home())
    repository = repository_of(root)
    from_project = workspace in source.real.parents
    places = (repository, home / ".claude") if from_project else (home, source.real.parent)
    if workspace in real.parents or (_is_below(real, places) and _is_rule_text(real)):
        of_project = _is_below(real, (workspace, repository)) and not _is_below(real, (source.real.parent,))
        of_folder = source.of_folder or of_project
        return Found(real, label_of(real, root), follows_includes=True, of_folder=of_folder)
    return Problem(f"{source.label} includes {real}, which is outside the folders its rules may include.")


def _is_below(real: Path, places: tuple[Path, ...]) -> bool:
    return any(place in real.parents for place in places)


def _is_rule_text(real: Path, asked_for: str = "") -> bool:
    return real.suffix.lower() in RULE_SUFFIXES or real.name == asked_for or real.name.endswith("rules")


def repository_of(root: Path) -> Path:
    """Return the root of the git repository that contains the workspace, or the workspace if there is no repository."""
    real = _real(root)
    for folder in (real, *real.parents):
        if os.path.lexists(folder / ".git"):
            return folder
    return real


def _expanded(path: str) -> Path:
    return Path.home() / path[2:] if path.startswith("~/") else Path(path)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
