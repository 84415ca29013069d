"""`memory`: edits notes that outlive the chat, and searches everything remembered (R-447, R-550).

The model sees the virtual folder `/memories`: the notes of its project, and in `/memories/all-projects` those for all
projects. Paths are split and walked without following symbolic links, so nothing outside these two folders can be
reached. Views and edits follow the memory tool that Anthropic documents; `search` is our addition.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.errors import OutsideWorkspace, ToolError
from codecompanion.formats import text_files
from codecompanion.formats.plural import counted
from codecompanion.model.messages import Source
from codecompanion.model.provenance import union
from codecompanion.tools.builtin import MEMORY_ARGUMENTS, MEMORY_SHARED
from codecompanion.tools.builtin import MEMORY_ROOT as ROOT
from codecompanion.tools.files.disk import Check, in_thread, opened_folder, remove_drafts, write_atomic
from codecompanion.tools.files.edit import replace_text
from codecompanion.tools.memory_interface import ProjectMemory
from codecompanion.tools.tool import ApprovalQuestion, ToolContext, ToolOutput

MAX_FILE_CHARS = 200_000
MAX_NOTES = 1_000
"""Maximum number of notes below one folder."""
MAX_LISTED, MAX_DEPTH = 200, 3
_OF_MODEL = Source("model")


class _Folders(msgspec.Struct, frozen=True):
    """The real folders of `/memories` and of `/memories/all-projects` (None if it does not exist)."""

    project: Path
    shared: Path | None = None

    @property
    def hidden(self) -> Path:
        """Return the folder that contains the notes of all projects; other projects' notes must stay hidden."""
        return Path(os.path.realpath(self.project)).parent


async def run(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
    """Run one call; raises `ToolError`."""
    _require(arguments)
    return await in_thread(lambda check: _perform(arguments, context, check))


def _require(arguments: dict[str, Any]) -> None:
    command = arguments["command"]
    missing = [name for name in MEMORY_ARGUMENTS[command] if name not in arguments]
    if missing:
        raise ToolError(f"memory {command} also needs {', '.join(f'`{name}`' for name in missing)}.")


def _perform(arguments: dict[str, Any], context: ToolContext, check: Check) -> ToolOutput:
    folders, memory = _Folders(context.memory_dir, context.memory.shared_dir()), context.memory
    try:
        if arguments["command"] == "search":
            return _search(arguments["query"], memory, check)
        if arguments["command"] == "view":
            return _view(arguments, folders, context)
        _refuse_secrets(arguments, context)
        with memory.changing():
            return _change(arguments, folders, check)
    except OSError as error:
        raise ToolError(f"memory {arguments['command']} failed: {text_files.reason(error)}.") from error


def _change(arguments: dict[str, Any], folders: _Folders, check: Check) -> ToolOutput:
    match arguments["command"]:
        case "create":
            return _create(arguments, folders, check)
        case "str_replace":
            return _replace(arguments, folders, check)
        case "insert":
            return _insert(arguments, folders, check)
        case "delete":
            return _delete(arguments, folders)
        case _:
            return _rename(arguments, folders)


def _refuse_secrets(arguments: dict[str, Any], context: ToolContext) -> None:
    """Refuse text that contains a secret, or that the user excluded from memory (R-449)."""
    text = "\n".join(str(arguments.get(name, "")) for name in ("file_text", "new_str", "insert_text"))
    if secret := context.why_secret(text, str(arguments.get("path", ""))):
        raise ToolError(f"Nothing was saved: {secret}. Later chats read the memory; omit the secret.")
    if refused := context.memory.why_refused(text):
        raise ToolError(f"Nothing was saved: {refused}.")


def _search(query: str, memory: ProjectMemory, check: Check) -> ToolOutput:
    found = memory.search(query, check)
    if not found:
        return ToolOutput(text="No memory contains these words.", summary="nothing", sources=(_OF_MODEL,))
    parts = []
    for one in found:
        parts.append(" · ".join(part for part in (one.place, one.title, one.day) if part))
        parts += [f"  {line}" for line in one.lines]
    sources = union(*(one.sources for one in found)) or (_OF_MODEL,)
    text = text_files.printable("\n".join(parts))
    return ToolOutput(text=text, summary=counted(len(found), "entry", "entries"), sources=sources)


def _real(virtual: str, folders: _Folders) -> Path:
    """Return the real path of a virtual path.

    Raises:
        OutsideWorkspace: the path is not under `/memories`, or contains `..` or a symbolic link.
    """
    parts = [part for part in virtual.strip().split("/") if part not in ("", ".")]
    if parts[:1] != ["memories"] or ".." in parts or "\0" in virtual or "\\" in virtual:
        raise OutsideWorkspace(f"{virtual[:200]!r} is not a path under {ROOT}; use {ROOT}/<name>.")
    is_shared = folders.shared is not None and parts[1:2] == [MEMORY_SHARED]
    top, rest = (folders.shared, parts[2:]) if is_shared else (folders.project, parts[1:])
    real = Path(os.path.realpath(top or folders.project))
    for part in rest:
        real = real / part
        if real.is_symlink():
            raise OutsideWorkspace(f"{virtual[:200]} leads through a symbolic link, which memory does not follow.")
        if is_shared and real == folders.hidden:
            raise OutsideWorkspace(f"{virtual[:200]} leads to other projects' notes.")
    return real


def _is_top(real: Path, folders: _Folders) -> bool:
    """Return whether a real path is one of the two folders themselves."""
    return real in [Path(os.path.realpath(one)) for one in (folders.project, folders.shared) if one is not None]


def _file(virtual: str, folders: _Folders) -> Path:
    real = _real(virtual, folders)
    if real.is_dir():
        raise ToolError(f"{virtual} is a folder.")
    if not real.exists():
        shared = f"{ROOT}/{MEMORY_SHARED}{virtual.removeprefix(ROOT)}"
        if folders.shared is not None and virtual.startswith(f"{ROOT}/") and _real(shared, folders).is_file():
            raise ToolError(f"There is no {virtual}; use {shared}.")  # where notes of earlier versions are
        raise ToolError(f"There is no {virtual}; view {ROOT} lists the files.")
    return real


def _view(arguments: dict[str, Any], folders: _Folders, context: ToolContext) -> ToolOutput:
    virtual = arguments["path"].rstrip("/")
    real = _real(virtual, folders)
    if _is_top(real, folders) or real.is_dir():
        lines = list(_listing(real, virtual, folders, depth=2)) if real.is_dir() else []
        if folders.shared is not None and real == Path(os.path.realpath(folders.project)):
            lines += _listed_shared(folders)
        if not lines:
            return ToolOutput(text=f"{virtual} is empty: there are no memories yet.", summary="empty")
        more = len(lines) - MAX_LISTED
        told = [f"… {more:,} more: search finds them."] if more > 0 else []
        return ToolOutput(
            text="\n".join([f"Files in {virtual}:", *lines[:MAX_LISTED], *told]),
            summary=counted(len(lines), "entry", "entries"),
        )
    whole, withheld = context.without_secrets(text_files.read_text(_file(virtual, folders)).text, virtual)
    if withheld:
        raise ToolError(f"{virtual} is withheld: {withheld}.")
    text = text_files.printable(whole)
    lines = text_files.split_lines(text)
    first, last = arguments.get("view_range", (1, -1))
    if first < 1 or (last != -1 and last < first):
        raise ToolError(f"view_range [{first}, {last}] is not a range; lines count from 1.")
    chosen = lines[first - 1 : None if last == -1 else last]
    numbered = "\n".join(f"{first + index}\t{line}" for index, line in enumerate(chosen))
    return ToolOutput(text=numbered or f"{virtual} has no lines in this range.", summary=counted(len(chosen), "line"))


def _listed_shared(folders: _Folders) -> list[str]:
    shared, virtual = Path(os.path.realpath(folders.shared or folders.project)), f"{ROOT}/{MEMORY_SHARED}"
    below = list(_listing(shared, virtual, folders, depth=1)) if shared.is_dir() else []
    return [f"{virtual}/", *below] if below else []


def _listing(folder: Path, virtual: str, folders: _Folders, depth: int) -> Iterator[str]:
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or entry.is_symlink() or entry == folders.hidden:
            continue
        name = f"{virtual}/{entry.name}"
        if entry.is_dir():
            yield name + "/"
            if depth > 1:
                yield from _listing(entry, name, folders, depth - 1)
        else:
            yield f"{name} ({counted(entry.stat().st_size, 'byte')})"


def _create(arguments: dict[str, Any], folders: _Folders, check: Check) -> ToolOutput:
    virtual, text = arguments["path"], arguments["file_text"]
    real = _real(virtual, folders)
    if real.exists():
        raise ToolError(f"{virtual} already exists; use str_replace or insert, or delete it first.")
    notes = sum(1 for _ in _listing(real.parent, "", folders, MAX_DEPTH)) if real.parent.is_dir() else 0
    if notes >= MAX_NOTES:
        raise ToolError(
            f"The folder of {virtual} already has {notes:,} notes, the maximum; merge or delete some first."
        )
    return _written(real, text_files.TextFile(text), virtual, "Created", check)


def _replace(arguments: dict[str, Any], folders: _Folders, check: Check) -> ToolOutput:
    real = _file(arguments["path"], folders)
    edited = replace_text(text_files.read_text(real), arguments["old_str"], arguments["new_str"])
    return _written(real, edited.file, arguments["path"], "Edited", check)


def _insert(arguments: dict[str, Any], folders: _Folders, check: Check) -> ToolOutput:
    real = _file(arguments["path"], folders)
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
        raise ToolError(f"{virtual} would have {len(file.text):,} characters; the limit is {MAX_FILE_CHARS:,}.")
    if real == real.parent or real.is_dir():
        raise ToolError(f"{virtual} is a folder; give the path of a file in it.")
    remove_drafts(real.parent)
    try:
        write_atomic(real, text_files.encode(file), check, private=True)
    except ToolError as error:  # it names the real path, which the model does not know
        raise ToolError(str(error).replace(str(real), virtual)) from error
    lines = counted(len(text_files.split_lines(file.text)), "line")
    return ToolOutput(text=f"{verb} {virtual}: {lines}.", summary=lines)


def _delete(arguments: dict[str, Any], folders: _Folders) -> ToolOutput:
    virtual = arguments["path"]
    real = _real(virtual, folders)
    if _is_top(real, folders):
        raise ToolError(f"{virtual} itself cannot be deleted; delete files in it.")
    if real.is_dir():
        import shutil  # slow to import, rarely needed

        shutil.rmtree(real)
    else:
        _file(virtual, folders).unlink()
    return ToolOutput(text=f"Deleted {virtual}.", summary="deleted")


def _rename(arguments: dict[str, Any], folders: _Folders) -> ToolOutput:
    old, new = arguments["old_path"], arguments["new_path"]
    source, target = _real(old, folders), _real(new, folders)
    if _is_top(source, folders) or _is_top(target, folders):
        raise ToolError(f"{ROOT} itself cannot be renamed or replaced.")
    if not source.exists():
        raise ToolError(f"There is no {old}; view {ROOT} lists the files.")
    if target.exists():
        raise ToolError(f"{new} already exists; delete it first or choose another name.")
    with opened_folder(target.parent, make=True, private=True):
        source.rename(target)
    return ToolOutput(text=f"Renamed {old} to {new}.", summary="renamed")


def title_of(arguments: dict[str, Any]) -> str:
    """Return the title of a call."""
    about = next((arguments[name] for name in ("path", "old_path", "query") if arguments.get(name)), "")
    return f"memory {arguments['command']} {about}".rstrip()


def question_about(arguments: dict[str, Any], context: ToolContext) -> ApprovalQuestion | None:
    """Return the question for the user, or None if the call may run without approval."""
    if arguments["command"] in ("view", "search"):
        return None
    _require(arguments)
    shown = [f"{name}: {value}" for name, value in arguments.items() if name != "command"]
    key = f"memory:delete:{arguments['path']}" if arguments["command"] == "delete" else "memory"
    return ApprovalQuestion(key=key, title=f"Memory: {arguments['command']}", body="\n".join(shown))
