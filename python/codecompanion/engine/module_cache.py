"""Loads the byte code of all modules that a host imports from one file instead of hundreds.

`use_module_cache` puts a finder before Python's own. As Python does with a `.pyc`, it compares the time and size of
each source with those recorded for the byte code, and leaves mismatches to Python. The file is used only if no one but
the user can have written it, and its parts only if their hashes match. Each combination of Python version, `sys.path`
and interpreter flags has its own file; `module_cache_writer` writes it. The cache also spares a plugin in a read-only
folder from being recompiled at each start.

This module is imported before all others, so it imports only modules that Python has already loaded, not `pathlib`.
"""

from __future__ import annotations

import marshal
import os
import stat
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import source_hash
from types import CodeType, ModuleType

_FORMAT = b"codecompanion modules 1\n"
_HASH_BYTES, _SIZE_BYTES = 8, 4
HEADER_BYTES = len(_FORMAT) + _HASH_BYTES + 2 * _SIZE_BYTES
SUFFIX = ".modules"
NOT_WRITTEN = "not written yet"

Part = tuple[int, int, bytes]
"""A part: offset, size and hash of the marshalled byte code of several modules, which load faster together."""
Entry = tuple[int, str, str, int, int]
"""The entry of a module: number of its part; paths of source and `.pyc`; mtime (ns) and size of the source."""


class ModuleCache:
    """The module finder and its data. `why_not`: the reason why no cache file is in use, or "" if one is."""

    def __init__(self, folder: str) -> None:
        self.search_path = tuple(sys.path)
        self._key = repr((sys.version, sys.flags.optimize, sys.pycache_prefix, self.search_path)).encode()
        self.path = f"{folder}/{source_hash(self._key).hex()}{SUFFIX}"
        self.entries: dict[str, Entry] = {}
        self.why_not = ""
        self._parts: Sequence[Part] = ()
        self._file, self._begin = -1, 0
        self._codes: dict[str, CodeType] = {}
        self._read: set[int] = set()

    def open(self) -> None:
        """Read the lists of modules and parts; the file stays open for later imports."""
        try:
            check_only_ours(os.lstat(self.path.rpartition("/")[0]))
            self._file = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            self._read_lists(self._file)
        except FileNotFoundError:
            self.close(NOT_WRITTEN)
        except OSError as error:
            self.close(error.strerror or str(error))
        except (ValueError, EOFError, TypeError):
            self.close("damaged")

    def close(self, why_not: str) -> None:
        """Leave all further imports to Python."""
        self.entries, self.why_not = {}, why_not
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _read_lists(self, file: int) -> None:
        found = os.fstat(file)
        check_only_ours(found)
        header = os.pread(file, HEADER_BYTES, 0)
        size_of_lists = int.from_bytes(header[-_SIZE_BYTES:])
        lists = os.pread(file, min(size_of_lists, found.st_size), HEADER_BYTES)
        if header != self._header(lists, found.st_size):
            raise ValueError
        self._parts, self.entries = marshal.loads(lists)  # noqa: S302 - only the user can have written it
        self._begin = HEADER_BYTES + size_of_lists

    def _header(self, lists: bytes, size: int) -> bytes:
        sizes = size.to_bytes(_SIZE_BYTES) + len(lists).to_bytes(_SIZE_BYTES)
        return _FORMAT + source_hash(self._key + sizes + lists) + sizes

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module whose cached byte code matches its source; reloads are left to Python."""
        entry = self.entries.get(name)
        if entry is None or target is not None or not fits(entry):
            return None
        source, pyc = entry[1:3]
        spec = ModuleSpec(name, CachedLoader(name, source, self), origin=source)
        spec.has_location, spec.cached = True, pyc
        folder, _, file = source.rpartition("/")
        if file == "__init__.py":
            spec.submodule_search_locations = [folder]
        return spec

    def take_code(self, name: str) -> CodeType | None:
        """Return the byte code of a module for its first import; `None` if it cannot be read."""
        entry = self.entries.get(name)
        if entry is not None and entry[0] not in self._read:
            self._codes |= self.read_part(entry[0])
            self._read.add(entry[0])
        return self._codes.pop(name, None)

    def read_part(self, number: int) -> dict[str, CodeType]:
        """Return {module: byte code} of a part; if it is damaged, stop using the file."""
        offset, size, digest = self._parts[number]
        try:
            part = os.pread(self._file, size, self._begin + offset)
        except OSError:
            part = b""
        if source_hash(part) != digest:
            self.close("damaged")
            return {}
        codes: dict[str, CodeType] = marshal.loads(part)  # noqa: S302 - as above, and its hash matches
        return codes

    def encode(self, parts: Sequence[bytes], entries: dict[str, Entry]) -> bytes:
        """Return the content of a cache file."""
        found, offset = [], 0
        for part in parts:
            found.append((offset, len(part), source_hash(part)))
            offset += len(part)
        lists = marshal.dumps((found, entries))
        return self._header(lists, HEADER_BYTES + len(lists) + offset) + lists + b"".join(parts)


class CachedLoader(SourceFileLoader):
    """Python's source loader, except that it takes the byte code from the cache file."""

    def __init__(self, name: str, path: str, cache: ModuleCache) -> None:
        self.name, self.path, self._cache = name, path, cache

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the byte code of the module."""
        return self._cache.take_code(fullname) or super().get_code(fullname)


def fits(entry: Entry) -> bool:
    """Return whether the source has the time and size recorded when the byte code was compiled."""
    try:
        found = os.stat(entry[1])  # noqa: PTH116 - without pathlib
    except OSError:
        return False
    return found.st_mtime_ns == entry[3] and found.st_size == entry[4]


def check_only_ours(found: os.stat_result) -> None:
    """Raise `PermissionError` unless the file or folder belongs to the user and no one else may write to it."""
    is_right_kind = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    if not is_right_kind or found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError("other users could have written it")


def use_module_cache(folder: str) -> None:
    """Import from the cache file in the folder from now on, if there is one for this Python."""
    cache = ModuleCache(folder)
    cache.open()
    sys.meta_path.insert(0, cache)


def module_cache() -> ModuleCache | None:
    """Return the cache that this process uses or would use."""
    return next((finder for finder in sys.meta_path if isinstance(finder, ModuleCache)), None)
