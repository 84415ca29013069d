"""Lists and describes the files of a folder that wait for the user's trust, without using them.

The list is shown as a line in the chat and on the trust page. Each loader itself checks `Services.trust` with the
content it is about to use.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from codecompanion.errors import CodeCompanionError
from codecompanion.formats import text_files
from codecompanion.formats.cutting import cut_line
from codecompanion.formats.plural import counted
from codecompanion.rules.groups import RulesItem, autoload
from codecompanion.session.services import Services
from codecompanion.session.trust.decisions import FileHash
from codecompanion.session.trust.folders import covers, folder_of
from codecompanion.session.trust.trust import sha256_of
from codecompanion.workspace.git_config import NamedProgram, programs_named

Kind = Literal["rules", "mcp", "prompt", "memory", "team", "git"]
_MANY = {
    "rules": "rule file", "prompt": "prompt", "mcp": "MCP file", "memory": "memory file", "team": "team file",
    "git": "git configuration",
}  # fmt: skip
_MCP_FILE = ".mcp.json"
_NAMED = 2
"""Maximum number of files of one type named in the line; the others are counted."""
_NAME_CHARS = 40
_MAX_BYTES = 1_000_000


class ProvidedFile(msgspec.Struct, frozen=True):
    """A file of a folder that instructs the model or starts programs, in its current state.

    `does`: its effect in one line. `runs`: it starts programs. `leads_out`: its real path is outside the folder.
    `has_changed`: it waits because its content has changed since the user trusted it.
    """

    kind: Kind
    label: str
    path: str
    sha256: str
    text: str
    does: str
    is_trusted: bool
    runs: bool = False
    leads_out: bool = False
    has_changed: bool = False

    @property
    def hash(self) -> FileHash:
        """Return the path and content hash that identify the trusted file."""
        return FileHash(self.path, self.sha256)


def provided_files(
    services: Services, root: Path, prompt_folders: Sequence[str] = (), own_prompts: str = ""
) -> list[ProvidedFile]:
    """Return the files that a workspace's folder provides, trusted or not. Reads them, so call it in a thread."""
    found = [*_rules(services, root), *_servers(services, root)]
    found += _prompts(services, root, prompt_folders, own_prompts)
    found += _gathered(services, root)
    found += _git(services, root)
    return found


def instructions_of(services: Services, root: Path) -> list[ProvidedFile]:
    """Return the folder's files that instruct the model: rules, prompts, memories. Call it in a thread."""
    found = [*_rules(services, root), *_prompts(services, root, (), ""), *_gathered(services, root)]
    return [one for one in found if not one.runs]


def untrusted_files(found: Sequence[ProvidedFile]) -> list[ProvidedFile]:
    """Return the files that the user has not trusted."""
    return [one for one in found if not one.is_trusted]


def describe_waiting(waiting: Sequence[ProvidedFile]) -> str:
    """Return a description of the waiting files: names if there are few, otherwise counts."""
    parts = list[str]()
    for kind, word in _MANY.items():
        of_kind = [one for one in waiting if one.kind == kind]
        if len(of_kind) > _NAMED:
            parts.append(counted(len(of_kind), word))
        else:
            parts += [cut_line(" ".join(one.label.split()), _NAME_CHARS) for one in of_kind]
    return ", ".join(parts)


def digest_of(waiting: Sequence[ProvidedFile]) -> str:
    """Return a digest that changes when the set of waiting files changes."""
    return sha256_of("\n".join(sorted(f"{one.path} {one.sha256}" for one in waiting)).encode("utf-8", "replace"))


async def note_first_sight(services: Services, root: Path) -> None:
    """Record files that start programs when a `trust.folders` folder is first seen, so that later changes wait."""
    trust = services.trust
    if not await asyncio.to_thread(trust.is_first_sight, root):
        return
    found = await asyncio.to_thread(provided_files, services, root)
    folder = folder_of(root)
    programs = [one.hash for one in found if one.runs and not one.leads_out]
    await trust.trust_folder(folder, programs, by="setup")


def _rules(services: Services, root: Path) -> Iterator[ProvidedFile]:
    known = list[RulesItem]()

    def is_trusted(item: RulesItem) -> bool:
        known.append(item)
        return services.trust.allows(root, Path(item.real), item.sha256)

    autoload(services.settings.rules, root, is_trusted)
    for item in {item.real: item for item in known}.values():
        yield _provided_file(
            services, root, "rules", item.path, item.real, item.sha256, item.text, "instructs every chat"
        )


def _servers(services: Services, root: Path) -> Iterator[ProvidedFile]:
    path = root / _MCP_FILE
    if not (services.settings.mcp.enabled and services.settings.mcp.project_file and path.is_file()):
        return
    from codecompanion.session.mcp_config.project_file import read_server_file  # not without servers

    file = read_server_file(path, services.environment)
    if not file.usable:
        return
    commands = "\n".join(entry.line() for entry in file.usable) + "\n\n" + file.text
    does = f"starts {counted(len(file.usable), 'MCP server')}: {', '.join(entry.name for entry in file.usable)}"
    if names := [os.path.relpath(one.path, root) for one in file.named]:
        does += f", runs {', '.join(names[:_NAMED])}" + (f" and {len(names) - _NAMED} more" if names[_NAMED:] else "")
    for one, name in zip(file.named, names, strict=True):
        commands += f"\n\n{name}:\n{_text_of(Path(one.path))}"
    yield _provided_file(services, root, "mcp", _MCP_FILE, str(path), file.sha256, commands, does, runs=True)


def _text_of(path: Path) -> str:
    try:
        return text_files.printable(text_files.decode(text_files.read_bytes(path, _MAX_BYTES)).text)
    except (CodeCompanionError, OSError):
        return "(not text, or too large to show)"


def _prompts(services: Services, root: Path, folders: Sequence[str], own: str) -> Iterator[ProvidedFile]:
    if not folders and not (folder_of(root) / ".codecompanion" / "prompts").is_dir():
        return
    from codecompanion.prompt_library.find_prompt_files import PromptText, find_prompts

    for found in find_prompts(folders, own, root):
        if isinstance(found, PromptText) and found.origin == "project":
            does = "adds a prompt"
            yield _provided_file(services, root, "prompt", found.label, found.real, found.sha256, found.text, does)


def _gathered(services: Services, root: Path) -> Iterator[ProvidedFile]:
    context, memory = services.settings.context, services.settings.chat.memory
    gathers, recalls = context.enabled is not False, memory.enabled and memory.max_tokens > 0
    places: list[tuple[Kind, str, str]] = []
    if context.memories.enabled and (gathers or recalls):
        does = "is sent in new chats" if recalls else "is sent with questions about the project"
        places.append(("memory", context.memories.project, does))
    team = context.team
    if team.enabled and gathers:
        does = "runs on questions about the team" if team.command else "is sent with questions about the team"
        places += [("team", name, does) for name in team.command or (team.file,)]
    for kind, name, does in places:
        path = root / Path(name).expanduser()
        if not name or not covers(folder_of(root), Path(os.path.abspath(path))) or not path.is_file():  # noqa: PTH100
            continue
        try:
            content = text_files.read_bytes(path, _MAX_BYTES)
        except (CodeCompanionError, OSError):
            continue
        text = text_files.printable(text_files.decode(content).text)
        runs = kind == "team" and bool(team.command)
        yield _provided_file(services, root, kind, name, str(path), sha256_of(content), text, does, runs=runs)


def _git(services: Services, root: Path) -> Iterator[ProvidedFile]:
    """Yield git configuration files that name programs.

    Git in a terminal runs these programs, the plugin's git never does.
    """
    by_file = dict[Path, list[NamedProgram]]()
    folder = folder_of(root)
    from codecompanion.workspace.git_listing import submodules_of  # not needed at startup

    for named in programs_named(folder, submodules_of(folder)):
        by_file.setdefault(named.file, []).append(named)
    for file, programs in by_file.items():
        text = "\n".join(f"{one.key} = {one.value}" for one in programs)
        keys = ", ".join(dict.fromkeys(one.key for one in programs))
        does = f"sets {keys}, which git in your terminal runs"
        digest = sha256_of("\n".join(sorted(text.splitlines())).encode("utf-8", "surrogateescape"))
        label = os.path.relpath(file, folder_of(root))
        yield _provided_file(services, root, "git", label, str(file), digest, text, does, runs=True)


def _provided_file(
    services: Services, root: Path, kind: Kind, label: str, path: str, sha256: str, text: str, does: str, *,
    runs: bool = False,
) -> ProvidedFile:  # fmt: skip
    real = Path(os.path.realpath(path))
    trusted = services.trust.allows(root, real, sha256, runs=runs)
    if not trusted and services.trust.is_by_command(real, sha256):
        does += "; a command wrote it"
    folder = folder_of(root)
    changed = not trusted and services.trust.decisions().knows_other(folder, str(real), sha256)
    return ProvidedFile(kind, label, str(real), sha256, text, does, trusted, runs, not covers(folder, real), changed)
