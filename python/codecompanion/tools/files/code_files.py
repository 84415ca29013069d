"""Detects files that a program runs without the user starting it; every change to one asks, with a reason. Pure.

The names are data (`guarded_files.toml`), with the criteria in its header. A change can also turn an ordinary file into
one of these (`why_it_becomes_code`), by its first lines or by a name that a language looks for.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex

if TYPE_CHECKING:
    from pathspec import PathSpec
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

GUARDED = "tools/files/guarded_files.toml"


@cache
def groups() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return (reason, patterns) pairs; patterns use the `.gitignore` syntax, match in any folder and ignore case."""
    table = package_table(GUARDED)
    return tuple(
        (reason, tuple(pattern for tool in tools.values() for pattern in tool["files"].split()))
        for reason, tools in table.items()
    )


OWN_PATTERN = "it is listed in tools.opts.guarded_files"


class _Kind(NamedTuple):
    reason: str
    anywhere: PathSpec[GitIgnoreSpecPattern]
    names: PathSpec[GitIgnoreSpecPattern]


@cache
def _built_in() -> tuple[_Kind, ...]:
    """Return the reasons, each with its path patterns and its exact file names (the `build` folder is not `BUILD`)."""

    def is_name(pattern: str) -> bool:
        return "/" not in pattern and not pattern.startswith(".")

    return tuple(
        _Kind(
            reason,
            _spec(tuple(f"**/{one}" if "/" in one.rstrip("/") else one for one in patterns if not is_name(one))),
            _spec(tuple(filter(is_name, patterns))),
        )
        for reason, patterns in groups()
    )


@cache
def _spec(patterns: tuple[str, ...]) -> PathSpec[GitIgnoreSpecPattern]:
    from pathspec import PathSpec  # not needed until a file changes
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    return PathSpec(GitIgnoreSpecPattern(pattern.casefold()) for pattern in patterns)


def why_it_runs_code(paths: Iterable[str], root: str, extra: Sequence[str] = (), otherwise: str = "") -> str:
    """Return why a change to the file always asks, or "" for an ordinary file.

    `paths` are the names of this one file: as the model wrote it, and with symlinks resolved. `extra` are the user's
    patterns; the last match wins, and a leading `!` excludes the file. `otherwise` is the reason if no name matches.
    """
    reason = ""
    for path in paths:
        reason = reason or _reason(comparable(path, root), extra, otherwise)
    return reason


def _reason(path: str, extra: Sequence[str], otherwise: str) -> str:
    name = path.rpartition("/")[2]
    kinds = (kind.reason for kind in _built_in() if kind.anywhere.match_file(path) or kind.names.match_file(name))
    found = next(kinds, otherwise)
    for pattern in extra:
        if pattern.startswith("!"):
            found = "" if _spec((pattern[1:],)).match_file(path) else found
        elif _spec((pattern,)).match_file(path):
            found = OWN_PATTERN
    return found


_RUN_BY_PLACE = frozenset("bin sbin libexec cgi-bin hooks plugins completions autoload plugin ftplugin".split())
_EVAL = regex(r"\beval:")
_HEAD = regex(r"(?:ref: |[0-9a-f]{40}\s*\Z)")
_GIT_CONFIG = regex(r"(?im)^[ \t]*\[core\b")
_UNIT = regex(r"\s*(?:[#;].*\n\s*)*\[(?:Unit|Service|Desktop Entry)\]")


def why_it_becomes_code(path: str, before: str, after: str, *, is_new: bool, is_in_package: bool = False) -> str:
    """Return why a change turns the file into code that a program runs (judged by its first lines or name), or else "".

    `is_in_package`: its folder is a Python package, whose modules are imported by their full names.
    """
    *folders, name = path.casefold().split("/")
    stem, _, ending = name.rpartition(".")
    starts_a_program = after.startswith("#!") and not before.startswith("#!")
    if starts_a_program and (not stem or _RUN_BY_PLACE & set(folders)):
        return "it starts with #! in a folder that programs are run from"
    if _runs_in_emacs(_ends(after)) and not _runs_in_emacs(_ends(before)):
        return "Emacs evaluates its local variables"
    if "//go:generate" in after and after.count("//go:generate") > before.count("//go:generate"):
        return "go generate runs its new line"
    if name == "head" and _HEAD.match(after):
        return "git treats the folder of this file as a repository"
    if name == "config" and _GIT_CONFIG.search(after):
        return "git reads it as the configuration of a repository"
    if is_new and _UNIT.match(after):
        return "a login or a service manager runs it"
    if is_new and ending == "py" and not is_in_package and stem in sys.stdlib_module_names:
        return f"it shadows the standard library module {stem}"
    return ""


def _runs_in_emacs(text: str) -> bool:
    """Return whether Emacs evaluates part of the text when it opens the file."""
    first = any(_EVAL.search(line.partition("-*-")[2]) for line in text.splitlines())
    return first or _EVAL.search(text.partition("Local Variables:")[2]) is not None


def _ends(text: str) -> str:
    """Return the parts where Emacs looks for variables: the first two lines, and the last 3,000 characters."""
    return "\n".join(text[:2000].split("\n", 2)[:2]) + "\n" + text[-3000:]


def comparable(path: str, root: str) -> str:
    """Return the path relative to the root, without `..`, normalised as lenient file systems do.

    Such file systems ignore case, invisible characters (HFS+), or trailing dots and blanks (NTFS).
    """
    absolute = os.path.normpath(path if path.startswith("/") else f"{root}/{path}")
    relative = os.path.relpath(absolute, root)
    if relative.startswith(".."):
        relative = absolute
    parts = [_plain(part) for part in relative.split("/")]
    inside = [_plain(part) for part in root.split("/")]
    if {".git", ".hg", ".svn", ".jj"} & set(inside):
        parts = [".git", *parts]  # the workspace is inside a repository's git folder
    return "/".join(part for part in parts if part)


def _plain(part: str) -> str:
    shown = "".join(char for char in unicodedata.normalize("NFKC", part) if unicodedata.category(char) != "Cf")
    return shown.casefold().split(":")[0].rstrip(". ") or shown
