"""Checks, without running git, whether a repository could make read-only git commands run a program or show secrets.

A repository is harmless if its configuration has only known keys and it has neither submodules nor hooks that read-only
commands start; the keys are an allow-list (`grants/git_config.toml`).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from codecompanion.formats.package_table import package_table
from codecompanion.formats.regex import regex

_PASSWORD = regex(r"://[^/\s]*@")
_MAX_BYTES = 64_000_000
_GITLINK = 0o160000

ReadConfig: TypeAlias = Callable[[Path], Iterable[tuple[str, str]]]
"""A function that reads the (key, value) entries of a configuration; raises `OSError` or `ValueError` if uncertain."""


def is_harmless(folder: Path, root: Path, is_secret: Callable[[str], bool] | None, read_config: ReadConfig) -> bool:
    """Return whether `folder` is in the repository at the workspace's root, and git would run nothing defined there.

    With `is_secret`, the repository must not track any secrets either.
    """
    here = folder
    while here != root:
        if os.path.lexists(here / ".git") or _looks_bare(here) or here == here.parent:
            return False
        here = here.parent
    store = root / ".git"
    if _looks_bare(root) or store.is_symlink() or not store.is_dir():
        return False
    if any(
        os.path.lexists(store / name) for name in ("config.worktree", "modules", "commondir", "objects/info/alternates")
    ):
        return False
    try:
        return _is_config_harmless(store / "config", root, read_config) and _tracks_no_secret(
            store / "index", is_secret
        )
    except (OSError, ValueError, struct.error, IndexError):
        return False


def _looks_bare(folder: Path) -> bool:
    return (
        any((folder / name).exists() for name in ("HEAD", "objects", "refs", "commondir"))
        and (folder / "HEAD").exists()
    )


def _is_config_harmless(config: Path, root: Path, read_config: ReadConfig) -> bool:
    known = package_table("tools/commands/grants/git_config.toml")
    keys, hooks = frozenset(known["keys"]), [config.parent / "hooks"]
    for entry, value in read_config(config):
        head, _, name = entry.rpartition(".")
        section, has_subsection, _ = head.partition(".")
        key = f"{section}.*.{name}" if has_subsection else entry
        if key not in keys or _PASSWORD.search(value) or (section == "remote" and "::" in value):
            return False
        if key == "core.hookspath":
            if value.startswith(("~", "%")):  # git expands these
                return False
            hooks.append(root / value)
    return not any(os.path.lexists(folder / name) for folder in hooks for name in known["hooks"])


def _tracks_no_secret(index: Path, is_secret: Callable[[str], bool] | None) -> bool:
    """Return whether the index lists no secrets; versions other than 2 and 3 (`gitformat-index`) count as unsafe."""
    if not index.exists():
        return True
    if index.stat().st_size > _MAX_BYTES:
        return False
    content = index.read_bytes()
    magic, version, count = struct.unpack_from(">4sII", content)
    if magic != b"DIRC" or version not in (2, 3):
        return False
    at = 12
    for _ in range(count):
        mode, flags = struct.unpack_from(">I", content, at + 24)[0], struct.unpack_from(">H", content, at + 60)[0]
        start = at + (64 if flags & 0x4000 else 62)
        end = content.index(b"\0", start)
        if mode == _GITLINK or (is_secret is not None and is_secret(os.fsdecode(content[start:end]))):
            return False
        at += (end - at + 8) // 8 * 8
    return True
