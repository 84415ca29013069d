"""`memory`: notes that outlive the chat, in a folder of their own (R-550).

The model sees the virtual folder `/memories`. Paths are taken apart and walked without following any symbolic link, so
that nothing outside the folder can be reached. Views and edits follow the memory tool that Anthropic documents.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from codecompanion.errors import OutsideWorkspace, ToolError
from codecompanion.formats import text_files
from codecompanion.formats.plural import counted
from codecompanion.tools.builtin import MEMORY_ARGUMENTS
from codecompanion.tools.files.disk import Check, in_thread, opened_folder, write_atomic
from codecompanion.tools.files.edit import replace_text
from codecompanion.tools.tool import ApprovalQuestion, ToolContext, ToolOutput

ROOT = "/memories"
MAX_FILE_CHARS = 200_000


async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
    """Carry out one call; raises `ToolError`."""
    _require(arguments)
    return await in_thread(lambda check: _perform(arguments, context.memory_dir, check))


def _require(arguments: dict[str, Any]) -> None:
    command = arguments["command"]
    missing = [name for name in MEMORY_ARGUMENTS[command] if name not in arguments]
    if missing:
        raise ToolError(f"memory {command} also needs {', '.join(f'`{name}`' for name in missing)}.")


def _perform(arguments: dict[str, Any], folder: Path, check: Check) -> ToolOutput:
    try:
        match arguments["command"]:
            case "view":
                return _view(arguments, folder)
            case "create":
                return _create(arguments, folder, check)
            case "str_replace":
                return _replace(arguments, folder, check)
            case "insert":
                return _insert(arguments, folder, check)
            case "delete":
                return _delete(arguments, folder)
            case _:
                return _rename(arguments, folder)
    except OSError as error:
        raise ToolError(f"memory {arguments['command']} failed: {text_files.reason(error)}.") from error


def _real(virtual: str, folder: Path) -> Path:
    """Return the real path of a virtual one.

    Raises:
        OutsideWorkspace: not under `/memories`, `..`, or a symbolic link anywhere on the way.
    """
    parts = [part for part in virtual.strip().split("/") if part not in ("", ".")]
    if parts[:1] != ["memories"] or ".." in parts or "\0" in virtual or "\\" in virtual:
        raise OutsideWorkspace(f"{virtual[:200]!r} is not a path under {ROOT}; use {ROOT}/<name>.")
    real = Path(os.path.realpath(folder))
    for part in parts[1:]:
        real = real / part
        if real.is_symlink():
            raise OutsideWorkspace(f"{virtual[:200]} leads through a symbolic link, which memory does not follow.")
    return real


def _file(virtual: str, folder: Path) -> Path:
    real = _real(virtual, folder)
    if real.is_dir():
        raise ToolError(f"{virtual} is a folder.")
    if not real.exists():
        raise ToolError(f"There is no {virtual}; view {ROOT} lists what there is.")
    return real


def _view(arguments: dict[str, Any], folder: Path) -> ToolOutput:
    virtual = arguments["path"].rstrip("/")
    real = _real(virtual, folder)
    if real == Path(os.path.realpath(folder)) or real.is_dir():
        lines = list(_listing(real, virtual, depth=2)) if real.is_dir() else []
        if not lines:
            return ToolOutput(text=f"{virtual} is empty: there are no memories yet.", summary="empty")
        return ToolOutput(
            text="\n".join([f"Files in {virtual}:", *lines]), summary=counted(len(lines), "entry", "entries")
        )
    text = text_files.printable(text_files.read_text(_file(virtual, folder)).text)
    lines = text_files.split_lines(text)
    first, last = arguments.get("view_range", (1, -1))
    if first < 1 or (last != -1 and last < first):
        raise ToolError(f"view_range [{first}, {last}] is not a range; lines count from 1.")
    chosen = lines[first - 1 : None if last == -1 else last]
    numbered = "\n".join(f"{first + index}\t{line}" for index, line in enumerate(chosen))
    return ToolOutput(text=numbered or f"{virtual} has no lines there.", summary=counted(len(chosen), "line"))


def _listing(folder: Path, virtual: str, depth: int) -> Iterator[str]:
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or entry.is_symlink():
            continue
        name = f"{virtual}/{entry.name}"
        if entry.is_dir():
            yield name + "/"
            if depth > 1:
                yield from _listing(entry, name, depth - 1)
        else:
            yield f"{name} ({counted(entry.stat().st_size, 'byte')})"


def _create(arguments: dict[str, Any], folder: Path, check: Check) -> ToolOutput:
    virtual, text = arguments["path"], arguments["file_text"]
    real = _real(virtual, folder)
    if real.exists():
        raise ToolError(f"{virtual} exists already; use str_replace or insert, or delete it first.")
    return _written(real, text_files.TextFile(text), virtual, "Created", check)


def _replace(arguments: dict[str, Any], folder: Path, check: Check) -> ToolOutput:
    real = _file(arguments["path"], folder)
    edited = replace_text(text_files.read_text(real), arguments["old_str"], arguments["new_str"])
    return _written(real, edited.file, arguments["path"], "Edited", check)


def _insert(arguments: dict[str, Any], folder: Path, check: Check) -> ToolOutput:
    real = _file(arguments["path"], folder)
    before = text_files.read_text(real)
    lines = re.findall(r"[^\n]*\n|[^\n]+", before.text)
    at = arguments["insert_line"]
    if at > len(lines):
        raise ToolError(f"{arguments['path']} has {counted(len(lines), 'line')}; insert_line {at} is beyond its end.")
    inserted = arguments["insert_text"]
    if at < len(lines) and not inserted.endswith("\n"):
        inserted += "\n"
    if at and not lines[at - 1].endswith("\n"):
        inserted = "\n" + inserted
    text = "".join([*lines[:at], inserted, *lines[at:]])
    return _written(real, text_files.TextFile(text, before.encoding, before.bom), arguments["path"], "Edited", check)


def _written(real: Path, file: text_files.TextFile, virtual: str, verb: str, check: Check) -> ToolOutput:
    if len(file.text) > MAX_FILE_CHARS:
        raise ToolError(f"{virtual} would have {len(file.text):,} characters; a memory may have {MAX_FILE_CHARS:,}.")
    if real == real.parent or real.is_dir():
        raise ToolError(f"{virtual} is a folder; give the path of a file in it.")
    write_atomic(real, text_files.encode(file), check, private=True)
    lines = counted(len(text_files.split_lines(file.text)), "line")
    return ToolOutput(text=f"{verb} {virtual}: {lines}.", summary=lines)


def _delete(arguments: dict[str, Any], folder: Path) -> ToolOutput:
    virtual = arguments["path"]
    real = _real(virtual, folder)
    if real == Path(os.path.realpath(folder)):
        raise ToolError(f"{ROOT} itself cannot be deleted; delete what is in it.")
    if real.is_dir():
        import shutil  # slow to import, rarely wanted

        shutil.rmtree(real)
    else:
        _file(virtual, folder).unlink()
    return ToolOutput(text=f"Deleted {virtual}.", summary="deleted")


def _rename(arguments: dict[str, Any], folder: Path) -> ToolOutput:
    old, new = arguments["old_path"], arguments["new_path"]
    source, target = _real(old, folder), _real(new, folder)
    root = Path(os.path.realpath(folder))
    if root in (source, target):
        raise ToolError(f"{ROOT} itself cannot be renamed or replaced.")
    if not source.exists():
        raise ToolError(f"There is no {old}; view {ROOT} lists what there is.")
    if target.exists():
        raise ToolError(f"{new} exists already; delete it first or choose another name.")
    with opened_folder(target.parent, make=True, private=True):
        source.rename(target)
    return ToolOutput(text=f"Renamed {old} to {new}.", summary="renamed")


def title_of(arguments: dict[str, Any]) -> str:
    """Return the title of a call."""
    return f"memory {arguments['command']} {arguments.get('path') or arguments.get('old_path') or ''}".rstrip()


def question_about(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion | None:
    """Return what the user must approve, None when the call may run at once."""
    if arguments["command"] == "view":
        return None
    _require(arguments)
    shown = [f"{name}: {value}" for name, value in arguments.items() if name != "command"]
    key = f"memory:delete:{arguments['path']}" if arguments["command"] == "delete" else "memory"
    return ApprovalQuestion(key=key, title=f"Memory: {arguments['command']}", body="\n".join(shown))
