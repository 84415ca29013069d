"""Files that something else than the user runs: a change of one of them is always asked about, and says why. Pure.

The names are data (`guarded_files.toml`, issue 20), which says what belongs there. A change can also make a file one
of that kind (`why_it_becomes_code`): by what a program sees in its first lines, or by a name that a language looks for.
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
    """Return reason → patterns as in a `.gitignore`, in any folder; upper and lower case are the same."""
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
    """Return the reasons with the patterns of paths, and those of file names alone (a folder `build` is no `BUILD`)."""

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
    from pathspec import PathSpec  # not needed before a file is changed
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    return PathSpec(GitIgnoreSpecPattern(pattern.casefold()) for pattern in patterns)


def why_it_runs_code(paths: Iterable[str], root: str, extra: Sequence[str] = (), otherwise: str = "") -> str:
    """Return why a change of the file is always asked about, "" when it is a file like any other.

    `paths` are names of the one file: as the model wrote it, and with symbolic links resolved. `extra` are the user's
    patterns; the last one that matches decides, one with `!` in front takes the file out. `otherwise` is the reason
    that holds when no name is one.
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
    """Return why a change makes the file one that something runs, by its first lines or its name, else "".

    `is_in_package`: its folder is a Python package, whose modules are imported by their full names.
    """
    *folders, name = path.casefold().split("/")
    stem, _, ending = name.rpartition(".")
    starts_a_program = after.startswith("#!") and not before.startswith("#!")
    if starts_a_program and (not stem or _RUN_BY_PLACE & set(folders)):
        return "it starts with #!, where programs are looked for"
    if _runs_in_emacs(_ends(after)) and not _runs_in_emacs(_ends(before)):
        return "Emacs runs its local variables"
    if "//go:generate" in after and after.count("//go:generate") > before.count("//go:generate"):
        return "go generate runs its new line"
    if name == "head" and _HEAD.match(after):
        return "git takes the folder of this file for a repository"
    if name == "config" and _GIT_CONFIG.search(after):
        return "git takes it for the configuration of a repository"
    if is_new and _UNIT.match(after):
        return "a login or a service manager runs it"
    if is_new and ending == "py" and not is_in_package and stem in sys.stdlib_module_names:
        return f"Python imports it in place of its own module {stem}"
    return ""


def _runs_in_emacs(text: str) -> bool:
    """Return whether Emacs evaluates something of the text when it opens it."""
    first = any(_EVAL.search(line.partition("-*-")[2]) for line in text.splitlines())
    return first or _EVAL.search(text.partition("Local Variables:")[2]) is not None


def _ends(text: str) -> str:
    """Return where Emacs looks for variables: the first two lines, and the last 3,000 characters."""
    return "\n".join(text[:2000].split("\n", 2)[:2]) + "\n" + text[-3000:]


def comparable(path: str, root: str) -> str:
    """Return the path relative to the root, without `..` and as file systems that are less exact would read it.

    Some ignore case, characters that do not show (HFS+), or dots and blanks at the end of a name (NTFS).
    """
    absolute = os.path.normpath(path if path.startswith("/") else f"{root}/{path}")
    relative = os.path.relpath(absolute, root)
    if relative.startswith(".."):
        relative = absolute
    parts = [_plain(part) for part in relative.split("/")]
    inside = [_plain(part) for part in root.split("/")]
    if {".git", ".hg", ".svn", ".jj"} & set(inside):
        parts = [".git", *parts]  # the workspace is a part of a repository's own folder
    return "/".join(part for part in parts if part)


def _plain(part: str) -> str:
    shown = "".join(char for char in unicodedata.normalize("NFKC", part) if unicodedata.category(char) != "Cf")
    return shown.casefold().split(":")[0].rstrip(". ") or shown
