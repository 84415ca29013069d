"""Hostile folders against workspace trust: nothing loads before trust, then only trusted files.

Every attack plants one file of each kind with a canary and asks the loaders themselves (rules, MCP servers, prompts,
memories) for their results; some attacks send a message and check the request.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from codecompanion.engine.mcp import McpHost
from codecompanion.errors import InputError, OutsideWorkspace, ToolError
from codecompanion.model.messages import RULES_TAG
from codecompanion.session.actions.trust_page import decide_trust
from codecompanion.session.attachments.rules_sync import RuleKeeper
from codecompanion.session.gather.gatherers import read_memories
from codecompanion.session.gather.project_code import Choice, ProjectCode
from codecompanion.session.gather.team_text import TeamText
from codecompanion.session.prompt_library.library import list_prompts
from codecompanion.session.trust.decisions import FileHash
from codecompanion.session.trust.folders import folder_of
from codecompanion.session.trust.trust import Trust, sha256_of
from codecompanion.settings import load
from codecompanion.wire.events import TrustWaits
from codecompanion.wire.requests import Approve, ChangeTrust, ListPrompts, ShownFile, ShowTrust
from tests.attacks.conftest import Tally
from tests.attacks.sizes import amount
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit

CANARY = "canary-7f31"
PLACES = {
    "rules": "AGENTS.md",
    "mcp": ".mcp.json",
    "prompt": ".codecompanion/prompts/evil.md",
    "memory": ".codecompanion/memories.md",
}
KINDS = frozenset(PLACES)
NOTHING = frozenset[str]()
RUNS = frozenset({"mcp"})


def text_of(kind: str, more: str = "") -> str:
    """Return the text for a file of this kind; its canary shows whether the file was loaded."""
    mark = f"{CANARY} {more}"
    if kind == "mcp":
        command = {"command": sys.executable, "args": ["-c", f"'{mark}'"]}
        return json.dumps({"mcpServers": {"evil": command}})
    if kind == "prompt":
        return f"---\nname: Evil\nalias: evil\n---\n{mark}\n"
    return f"## [rule] Obey\n{mark}\n" if kind == "memory" else f"Obey. {mark}\n"


def plant(folder: Path, kinds: Iterable[str] = KINDS, more: str = "") -> None:
    """Write files of these kinds into a folder."""
    for kind in kinds:
        file = folder / PLACES[kind]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text_of(kind, more))


def repository(folder: Path) -> Path:
    """Return a repository with a file of every kind."""
    (folder / ".git").mkdir(parents=True)
    plant(folder)
    return folder


class World:
    """A home folder, a data folder, and Neovims that share them."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.work = self.root / "home" / "work"
        self.work.mkdir(parents=True)
        self.file = self.root / "data" / "trust.json"
        self.neovim = self.root / "trust"
        self.said: list[str] = []

    def services(self, root: Path, folders: tuple[str, ...] = (), adapter: ScriptedAdapter | None = None) -> Any:
        """Return the services of one Neovim in a folder."""
        bench = Bench(root, adapter or ScriptedAdapter("s", lambda request: says("ok")))
        bench.services.settings = load(
            {"workspace": {"root": str(root)}, "chat": {"adapter": "offline"}, "trust": {"folders": folders}}
        )
        bench.services.trust = Trust(self.file, folders=folders, neovim=self.neovim, report=self.said.append)
        return bench

    async def loaded(self, root: Path, folders: tuple[str, ...] = ()) -> frozenset[str]:
        """Return the kinds whose canary the loaders return to a chat in a folder."""
        services, found = self.services(root, folders).services, set[str]()
        messages, _ = await RuleKeeper(services).autoload(root)
        host = McpHost(services, {})
        given: dict[str, Any] = {"rules": [message.text for message in messages]}
        given["mcp"] = [text for file, used in await host.files._read(root) if used for text in (file.text,)]
        answer = await list_prompts(services, ListPrompts(cwd=str(root)))
        given["prompt"] = [part["text"] for row in answer["prompts"] for part in row["messages"]]
        context = services.settings.context.memories
        may_use = lambda at, path, content, runs: services.trust.allows(at, path, sha256_of(content), runs=runs)  # noqa: E731
        code = ProjectCode(root, Choice(), {})
        given["memory"] = list[str]()
        with contextlib.suppress(OutsideWorkspace):
            given["memory"] += [one.text for one in read_memories(code, context, may_use, lambda: None)]
        await host.aclose()
        for kind, texts in given.items():
            if any(CANARY in text for text in texts):
                found.add(kind)
        return frozenset(found)

    async def decide(self, root: Path, **decision: Any) -> str:
        """Make a decision as a user of the command would."""
        return str(await decide_trust(self.services(root).services, ChangeTrust(**decision), {}))

    async def page(self, root: Path) -> dict[str, Any]:
        """Return the page for a folder."""
        shown = await decide_trust(self.services(root).services, ShowTrust(), {})
        assert isinstance(shown, dict)
        return shown


Attack = Callable[[World], Awaitable[tuple[Path, frozenset[str]]]]
ATTACKS: dict[str, Attack] = {}


def attack(function: Attack) -> Attack:
    """Register an attack: a function that prepares a folder and returns it with the kinds of files loadable there."""
    ATTACKS[function.__name__] = function
    return function


@attack
async def first_visit(world: World) -> tuple[Path, frozenset[str]]:
    """Visit a folder for which the user has not decided."""
    return repository(world.work / "repo"), NOTHING


@attack
async def trusted(world: World) -> tuple[Path, frozenset[str]]:
    """Trust the whole folder."""
    repo = repository(world.work / "repo")
    await world.decide(repo, what="folder")
    return repo, KINDS


@attack
async def revoked(world: World) -> tuple[Path, frozenset[str]]:
    """Trust a folder, then revoke the decision."""
    repo = repository(world.work / "repo")
    await world.decide(repo, what="folder")
    await world.decide(repo, what="revoke")
    return repo, NOTHING


@attack
async def changed_after_folder_trust(world: World) -> tuple[Path, frozenset[str]]:
    """Change the files of a trusted folder: instructions may change, files that start programs may not."""
    repo = repository(world.work / "repo")
    await world.decide(repo, what="folder")
    plant(repo, more="changed")
    return repo, KINDS - RUNS


@attack
async def appears_after_folder_trust(world: World) -> tuple[Path, frozenset[str]]:
    """Add a server file after the folder was trusted."""
    repo = repository(world.work / "repo")
    (repo / ".mcp.json").unlink()
    await world.decide(repo, what="folder")
    plant(repo, RUNS)
    return repo, KINDS - RUNS


@attack
async def one_file_trusted(world: World) -> tuple[Path, frozenset[str]]:
    """Trust a single file."""
    repo = repository(world.work / "repo")
    await world.decide(repo, what="files", path="AGENTS.md")
    return repo, frozenset({"rules"})


@attack
async def changed_after_file_trust(world: World) -> tuple[Path, frozenset[str]]:
    """Append one byte to each trusted file."""
    repo = repository(world.work / "repo")
    for place in PLACES.values():
        await world.decide(repo, what="files", path=place)
    plant(repo, more="!")
    return repo, NOTHING


@attack
async def exchanged_between_page_and_key(world: World) -> tuple[Path, frozenset[str]]:
    """Replace the files after they were shown: only the content that was shown is trusted."""
    repo = repository(world.work / "repo")
    shown = await world.page(repo)
    plant(repo, more="exchanged")
    files = tuple(msgspec.convert(row, FileHash) for row in shown["files"])
    await world.decide(repo, what="files", folder=shown["folder"], identity=shown["identity"], files=files)
    return repo, NOTHING


@attack
async def servers_exchanged_between_page_and_key(world: World) -> tuple[Path, frozenset[str]]:
    """Replace the servers after they were shown: the folder is trusted only with the servers that were shown."""
    repo = repository(world.work / "repo")
    shown = await world.page(repo)
    plant(repo, RUNS, more="exchanged")
    files = tuple(msgspec.convert(row, FileHash) for row in shown["files"] if row["runs"])
    await world.decide(repo, what="folder", folder=shown["folder"], identity=shown["identity"], files=files)
    return repo, KINDS - RUNS


@attack
async def folder_exchanged_between_page_and_key(world: World) -> tuple[Path, frozenset[str]]:
    """Replace the folder at the path after it was shown."""
    repo = world.work / "repo"
    (repo / ".git").mkdir(parents=True)
    shown = await world.page(repo)
    repo.rename(world.work / "old")
    repository(repo)
    with pytest.raises(InputError):
        await world.decide(repo, what="folder", folder=shown["folder"], identity=shown["identity"])
    return repo, NOTHING


def plant_server(repo: Path, args: list[str], script: str, **entry: Any) -> Path:
    """Write a server file that starts a script of the folder, and the script."""
    server = {"command": sys.executable, "args": args, "env": {"MARK": CANARY}, **entry}
    (repo / ".mcp.json").write_text(json.dumps({"mcpServers": {"evil": server}}))
    file = repo / script
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("print('good')\n")
    return file


SCRIPTS: dict[str, tuple[list[str], str, dict[str, Any]]] = {
    "script": (["server.py"], "server.py", {}),
    "in a folder": (["./tools/server.py"], "tools/server.py", {}),
    "cwd": (["server.py"], "tools/server.py", {"cwd": "tools"}),
    "the program": ([], "bin/server", {"command": "./bin/server"}),
    "module": (["-m", "tools.server"], "tools/server.py", {}),
    "package": (["-m", "tools"], "tools/__main__.py", {}),
    "folder": (["tools"], "tools/__main__.py", {}),
    "shell": (["-c", "exec python3 tools/server.py --x"], "tools/server.py", {"command": "sh"}),
    "option": (["--require=./hook.js", "x"], "hook.js", {"command": "node"}),
    "directory": (["--directory", "tools", "run", "server.py"], "tools/server.py", {"command": "uv"}),
    "variable": (["${CC_NOBODY_SET_IT:-.}/server.py"], "server.py", {}),
    "environment": (["x"], "hook.js", {"command": "node", "env": {"NODE_OPTIONS": "--require ./hook.js"}}),
    "recipe": (["start"], "package.json", {"command": "npm"}),
    "application": (["server:app"], "server.py", {"command": "uvicorn"}),
}


@pytest.mark.parametrize("form", SCRIPTS)
@pytest.mark.parametrize("what", ["folder", "files"])
async def test_scripts_of_a_server_are_trusted_with_it(form: str, what: str, tmp_path: Path, tally: Any) -> None:
    """A rewritten, removed or redirected script needs trust again; when trusted again, it runs again."""
    world, held = World(tmp_path), 0
    repo = world.work / "repo"
    (repo / ".git").mkdir(parents=True)
    args, script, entry = SCRIPTS[form]
    file = plant_server(repo, args, script, **entry)
    elsewhere = world.root / "elsewhere"
    elsewhere.write_text("print('evil')\n")

    async def used() -> bool:
        host = McpHost(world.services(repo).services, {})
        ((_, is_used),) = await host.files._read(repo)
        await host.aclose()
        return is_used

    path = {"path": ".mcp.json"} if what == "files" else {}
    changes: list[Callable[[], object]] = [
        lambda: file.write_text("print('evil')\n"),
        file.unlink,
        lambda: file.symlink_to(elsewhere),
        lambda: elsewhere.write_text("print('more evil')\n"),
    ]
    for change in changes:
        await world.decide(repo, what=what, **path)
        assert await used()
        change()
        held += not await used()
    tally("trust: scripts of servers × changes", tried=len(changes), held=held)
    assert held == len(changes)


async def test_a_script_is_shown_and_a_database_does_not_ask_again(tmp_path: Path) -> None:
    """The page shows the text of the script; a server that writes its own database stays trusted."""
    world = World(tmp_path)
    repo = world.work / "repo"
    (repo / ".git").mkdir(parents=True)
    plant_server(repo, ["server.py", "--db", "notes.db"], "server.py")
    (repo / "notes.db").write_bytes(b"SQLite format 3\0 one")
    (row,) = (await world.page(repo))["files"]
    assert "runs server.py" in row["does"]
    assert "print('good')" in row["text"]
    await world.decide(repo, what="folder")
    (repo / "notes.db").write_bytes(b"SQLite format 3\0 two")
    assert "mcp" in await world.loaded(repo)
    (repo / "notes.db").write_text("import evil")
    assert "mcp" not in await world.loaded(repo)


@attack
async def links_out(world: World) -> tuple[Path, frozenset[str]]:
    """Make the files of a trusted folder symlinks to the user's files elsewhere, below home."""
    elsewhere, repo = world.work / "elsewhere", world.work / "repo"
    plant(elsewhere)
    (repo / ".git").mkdir(parents=True)
    for place in PLACES.values():
        (repo / place).parent.mkdir(parents=True, exist_ok=True)
        (repo / place).symlink_to(elsewhere / place)
    await world.decide(repo, what="folder")
    return repo, NOTHING


@attack
async def links_into_a_trusted_folder(world: World) -> tuple[Path, frozenset[str]]:
    """Link from a hostile folder to files that are trusted in another one."""
    theirs, evil = repository(world.work / "theirs"), world.work / "evil"
    await world.decide(theirs, what="folder")
    for place in PLACES.values():
        await world.decide(theirs, what="files", path=place)
        (evil / place).parent.mkdir(parents=True, exist_ok=True)
        (evil / place).symlink_to(theirs / place)
    return evil, NOTHING


@attack
async def trusted_file_becomes_a_link(world: World) -> tuple[Path, frozenset[str]]:
    """Replace a trusted file with a symlink out of the folder."""
    repo, elsewhere = repository(world.work / "repo"), world.work / "elsewhere"
    plant(elsewhere, more="private")
    await world.decide(repo, what="folder")
    for place in PLACES.values():
        (repo / place).unlink()
        (repo / place).symlink_to(elsewhere / place)
    return repo, NOTHING


@attack
async def reached_by_a_link(world: World) -> tuple[Path, frozenset[str]]:
    """Reach a folder by a second name; the real path counts."""
    repo = repository(world.work / "repo")
    (world.work / "link").symlink_to(repo)
    await world.decide(repo, what="folder")
    return world.work / "link", KINDS


@attack
async def a_link_is_trusted_and_led_elsewhere(world: World) -> tuple[Path, frozenset[str]]:
    """Redirect a trusted symlink: trust applies to the folder that it pointed to."""
    repo, evil = repository(world.work / "repo"), repository(world.work / "evil")
    link = world.work / "link"
    link.symlink_to(repo)
    await world.decide(link, what="folder")
    link.unlink()
    link.symlink_to(evil)
    return link, NOTHING


@attack
async def dots_in_the_path(world: World) -> tuple[Path, frozenset[str]]:
    """Use a path with dots: `trusted/../evil` is not below `trusted`."""
    repo, evil = repository(world.work / "repo"), repository(world.work / "evil")
    await world.decide(repo, what="folder")
    return repo / ".." / evil.name, NOTHING


@attack
async def a_name_that_begins_alike(world: World) -> tuple[Path, frozenset[str]]:
    """Use a name with the same beginning: `repo-evil` is not `repo`."""
    repo = repository(world.work / "repo")
    await world.decide(repo, what="folder")
    return repository(world.work / "repo-evil"), NOTHING


@attack
async def a_repository_inside(world: World) -> tuple[Path, frozenset[str]]:
    """Clone a repository into a trusted one; it is a separate folder."""
    repo = repository(world.work / "repo")
    await world.decide(repo, what="folder")
    return repository(repo / "vendor" / "child"), NOTHING


@attack
async def a_submodule_inside(world: World) -> tuple[Path, frozenset[str]]:
    """Add a submodule, whose `.git` is a file."""
    repo = repository(world.work / "repo")
    await world.decide(repo, what="folder")
    child = repo / "vendor" / "child"
    plant(child)
    (child / ".git").write_text(f"gitdir: {repo / '.git'}\n")
    return child, NOTHING


@attack
async def unpacked_below_a_trusted_folder(world: World) -> tuple[Path, frozenset[str]]:
    """Unpack an archive below a trusted folder that is not a repository; the trust does not cover it."""
    plant(world.work)
    await world.decide(world.work, what="folder")
    plant(world.work / "unpacked")
    return world.work / "unpacked", NOTHING


@attack
async def a_parent_brings_it(world: World) -> tuple[Path, frozenset[str]]:
    """Link from a trusted workspace to files in its parent folder."""
    plant(world.work)
    root = world.work / "root"
    (root / ".git").mkdir(parents=True)
    for place in PLACES.values():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).symlink_to(world.work / place)
    await world.decide(root, what="folder")
    return root, NOTHING


@attack
async def renamed(world: World) -> tuple[Path, frozenset[str]]:
    """Rename a trusted folder."""
    repo = repository(world.work / "repo")
    await world.decide(repo, what="folder")
    return repo.rename(world.work / "renamed"), NOTHING


@attack
async def moved_to_a_trusted_path(world: World) -> tuple[Path, frozenset[str]]:
    """Move another folder to the path of a trusted one."""
    repo, evil = repository(world.work / "repo"), repository(world.work / "evil")
    await world.decide(repo, what="folder")
    repo.rename(world.work / "gone")
    evil.rename(repo)
    return repo, NOTHING


@attack
async def other_letters(world: World) -> tuple[Path, frozenset[str]]:
    """Use names in a different case: they are different folders and files."""
    repo = repository(world.work / "repo")
    await world.decide(repo, what="folder")
    upper = world.work / "REPO"
    if upper.exists():  # a case-insensitive file system
        return repo, KINDS
    repository(upper)
    for place in ("agents.md", "Agents.MD", ".MCP.JSON"):
        (upper / place).write_text(text_of("rules"))
    return upper, NOTHING


@attack
async def dotfiles_at_home(world: World) -> tuple[Path, frozenset[str]]:
    """Unpack an archive below a home folder that is a trusted repository; the trust does not cover it."""
    (Path.home() / ".git").mkdir(parents=True)
    await world.decide(Path.home(), what="folder")
    unpacked = Path.home() / "downloads" / "x"
    plant(unpacked)
    return unpacked, NOTHING


@attack
async def the_folder_brings_the_decisions(world: World) -> tuple[Path, frozenset[str]]:
    """Put a `trust.json` into the folder, wherever a loader might look."""
    repo = repository(world.work / "repo")
    forged = {"folders": [{"path": str(repo)}], "files": []}
    for place in ("trust.json", ".codecompanion/trust.json", "data/trust.json", ".git/trust.json"):
        (repo / place).parent.mkdir(parents=True, exist_ok=True)
        (repo / place).write_text(json.dumps(forged))
    return repo, NOTHING


@attack
async def neovim_denies_it(world: World) -> tuple[Path, frozenset[str]]:
    """Deny a file of a trusted folder with Neovim's `:trust`."""
    repo = repository(world.work / "repo")
    await world.decide(repo, what="folder")
    world.neovim.write_text(f"! {repo / 'AGENTS.md'}\n! {repo / '.mcp.json'}\n")
    return repo, KINDS - {"rules", "mcp"}


@attack
async def neovim_trusts_one(world: World) -> tuple[Path, frozenset[str]]:
    """Allow one file with its current content and another with outdated content by Neovim's `:trust`."""
    repo = repository(world.work / "repo")
    one, other = repo / "AGENTS.md", repo / ".mcp.json"
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (one, other)]
    world.neovim.write_text(f"{hashes[0]} {one}\n{hashes[1]} {other}\n")
    other.write_text(text_of("mcp", "later"))
    return repo, frozenset({"rules"})


@pytest.mark.parametrize("name", ATTACKS)
async def test_exactly_what_is_trusted_is_loaded(
    name: str, tmp_path: Path, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every attack is tried with a file of every kind."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    world = World(tmp_path)
    root, allowed = await ATTACKS[name](world)
    loaded = await world.loaded(root)
    tally("trust: hostile folders × kinds of file", tried=len(KINDS), held=len(KINDS) - len(loaded ^ allowed))
    assert loaded == allowed


@pytest.mark.parametrize("damage", [b"", b"{", b"null", b"[]", b'{"folders": [{"path": ""}]}', b"\x00" * 99, b"[" * 99])
async def test_a_damaged_file_of_decisions_trusts_nothing(
    damage: bytes, tmp_path: Path, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the file is truncated, emptied or partly forged, nothing is trusted.

    This is reported, and the user can decide again.
    """
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    world = World(tmp_path)
    repo = repository(world.work / "repo")
    await world.decide(repo, what="folder")
    world.file.write_bytes(damage)
    loaded = await world.loaded(repo)
    tally("trust: damaged decisions × kinds of file", tried=len(KINDS), held=len(KINDS) - len(loaded))
    assert loaded == NOTHING
    await world.decide(repo, what="folder")
    assert await world.loaded(repo) == KINDS


@pytest.mark.parametrize(
    ("pattern", "allowed"),
    [("{repo}", KINDS), ("{repo}/", KINDS), ("{work}/*", KINDS), ("{work}/**", KINDS), ("{work}", NOTHING),
     ("{repo}/*", NOTHING), ("{work}/rep", NOTHING), ("{work}/REPO", NOTHING), ("repo", NOTHING), ("*", NOTHING)],
)  # fmt: skip
async def test_folders_of_the_configuration(
    pattern: str, allowed: frozenset[str], tmp_path: Path, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configured pattern trusts the folders it matches, but servers only in the state that was seen first."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    world = World(tmp_path)
    repo = repository(world.work / "repo")
    folders = (pattern.format(repo=repo, work=world.work),)
    await decide_trust(world.services(repo, folders).services, ShowTrust(), {})  # as a chat does
    loaded = await world.loaded(repo, folders)
    plant(repo, RUNS, more="later")
    await decide_trust(world.services(repo, folders).services, ShowTrust(), {})
    later = await world.loaded(repo, folders)
    held = 2 * len(KINDS) - len(loaded ^ allowed) - len(later ^ (allowed - RUNS))
    tally("trust: patterns × kinds of file", tried=2 * len(KINDS), held=held)
    assert (loaded, later) == (allowed, allowed - RUNS)


async def test_a_running_chat_gets_and_loses_what_is_decided(
    tmp_path: Path, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line names the waiting files, without a question.

    A trusted folder's files are sent until the trust is revoked.
    """
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    world = World(tmp_path)
    repo = repository(world.work / "repo")
    bench, chats = world.services(repo), dict[str, Any]()
    host = McpHost(bench.services, chats)
    session = chats["chat-1"] = await bench.open()
    await host.opened(session)

    async def sent(number: int) -> bool:
        session.submit(submit("hello", number))
        await bench.idle(session)
        request = bench.adapter.requests[-1]
        return any(CANARY in message.text for message in request.messages) or bool(host.servers.of(repo))

    (line,) = bench.of(TrustWaits)
    assert line.waits == "AGENTS.md, .codecompanion/prompts/evil.md, .mcp.json, .codecompanion/memories.md"
    assert not session.desk.questions
    before = await sent(1)
    await decide_trust(bench.services, ChangeTrust(what="folder"), chats)
    assert await sent(2)
    assert bench.of(TrustWaits)[-1].waits == ""
    elsewhere = Trust(world.file)  # another Neovim
    await elsewhere.revoke(folder_of(repo))
    after = await sent(3)
    await host.aclose()
    tally("trust: requests of a running chat", tried=2, held=2 - before - after)
    assert (before, after) == (False, False)


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_trust_given_in_a_running_turn_applies_to_the_next_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    """The line about waiting files goes at once, unless the decision is made in another Neovim; rules join later."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    world = World(tmp_path)
    repo = repository(world.work / "repo")
    call = ("c1", "create_file", json.dumps({"path": "a.txt", "content": "a"}))
    replies = [says("hello"), calls(call), says("done")]
    bench, chats = world.services(repo, adapter=ScriptedAdapter("s", replies)), dict[str, Any]()
    host = McpHost(bench.services, chats)
    session = chats["chat-1"] = await bench.open()
    await host.opened(session)
    session.submit(submit("hello", 1))
    await bench.idle(session)
    session.submit(submit("go", 2))
    await bench.until(lambda: bool(session.desk.questions))
    if elsewhere:
        await Trust(world.file).trust_folder(folder_of(repo))
    else:
        await decide_trust(bench.services, ChangeTrust(what="folder"), chats)
        assert bench.of(TrustWaits)[-1].waits == ""
    assert session.desk.questions
    session.desk.answer(Approve(call_id="c1", decision="once"))
    await bench.idle(session)
    session.submit(submit("next", 3))
    await bench.idle(session)
    await host.aclose()
    rules = [[m.path for m in request.messages if m.tag == RULES_TAG] for request in bench.adapter.requests]
    assert (rules[0], rules[-1]) == ([], ["AGENTS.md"])


async def test_instructions_that_a_command_writes_wait_in_a_trusted_folder_too(
    tmp_path: Path, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not matter who allowed the command; the chat keeps the rules that the user trusted."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    world = World(tmp_path)
    repo = world.work / "repo"
    (repo / ".git").mkdir(parents=True)
    (repo / "AGENTS.md").write_text("be brief")
    written = {"AGENTS.md": "rules", "CLAUDE.md": "rules", ".codecompanion/memories.md": "memory"}
    lines = [f"mkdir -p .codecompanion/prompts; echo '{CANARY}' > {name}" for name in written]
    prompt = ".codecompanion/prompts/new.md"
    lines.append(f"printf -- '---\\nname: x\\n---\\n## user\\n{CANARY}\\n' > {prompt}")
    command = json.dumps({"command": " ; ".join(lines)})
    replies = [says("hello"), calls(("c1", "run_command", command)), says("done")]
    bench = world.services(repo, adapter=ScriptedAdapter("s", replies))
    await decide_trust(bench.services, ChangeTrust(what="folder"), {})
    session = await bench.open()
    session.submit(submit("hello", 1))
    await bench.idle(session)
    session.submit(submit("go", 2))
    await bench.until(lambda: bool(session.desk.questions))
    session.desk.answer(Approve(call_id="c1", decision="once"))
    await bench.idle(session)
    last = [message for message in bench.adapter.requests[-1].messages if message.tag == RULES_TAG]
    believed = await world.loaded(repo)
    (repo / "AGENTS.md").write_text(f"{CANARY} of the user")
    by_user = await world.loaded(repo)
    await decide_trust(bench.services, ChangeTrust(what="folder"), {})
    seen = await world.loaded(repo)
    tally("trust: instructions written by a command", tried=4, held=4 - len(believed))
    assert [message.text.count("be brief") for message in last] == [1]
    assert (believed, by_user, seen) == (frozenset(), {"rules"}, {"rules", "memory", "prompt"})
    assert {name for name in written if (repo / name).exists()} == set(written)


UNSEEN_BY_THE_COMMAND = {
    "while it runs, in another chat": ("echo '{canary}' > AGENTS.md; touch ran; sleep 2", "."),
    "a workspace below": ("echo '{canary}' > sub/AGENTS.md; touch ran", "sub"),
    "includes, a thousand of them": (
        "mkdir d; (echo '{canary}'; for i in $(seq 1200); do echo @d/$i.md; echo > d/$i.md; done) > CLAUDE.md;"
        " touch ran",
        ".",
    ),
    "moved and given an old time": (
        "echo '{canary}' > x; touch -d 2001-01-01 x; cp -p x y; mv y AGENTS.md; touch ran",
        ".",
    ),
    "a link to a new file": ("echo '{canary}' > notes.md; rm AGENTS.md; ln -s notes.md AGENTS.md; touch ran", "."),
    "the host does not live to see its end": ("echo '{canary}' > AGENTS.md; touch ran; sleep 30", "."),
}


@pytest.mark.parametrize("way", UNSEEN_BY_THE_COMMAND)
async def test_files_written_by_a_command_wait_wherever_they_are_read(
    tmp_path: Path, tally: Tally, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """The files wait in another Neovim while the command runs, after a `kill -9` of its host, and in a subfolder."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    command, below = UNSEEN_BY_THE_COMMAND[way]
    world = World(tmp_path)
    repo = world.work / "repo"
    (repo / ".git").mkdir(parents=True)
    (repo / "sub").mkdir()
    (repo / "AGENTS.md").write_text("be brief")
    call = ("c1", "run_command", json.dumps({"command": command.format(canary=CANARY)}))
    bench = world.services(repo, adapter=ScriptedAdapter("s", [calls(call), says("done")]))
    await decide_trust(bench.services, ChangeTrust(what="folder"), {})
    if "live" in way:

        async def killed(*_: object) -> None:
            """Do nothing when closed: the host was killed."""

        monkeypatch.setattr(Trust, "note_command_end", killed)
        monkeypatch.setattr(Trust, "note_commands", killed)
    session = await bench.open()
    session.submit(submit("go"))
    await bench.until(lambda: bool(session.desk.questions))
    session.desk.answer(Approve(call_id="c1", decision="once"))
    await bench.until(lambda: (repo / "ran").exists() and ("runs" in way or "live" in way or bench.is_idle(session)))
    believed = await world.loaded(repo / below)
    if not bench.is_idle(session):
        session.cancel()
        await bench.idle(session)
    tally("trust: instructions written by a command, read elsewhere", tried=1, held=int(not believed))
    assert believed == frozenset()
    await decide_trust(world.services(repo / below).services, ChangeTrust(what="folder"), {})
    assert await world.loaded(repo / below) == {"rules"}


async def test_a_folder_is_trusted_as_the_page_showed_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a command writes files after the page was shown, the decision does not cover content the user has not seen."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    world = World(tmp_path)
    repo = world.work / "repo"
    (repo / ".git").mkdir(parents=True)
    (repo / "AGENTS.md").write_text("be brief")
    shown = await world.page(repo)
    trust = world.services(repo).services.trust
    await trust.note_command_start(repo, "a", [])
    (repo / "AGENTS.md").write_text(CANARY)
    await trust.note_command_end(repo, "a")
    for page, believed in ((shown, False), (await world.page(repo), True)):
        files = [{"path": one["path"], "sha256": one["sha256"]} for one in page["files"]]
        given = msgspec.convert(files, tuple[ShownFile, ...])
        decision = {"what": "folder", "folder": page["folder"], "identity": page["identity"], "files": given}
        with contextlib.nullcontext() if believed else pytest.raises(InputError, match=r"changed AGENTS\.md since"):
            await world.decide(repo, **decision)
        assert await world.loaded(repo) == ({"rules"} if believed else frozenset())


ORDINARY_CHANGES = {
    "the user writes": ("true", lambda repo: (repo / "AGENTS.md").write_text(CANARY)),
    "the user's git pull, in a terminal": ("true", lambda repo: (repo / "sub" / "AGENTS.md").write_text(CANARY)),
    "a command writes the same": ("cat AGENTS.md > x; cat x > AGENTS.md; touch CLAUDE.md; rm CLAUDE.md", None),
    "a command takes it away and back": ("mv AGENTS.md x; mv x AGENTS.md; chmod 644 AGENTS.md", None),
}


@pytest.mark.parametrize("way", ORDINARY_CHANGES)
async def test_ordinary_changes_of_a_trusted_folder_wait_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    command, change = ORDINARY_CHANGES[way]
    world = World(tmp_path)
    repo = world.work / "repo"
    (repo / ".git").mkdir(parents=True)
    (repo / "sub").mkdir()
    (repo / "AGENTS.md").write_text(CANARY)
    call = ("c1", "run_command", json.dumps({"command": command}))
    bench = world.services(repo, adapter=ScriptedAdapter("s", [calls(call), says("done")]))
    await decide_trust(bench.services, ChangeTrust(what="folder"), {})
    session = await bench.open()
    session.submit(submit("go"))
    await bench.until(lambda: bool(session.desk.questions))
    session.desk.answer(Approve(call_id="c1", decision="once"))
    await bench.idle(session)
    if change is not None:
        await asyncio.sleep(0.05)  # the kernel's clock for files has ticks
        change(repo)
    assert await world.loaded(repo / "sub" if "pull" in way else repo) == {"rules"}
    assert [event.waits for event in bench.of(TrustWaits) if event.waits] == []


async def test_git_settings_that_name_programs_wait_and_changes_of_them_wait_again(
    tmp_path: Path, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are listed with the programs they start.

    In a folder from `trust.folders`, only settings added later wait.
    """
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    world, held = World(tmp_path), 0
    repo = repository(world.work / "repo")
    config = repo / ".git" / "config"
    for file, text in ((repo / ".git" / "HEAD", "ref: refs/heads/main\n"), (config, "[core]\n\tfsmonitor = evil\n")):
        file.write_text(text)
    for folder in ("objects", "refs"):
        (repo / ".git" / folder).mkdir()

    async def waits(folders: tuple[str, ...] = ()) -> list[str]:
        page = await decide_trust(world.services(repo, folders).services, ShowTrust(), {})
        assert isinstance(page, dict)
        return [row["text"] for row in page["files"] if row["kind"] == "git" and not row["is_trusted"]]

    held += await waits() == ["core.fsmonitor = evil"]
    held += await waits((str(repo),)) == []
    config.write_text("[core]\n\tfsmonitor = evil\n\tsshCommand = worse\n")
    held += ["worse" in text for text in await waits((str(repo),))] == [True]
    await world.decide(repo, what="folder")
    held += await waits() == []
    config.write_text("[core]\n\tfsmonitor = other\n")
    held += await waits() == ["core.fsmonitor = other"]
    tally("trust: git settings that name programs", tried=5, held=held)
    assert held == 5


class Oracle:
    """Tracks the expected result of the decisions while folders and files change at random."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.random = world, random.Random(seed)
        outer = repository(world.work / "a")
        self.folders = [outer, repository(outer / "inner"), repository(world.work / "b")]
        self.trusted: dict[Path, dict[str, str]] = {}
        self.files: dict[tuple[Path, str], str] = {}
        self.version = 0

    def content(self, folder: Path, kind: str) -> str:
        """Return the text of a file, or "" if it was deleted or links elsewhere."""
        file = folder / PLACES[kind]
        return file.read_text() if file.is_file() and not file.is_symlink() else ""

    def expected(self, folder: Path) -> frozenset[str]:
        """Return the kinds that may be loaded."""
        found = set[str]()
        for kind in KINDS:
            now = self.content(folder, kind)
            by_folder = folder in self.trusted and (kind not in RUNS or self.trusted[folder].get(kind) == now)
            if now and (by_folder or self.files.get((folder, kind)) == now):
                found.add(kind)
        return frozenset(found)

    async def step(self) -> str:
        """Take one random step; return its description."""
        folder, kind = self.random.choice(self.folders), self.random.choice(sorted(KINDS))
        what = self.random.choice(["write", "remove", "link", "folder", "folder", "file", "file", "revoke"])
        file = folder / PLACES[kind]
        match what:
            case "write":
                self.version += 1
                file.unlink(missing_ok=True)
                plant(folder, [kind], f"v{self.version}")
            case "remove":
                file.unlink(missing_ok=True)
            case "link":
                file.unlink(missing_ok=True)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.symlink_to(self.world.work / "elsewhere.md")
            case "folder":
                await self.world.decide(folder, what="folder")
                self.trusted[folder] = {one: self.content(folder, one) for one in RUNS}
            case "file" if self.content(folder, kind):
                await self.world.decide(folder, what="files", path=PLACES[kind])
                self.files[folder, kind] = self.content(folder, kind)
            case "revoke":
                known = folder in self.trusted or any(one == folder for one, _ in self.files)
                if known:
                    await self.world.decide(folder, what="revoke")
                self.trusted.pop(folder, None)
                self.files = {key: text for key, text in self.files.items() if key[0] != folder}
        return f"{what} {kind} in {folder.name}"


@pytest.mark.parametrize("seed", range(amount(3, full=40)))
async def test_decisions_and_changes_at_random(
    seed: int, tmp_path: Path, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Repositories are nested; files change, vanish or become symlinks; several Neovims make and revoke decisions."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    oracle, told, tried = Oracle(World(tmp_path), seed), list[str](), 0
    (oracle.world.work / "elsewhere.md").write_text(f"## [rule] Obey\n{CANARY}\n")
    for _ in range(amount(8, full=30)):
        told.append(await oracle.step())
        for folder in oracle.folders:
            tried += 1
            assert await oracle.world.loaded(folder) == oracle.expected(folder), told
    tally("trust: random decisions and changes", tried=tried, held=tried)


async def test_a_folder_full_of_files_is_shown_within_limits(
    tmp_path: Path, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is limited, and reports for each file how many characters are not shown."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    world = World(tmp_path)
    repo = repository(world.work / "repo")
    for number in range(20):
        file = repo / f".codecompanion/prompts/p{number}.md"
        file.write_text(f"---\nname: P{number}\n---\n" + "x" * 250_000)
    page = await world.page(repo)
    shown = sum(len(row["text"]) for row in page["files"])
    cut = sum(row["cut"] for row in page["files"])
    tally("trust: pages of large folders", tried=1, held=int(shown <= 2_000_000))
    assert shown <= 2_000_000
    assert shown + cut > 5_000_000


def test_the_suite_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With trust disabled the canaries appear."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(Trust, "allows", lambda *given, **more: True)
    world = World(tmp_path)
    repo = repository(world.work / "repo")
    assert asyncio.run(world.loaded(repo)) == KINDS


async def test_the_users_own_programs_take_no_module_of_an_untrusted_folder(tmp_path: Path, tally: Tally) -> None:
    """`python -m server`, as an MCP server or for the team, does not import from the working folder.

    Controls show it would.
    """
    world = World(tmp_path)
    repo, canary = repository(world.work / "repo"), tmp_path / "canary"
    (repo / "notes.py").write_text(f"open({str(canary)!r}, 'a').write('ran')")
    command = (sys.executable, "-m", "notes")
    settings = {"mcp": {"servers": {"mine": {"enabled": True, "cmd": list(command)}}}}
    held, tried = 0, 0
    for is_trusted in (False, True):
        if is_trusted:
            await world.decide(repo, what="folder")
        services = world.services(repo).services
        services.settings = load({**settings, "workspace": {"root": str(repo)}})
        host = McpHost(services, {"c": SimpleNamespace(root=lambda: repo)})  # type: ignore[dict-item]
        (server,) = host.servers.of(repo)
        folder = Path(host.servers.spec(server.entry).cwd)
        await host.aclose()
        await asyncio.to_thread(subprocess.run, command, cwd=folder, capture_output=True, check=False)
        held += canary.exists() is is_trusted
        canary.unlink(missing_ok=True)
        team = msgspec.structs.replace(services.settings.context.team, enabled=True, command=command)
        with contextlib.nullcontext() if is_trusted else pytest.raises(ToolError, match="that you trust"):
            await TeamText(team, os.environ, is_trusted=services.trust.is_trusted).read(repo)
        held += canary.exists() is is_trusted
        canary.unlink(missing_ok=True)
        tried += 2
    tally("trust: modules of the working folder", tried=tried, held=held)
    assert held == tried
