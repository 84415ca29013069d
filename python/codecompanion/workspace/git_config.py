"""Reads the configuration files of a repository without git, to find the keys that name programs.

Git reads these files whenever somebody works in the folder, and runs the programs that they name. The plugin's own git
calls never see them (`git.py`); they are read here to show these programs to the user before a folder is trusted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec

from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex
from codecompanion.workspace.git_repository import find_repository, read_start

MAX_BYTES = 1_000_000
"""Maximum size of one file in bytes; git's configuration files usually have a few kilobytes."""
MAX_DEPTH = 10
"""Maximum depth of nested includes, the same as git's."""
MAX_FILES = 1_000
UNREAD = "(not read)"
"""Key of the entry that stands for included files that were not read."""
_SECTION = regex(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\\n]|\\.)*)")?\s*\]')
_KEY = regex(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*")
_CONTINUED = regex(r"\\\r?\n")
_ESCAPED = regex(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}
_LIKE_BARE = ("HEAD", "config", "objects", "refs")


class NamedProgram(msgspec.Struct, frozen=True):
    """A configuration key that makes git start a program: its file, the key as written, its value."""

    file: Path
    key: str
    value: str


class Entry(msgspec.Struct, frozen=True):
    """A value in a file; the section and name in `key` are in lower case, the subsection is as written."""

    key: str
    value: str


def programs_named(folder: Path, submodules: Iterable[Path] = ()) -> tuple[NamedProgram, ...]:
    """Return the programs that the configuration of a folder's repository would make git start. Blocks, never raises.

    Includes are followed regardless of their condition, and the files of `submodules` and other git directories are
    read too. Anything too large to read counts as a program.
    """
    found: dict[NamedProgram, None] = {}
    seen: set[Path] = set()
    for start in (file for one in (folder, *submodules) for file in _files_of(one)):
        for file, entries in _with_includes(start, seen, MAX_DEPTH, every=True):
            for entry in entries:
                if names_program(entry):
                    found[NamedProgram(file, entry.key, entry.value)] = None
            if _size(file) > MAX_BYTES:
                found[NamedProgram(file, UNREAD, f"more than {MAX_BYTES} bytes")] = None
        if len(seen) >= MAX_FILES:
            found[NamedProgram(start, UNREAD, f"more than {MAX_FILES} files")] = None
            break
    return tuple(found)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def names_program(entry: Entry) -> bool:
    """Return whether a key is listed in `git_programs.toml` and its value is not known to be harmless."""
    key, value = entry.key.lower(), entry.value.strip()
    return any(
        pattern.fullmatch(key) and (only is None or only.search(value)) and not (safe and safe.fullmatch(value))
        for pattern, only, safe in _patterns()
    )


def read_entries(file: Path) -> Iterator[Entry]:
    """Yield the values of a file and of its unconditional includes in git's order; later values win."""
    for _, entries in _with_includes(file, set(), MAX_DEPTH, every=False):
        yield from entries


def read_certainly(file: Path) -> list[tuple[str, str]]:
    """Return the key and value of each entry of one file; an include is returned like any other entry.

    Raises: OSError: the file cannot be read. ValueError: part of it can be parsed in more than one way.
    """
    content = read_start(file, MAX_BYTES + 1)
    text = content.decode("utf-8")
    if len(content) > MAX_BYTES or _CONTINUED.search(text):
        raise ValueError(f"{file} is too large or contains line continuations")
    return [(entry.key, entry.value) for entry in parse_config(text, is_strict=True)]


def parse_config(text: str, *, is_strict: bool = False) -> tuple[Entry, ...]:
    """Return the entries of a configuration file.

    Lines that git would reject are skipped; with `is_strict`, they raise `ValueError`.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    entries, section, at = list[Entry](), "", 0
    while at < len(text):
        char = text[at]
        if char in "#;":
            at = _end_of_line(text, at)
        elif char.isspace():
            at += 1
        elif char == "[" and (header := _SECTION.match(text, at)):
            name, subsection = header[1].lower(), header[2]
            section = name if subsection is None else f"{name}.{_unescaped(subsection)}"
            at = header.end()
        elif section and (key := _KEY.match(text, at)):
            name, at = key[1].lower(), key.end()
            value = "true"
            if text[at : at + 1] == "=":
                value, at = _value(text, at + 1)
            elif text[at : at + 1] not in ("", "\n", "#", ";"):
                _refuse(text, at, is_strict)
                at = _end_of_line(text, at)
                continue
            entries.append(Entry(f"{section}.{name}", value))
        else:
            _refuse(text, at, is_strict)
            at = max(at + 1, _end_of_line(text, at))
    return tuple(entries)


def _refuse(text: str, at: int, is_strict: bool) -> None:
    if is_strict:
        raise ValueError(f"unexpected {text[at : at + 20]!r}")


def _value(text: str, at: int) -> tuple[str, int]:
    """Return the value at a position, and the position of the next line; handles quotes, escapes, continued lines."""
    parts, kept, is_quoted = list[str](), 0, False
    while at < len(text) and text[at] != "\n":
        char = text[at]
        if char == "\\":
            after = text[at + 1 : at + 2]
            if after != "\n":
                parts.append(_ESCAPES.get(after, after))
                kept = len(parts)
            at += 2
            continue
        if char == '"':
            is_quoted = not is_quoted
            kept = max(kept, len(parts))
        elif char in "#;" and not is_quoted:
            at = _end_of_line(text, at)
            break
        elif parts or is_quoted or not char.isspace():
            parts.append(char)
            if is_quoted or not char.isspace():
                kept = len(parts)
        at += 1
    return "".join(parts[:kept]), at


def _unescaped(subsection: str) -> str:
    return str(_ESCAPED.sub(r"\1", subsection))


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _files_of(folder: Path) -> Iterator[Path]:
    """Yield the configuration files that git would read in a folder, with those of bare repositories and submodules."""
    try:
        repository = find_repository(folder)
    except OSError:
        repository = None
    if repository is not None:
        yield repository.common_dir / "config"
        yield repository.git_dir / "config.worktree"
        yield repository.common_dir / "config.worktree"
        yield from _of_modules(repository.common_dir / "modules")
    real = Path(os.path.realpath(folder))
    for parent in (real, *real.parents):
        if all(os.path.lexists(parent / name) for name in _LIKE_BARE):
            yield parent / "config"


def _of_modules(modules: Path) -> Iterator[Path]:
    """Yield the configuration files in submodules' git directories; a submodule may be named `hooks`."""
    for path, folders, files in os.walk(modules):
        if "HEAD" in files:
            folders[:] = [name for name in folders if name == "modules"]
        yield from (Path(path, name) for name in ("config", "config.worktree") if name in files)


def _with_includes(file: Path, seen: set[Path], depth: int, *, every: bool) -> Iterator[tuple[Path, tuple[Entry, ...]]]:
    """Yield the entries of a file and of its includes in order; `every` ignores the conditions."""
    real = Path(os.path.realpath(file))
    if real in seen or len(seen) >= MAX_FILES:
        return
    seen.add(real)
    try:
        entries = parse_config(read_start(real, MAX_BYTES).decode("utf-8", "replace"))
    except OSError:
        return
    done = 0
    for index, entry in enumerate(entries):
        is_include = entry.key == "include.path" or (every and fnmatchcase(entry.key, "includeif.*.path"))
        if is_include and depth and (target := _included(entry.value, real)):
            yield real, entries[done:index]
            done = index
            yield from _with_includes(target, seen, depth - 1, every=every)
    yield real, entries[done:]


def _included(value: str, file: Path) -> Path | None:
    try:
        return file.parent / Path(value).expanduser() if value and "\0" not in value else None
    except RuntimeError:  # `~name` of an unknown user
        return None


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], re.Pattern[str] | None, re.Pattern[str] | None], ...]:
    """Return rows of patterns: for keys, for values that count (None: all), and for harmless values (None: none)."""
    return tuple(
        (
            re.compile("|".join(re.escape(key).replace(r"\*", ".*") for key in row["keys"].lower().split()), re.DOTALL),
            re.compile(row["only"], re.DOTALL) if "only" in row else None,
            re.compile(row["harmless"], re.DOTALL) if "harmless" in row else None,
        )
        for row in package_table("workspace/git_programs.toml")["programs"]
    )
