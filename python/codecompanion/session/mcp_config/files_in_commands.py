"""Finds the files named in the command lines of a folder's MCP servers; they are trusted together with the server file.

Otherwise a command in the sandbox could rewrite `server.py`, and the server would start it outside the sandbox. Any
argument that may be a path counts: a false match only causes one more trust prompt after a change.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from codecompanion.mcp.server_types import McpError
from codecompanion.session.mcp_config.expand_variables import expanded
from codecompanion.session.mcp_config.server_entries import Entry

MAX_FILES = 200
_BETWEEN = re.compile(r"[\s=,;:|&()<>'\"`]+")
_ENDINGS = ("", ".py", ".js", ".mjs", ".cjs", ".ts")
_ENTRIES = ("__main__.py", "__init__.py", "index.js", "index.mjs", "index.cjs", "index.ts")
_RECIPES = {
    "npm": ("package.json",), "pnpm": ("package.json",), "yarn": ("package.json",), "bun": ("package.json",),
    "make": ("Makefile", "makefile", "GNUmakefile"), "just": ("justfile",), "deno": ("deno.json",),
}  # fmt: skip
_DATABASE = b"SQLite format 3\0"


class NamedFile(msgspec.Struct, frozen=True):
    """A file in the folder that is named in a command line, and the hash of its content."""

    path: str
    sha256: str


def named_files(
    entries: Iterable[Entry], root: Path, folder: Path, environment: Mapping[str, str]
) -> tuple[NamedFile, ...]:
    """Return the files inside `folder` that are named in the command lines of these servers. Blocks briefly."""
    found = dict[str, NamedFile]()
    for entry in entries:
        for path in _candidates(entry, root, environment):
            inside = os.path.abspath(path)  # noqa: PTH100 (a link counts where it lies, and where it leads)
            if inside in found or not _is_inside(folder, inside) or not path.is_file():
                continue
            found[inside] = NamedFile(inside, _hash_of(inside))
            if len(found) >= MAX_FILES:
                return tuple(found.values())
    return tuple(found.values())


def hash_with(sha256: str, named: Iterable[NamedFile]) -> str:
    """Return a hash of a server file and the files named in it; the file's own hash if it names none."""
    parts = sorted(f"{one.path}\0{one.sha256}" for one in named)
    return (
        hashlib.sha256("\0".join([sha256, *parts]).encode("utf-8", "surrogateescape")).hexdigest() if parts else sha256
    )


def _is_inside(folder: Path, path: str) -> bool:
    return any(folder in Path(one).parents for one in (path, os.path.realpath(path)))


def _candidates(entry: Entry, root: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    one = entry.settings
    cwd = root / Path(_expanded(one.cwd, environment)).expanduser() if one.cwd else root
    cmd = [_expanded(word, environment) for word in one.cmd]
    words = dict.fromkeys(
        part for word in [*cmd, *(_expanded(text, environment) for text in one.env.values())] for part in _parts(word)
    )
    recipes = [name for word in cmd for name in _RECIPES.get(Path(word).name, ())]
    folders = [cwd, *(cwd / word for word in words if _is_folder(cwd / word))]
    for base in dict.fromkeys(folders):
        for name in (*recipes, *_ENTRIES) if base != cwd else recipes:
            yield base / name
        for word in words:
            module = word.replace(".", "/") if re.fullmatch(r"\w+(\.\w+)+", word) else word
            for name in dict.fromkeys((word, module)):
                yield from (base / f"{name}{ending}" for ending in _ENDINGS)
                yield from (base / name / entry_file for entry_file in _ENTRIES)


def _parts(word: str) -> Iterator[str]:
    """Yield the possible paths in an argument: `--config=a.js`, `-ra.js`, `@a.txt`, `sh -c "python3 a.py"`, `a:app`."""
    for part in (word, *_BETWEEN.split(word)):
        yield from (
            one for one in (part, part.lstrip("@"), part[2:] if part[:1] == "-" else "") if one and "\0" not in one
        )


def _expanded(text: str, environment: Mapping[str, str]) -> str:
    try:
        return expanded(text, environment, "")
    except McpError:
        return text


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _hash_of(path: str) -> str:
    """Return the hash of a file, "database" for an SQLite file, which keeps changing, or "" if unreadable."""
    try:
        status = os.stat(path)  # noqa: PTH116
        return _hash(path, (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino))
    except OSError:
        return ""


@functools.lru_cache(maxsize=500)
def _hash(path: str, stamp: tuple[int, ...]) -> str:
    with open(path, "rb") as file:
        if file.read(len(_DATABASE)) == _DATABASE and not zipfile.is_zipfile(path):
            return "database"
        file.seek(0)
        digest = hashlib.sha256()
        while block := file.read(1_000_000):
            digest.update(block)
    return digest.hexdigest()
