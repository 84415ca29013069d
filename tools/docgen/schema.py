"""Reads data defined in Lua (option schema, autocmds, highlight groups) by running a clean, headless Neovim once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[2]
_LIMIT_S = 30.0


class SchemaUnreadable(Exception):
    """Neovim is missing or could not run the dump; the message is one sentence."""


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """A node of the schema (`CodeCompanion.Option` in Lua). A section has `fields`; `values` describes a free key."""

    description: str = ""
    name: str = ""
    type: str | list[str] = ""
    default: Any = None
    default_text: str = ""
    optional: bool = False
    enum: list[str] = []
    min: float | None = None
    items: Option | None = None
    fields: list[Option] | None = None
    values: Option | None = None
    disable: bool = False
    signature: str = ""
    adapter: bool = False
    entry: bool = False
    keymap: bool = False
    tool: bool = False

    @property
    def types(self) -> list[str]:
        """Return the names of the types as a list."""
        return [self.type] if isinstance(self.type, str) else self.type

    @property
    def children(self) -> list[Option]:
        """Return the options of a section, the free key last."""
        return [*(self.fields or ()), *((self.values,) if self.values else ())]


class Autocmd(msgspec.Struct, frozen=True):
    """A User autocmd: when it fires, and the fields of its payload with their meaning."""

    name: str
    description: str
    data: list[tuple[str, str]]


class Slash(msgspec.Struct, frozen=True):
    """A slash command of the chat buffer."""

    name: str
    description: str
    argument: str = ""


class Dump(msgspec.Struct, frozen=True):
    """The output of the dump script."""

    schema: Option
    for_host: dict[str, Any]
    slash: list[Slash]
    autocmds: list[Autocmd]
    policy_autocmds: list[Autocmd]
    highlights: list[tuple[str, str, str]]


def read_schema() -> Dump:
    """Return the output of `dump.lua`.

    Raises:
        SchemaUnreadable: Neovim was not found, or the script failed.
    """
    script = Path(__file__).with_name("dump.lua")
    if not script.exists():
        raise SchemaUnreadable(f"{script} does not exist: this command works in a checkout of the plugin only")
    command = [_find_neovim(), "--clean", "--headless", "-l", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=_LIMIT_S, check=False)
    if done.returncode != 0 or not done.stdout:
        raise SchemaUnreadable(f"{' '.join(command)} failed: {done.stderr.strip()}")
    try:
        return msgspec.json.decode(done.stdout, type=Dump)
    except msgspec.MsgspecError as error:
        raise SchemaUnreadable(f"what {script.name} printed is not as expected: {error}") from error


def walk(option: Option, path: str = "") -> Iterator[tuple[str, Option]]:
    """Yield every node below `option` with its full key path, sections before their children."""
    for child in option.children:
        here = f"{path}.{child.name}" if path else child.name
        yield here, child
        yield from walk(child, here)


def _find_neovim() -> str:
    candidates = [os.environ.get("NVIM_BIN"), str(ROOT / ".venv" / "bin" / "nvim"), shutil.which("nvim")]
    candidates.append(str(Path(sys.prefix) / "bin" / "nvim"))
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    raise SchemaUnreadable("no Neovim was found: set NVIM_BIN, or run `make setup`")
