"""Finds the files that define what a command runs (`Makefile` for `make test`): their names, and one hash of them all.

Reads the disk: call it in a thread. A grant for such a command applies to these exact contents.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from codecompanion.formats.regex import regex

_INCLUDE = regex(r"^[ ]*(?:-include|sinclude|include)[ \t]+(.*?)(?:#.*)?$")
_IMPORT = regex(r"""^[ \t]*import\??[ \t]+(["'])([^"'\\]+)\1[ \t]*(?:#.*)?$""")
_UNKNOWN_INCLUDE = {
    "just": regex(r"^[ \t]*(?:mod|import)\b\??(?![ \t]*:?=)"),
    "task": regex(r"""(?:^|[{,\s"'?])includes["']?\s*(?::|$)"""),
}
_MAX_FILES = 20_000
_MAX_INCLUDED = 64


class Defined(msgspec.Struct, frozen=True):
    """The files that define a command (relative to the workspace), and a hash of their names and contents."""

    files: tuple[str, ...]
    digest: str


def defined_by(
    patterns: Iterable[str], folder: Path, root: Path, walk: Callable[[Path], Iterator[Path]], *, includes: str = ""
) -> Defined | None:
    """Return the files that define a command in `folder`, or None if they cannot be determined.

    A plain name is searched for in the folder and its parents up to the root; `**/name` and `**/*.end` are searched for
    anywhere in the workspace. `includes` is the type of files ("make", "just", "task") whose included files count too.
    """
    anywhere = {pattern.removeprefix("**/") for pattern in patterns if pattern.startswith("**/")}
    named = [pattern for pattern in patterns if not pattern.startswith("**/")]
    found = {path for above in _upwards(folder, root) for name in named if os.path.lexists(path := above / name)}
    endings = tuple(name[1:] for name in anywhere if name.startswith("*"))
    if anywhere:
        for number, path in enumerate(walk(root)):
            if number == _MAX_FILES:
                return None
            if path.name in anywhere or path.name.endswith(endings):
                found.add(path)
    if includes:
        with_included = _with_included(found, folder) if includes == "make" else _with_imported(found, includes)
        if with_included is None:
            return None
        found = with_included
    return _hashed(sorted(found), root)


def _upwards(folder: Path, root: Path) -> Iterator[Path]:
    yield folder
    while folder != root and folder != folder.parent:
        folder = folder.parent
        yield folder


def _with_included(found: set[Path], folder: Path) -> set[Path] | None:
    """Return the Makefiles of the folder and the files they include, or None if make computes an included name."""
    found = {path for path in found if path.parent == folder}
    left, known = list(found), set(found)
    while left:
        try:
            text = left.pop().read_text("utf-8", "surrogateescape").replace("\\\n", " ")
        except OSError:
            continue
        for line in text.splitlines():
            included = _INCLUDE.match(line)
            for name in included[1].split() if included else ():
                if any(char in name for char in "$*?[~") or len(known) == _MAX_INCLUDED:
                    return None
                path = folder / name
                if path not in known:
                    known.add(path)
                    left.append(path)
    return known


def _with_imported(found: set[Path], kind: str) -> set[Path] | None:
    """Return the files and their imports, or None if an import has a form that is not parsed here."""
    left, known = list(found), set(found)
    while left:
        file = left.pop()
        try:
            text = file.read_text("utf-8", "surrogateescape")
        except OSError:
            continue
        for line in text.splitlines() if file.name != ".env" else ():
            if kind == "just" and (imported := _IMPORT.match(line)) and not set(imported[2]) & set("$~{"):
                path = file.parent / imported[2]
                if path not in known:
                    known.add(path)
                    left.append(path)
            elif _UNKNOWN_INCLUDE[kind].search(line):
                return None
        if len(known) > _MAX_INCLUDED:
            return None
    return known


def _hashed(paths: list[Path], root: Path) -> Defined | None:
    whole, names = hashlib.sha256(), list[str]()
    for path in paths:
        name = os.path.relpath(path, root)
        try:
            content = _content(path)
        except OSError:
            return None
        whole.update(f"{len(name)}:{name}:".encode("utf-8", "surrogateescape") + hashlib.sha256(content).digest())
        names.append(name)
    return Defined(tuple(names), whole.hexdigest())


def _content(path: Path) -> bytes:
    """Return the bytes to hash for a path: a file's content, "absent" if missing, or all contents below a folder."""
    if path.is_dir():
        whole = hashlib.sha256()
        for number, (parent, folders, files) in enumerate(os.walk(path)):
            folders.sort()
            if number == 1000:
                raise OSError
            for name in sorted(files):
                whole.update(f"{parent}/{name}\0".encode("utf-8", "surrogateescape"))
                whole.update(_content(Path(parent, name)))
        return whole.digest()
    if not path.exists():
        return b"absent"
    if not path.is_file():
        raise OSError
    return path.read_bytes()
