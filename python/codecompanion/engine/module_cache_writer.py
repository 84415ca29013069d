"""Writes the file of `module_cache` when the host is idle and has imported modules that the file lacks.

Entries are kept as long as their source is unchanged, so that the file soon covers the modules of all the user's chats.
The file is replaced as a whole; if two hosts write at once, the last one wins.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

from codecompanion.engine.module_cache import SUFFIX, ModuleCache, check_only_ours, fits
from codecompanion.store.durable_files import remove_drafts, write_whole

PART = 32
"""Modules per part, in import order: loading 648 takes 23 ms in parts, 27 ms one by one, 23 ms all at once."""
KEPT_FILES = 4
"""Number of newest cache files to keep; files for other Python versions and plugin folders may be in use."""

Facts = tuple[str, str, int, int]
"""Facts about a module: paths of source and `.pyc`; mtime (ns) and size of the source."""


def write_module_cache(cache: ModuleCache) -> bool:
    """Write the file if it lacks imported modules; return whether it was written. Blocks for 0.2 s or more.

    Raises:
        OSError: the file cannot be written, and is unchanged.
    """
    new = dict(_imported_without(cache))
    if not new:
        return False
    modules = _kept(cache) | new
    names = [name for name in sys.modules if name in modules]
    names += [name for name in modules if name not in sys.modules]
    parts = [
        marshal.dumps({name: modules[name][0] for name in names[first : first + PART]})
        for first in range(0, len(names), PART)
    ]
    entries = {name: (number // PART, *modules[name][1]) for number, name in enumerate(names)}
    target = Path(cache.path)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    check_only_ours(target.parent.lstat())
    remove_drafts(target.parent)
    write_whole(target, cache.encode(parts, entries), flush=False)
    _remove_old_files(target.parent)
    return True


def _imported_without(cache: ModuleCache) -> Iterator[tuple[str, tuple[CodeType, Facts]]]:
    """Yield the modules missing from the file, if Python imported them itself and would find them there again."""
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if name in cache.entries and fits(cache.entries[name]):
            continue  # including modules imported before the file is in use
        if spec is None or type(spec.loader) is not SourceFileLoader or spec.name != name or name == "__main__":
            continue
        if spec.cached and spec.origin == _first_source(cache.search_path, name):
            with contextlib.suppress(OSError, SyntaxError, ValueError):  # changed or deleted since it was imported
                before, code, after = Path(spec.origin).stat(), spec.loader.get_code(name), Path(spec.origin).stat()
                facts = after.st_mtime_ns, after.st_size
                if code is not None and facts == (before.st_mtime_ns, before.st_size):
                    yield name, (code, (spec.origin, spec.cached, *facts))


def _first_source(search_path: tuple[str, ...], name: str) -> str:
    """Return the first source file for a module name, or ""; modules imported from elsewhere are not stored."""
    stem = name.replace(".", "/")
    places = (f"{folder}/{stem}{end}" for folder in search_path for end in ("/__init__.py", ".py"))
    return next(filter(os.path.isfile, places), "")


def _kept(cache: ModuleCache) -> dict[str, tuple[CodeType, Facts]]:
    """Return the entries of the file that are still up to date."""
    entries = {name: entry for name, entry in cache.entries.items() if fits(entry)}
    codes: dict[str, CodeType] = {}
    for number in sorted({entry[0] for entry in entries.values()}):
        codes |= cache.read_part(number)
    return {name: (codes[name], entry[1:]) for name, entry in entries.items() if name in codes}


def _remove_old_files(folder: Path) -> None:
    files = sorted(folder.glob(f"*{SUFFIX}"), key=lambda file: file.lstat().st_mtime, reverse=True)
    for file in files[KEPT_FILES:]:
        file.unlink(missing_ok=True)
