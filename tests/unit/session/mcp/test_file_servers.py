"""Trust of `.mcp.json`: in the chats of a Neovim, in another Neovim, and after the file changes.

Each test runs one or two hosts on one decisions file, in one folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codecompanion.engine.mcp import McpHost
from codecompanion.session.actions.trust_page import decide_trust
from codecompanion.session.session import Session
from codecompanion.session.trust.decisions import FileHash
from codecompanion.session.trust.folders import folder_of
from codecompanion.session.trust.trust import Trust
from codecompanion.settings import load
from codecompanion.store.opening import open_memory_store
from codecompanion.store.store import Store
from codecompanion.wire.events import Notice, TrustWaits
from codecompanion.wire.requests import ChangeTrust, ShowMcp
from tests.leftovers import closed_at_end
from tests.mcp.listener import HOSTILE
from tests.patience import PATIENCE_S
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit


class Neovim:
    """A host with chats in the folder; each answers any message."""

    def __init__(self, root: Path, store: Store, name: str = "a") -> None:
        self.name, self.root = name, root
        self.bench = Bench(root, ScriptedAdapter("s", lambda request: says("ok")), store=store)
        loaded = load({"mcp": {"servers": {}, "wait_s": PATIENCE_S}}).mcp
        services = self.bench.services
        services.settings = msgspec.structs.replace(services.settings, mcp=loaded)
        services.trust = Trust(root / "data" / "trust.json")
        self.chats: dict[str, Session] = {}
        self.host = McpHost(services, self.chats)

    async def open(self) -> Session:
        """Open a chat like the editor."""
        session = await self.bench.open(f"{self.name}-{len(self.chats) + 1}")
        self.chats[session.chat_id] = session
        await self.host.opened(session)
        return session

    async def say(self, session: Session) -> set[str]:
        """Send a message; return the server tools in its request, without the server's name."""
        number = len(session.log.view.messages) + 1
        session.submit(msgspec.structs.replace(submit("go", number), chat=session.chat_id))
        await self.bench.idle(session)
        specs = self.bench.adapter.requests[-1].tools
        return {spec.name for spec in specs if spec.name.endswith("__echo")}

    async def decide(self, **decision: Any) -> Any:
        """Decide on the page or with the command, like the user."""
        request = ChangeTrust(cwd=str(self.root), **decision)
        return await decide_trust(self.bench.services, request, self.chats)

    def waits(self, session: Session) -> str:
        """Return the waiting files reported by the chat."""
        return next((one.waits for one in reversed(self.bench.of(TrustWaits)) if one.chat == session.chat_id), "")

    def state(self, name: str = "odd") -> str:
        rows = self.host.servers.status(self.root)
        return next((row["state"] for row in rows if row["name"] == name), "none")

    @property
    def told(self) -> list[str]:
        return [event.text for event in self.bench.of(Notice)]


@contextlib.asynccontextmanager
async def neovims(*all_of_them: Neovim) -> AsyncIterator[None]:
    try:
        yield
    finally:
        for one in all_of_them:
            await one.host.aclose()


def project(root: Path, *names: str, ways: tuple[str, ...] = ()) -> Path:
    table = {name: {"command": sys.executable, "args": [str(HOSTILE), *ways]} for name in names}
    file = root / ".mcp.json"
    file.write_text(json.dumps({"mcpServers": table}))
    return file


@pytest.fixture
def store() -> Store:
    return closed_at_end(open_memory_store())


@pytest.mark.parametrize("decision", [{"what": "folder"}, {"what": "files", "path": ".mcp.json"}])
async def test_no_server_starts_before_its_file_is_trusted_then_in_every_chat(
    tmp_path: Path, store: Store, decision: dict[str, Any]
) -> None:
    """One line names the waiting file; the decision applies in all chats, and in the next Neovim."""
    project(tmp_path, "odd")
    first, later = Neovim(tmp_path, store), Neovim(tmp_path, store, "b")
    async with neovims(first, later):
        one, two = await first.open(), await first.open()
        assert first.waits(one) == first.waits(two) == ".mcp.json"
        assert await first.say(one) == set()
        assert not one.desk.questions
        await first.decide(**decision)
        assert first.waits(one) == first.waits(two) == ""
        assert await first.say(two) == {"odd__echo"}
        assert await later.say(await later.open()) == {"odd__echo"}
        assert not later.bench.of(TrustWaits)


@pytest.mark.parametrize("decision", [{"what": "folder"}, {"what": "files", "path": ".mcp.json"}])
async def test_a_changed_file_waits_again_and_its_servers_end(
    tmp_path: Path, store: Store, decision: dict[str, Any]
) -> None:
    """In a trusted folder, too: a sandboxed command can write the file, but not start its servers."""
    project(tmp_path, "odd")
    neovim = Neovim(tmp_path, store)
    async with neovims(neovim):
        chat = await neovim.open()
        await neovim.decide(**decision)
        assert await neovim.say(chat) == {"odd__echo"}
        project(tmp_path, "odd", "fresh")
        assert await neovim.say(chat) == set()
        assert neovim.state() == "none"
        assert neovim.waits(chat) == ".mcp.json"
        assert neovim.told == ["Stopped MCP server odd: .mcp.json has changed since you trusted it."]
        await neovim.decide(**decision)
        assert await neovim.say(chat) == {"odd__echo", "fresh__echo"}
        (tmp_path / ".mcp.json").unlink()
        assert await neovim.say(chat) == set()
        assert neovim.waits(chat) == ""


async def test_a_decision_revoked_in_another_neovim_ends_servers_here(tmp_path: Path, store: Store) -> None:
    """The servers end immediately there, and with the next message here."""
    project(tmp_path, "odd")
    here, there = Neovim(tmp_path, store), Neovim(tmp_path, store, "b")
    async with neovims(here, there):
        mine, other = await here.open(), await there.open()
        await here.decide(what="folder")
        assert await here.say(mine) == await there.say(other) == {"odd__echo"}
        await there.decide(what="revoke")
        assert there.state() == "none"
        assert here.state() == "ready"
        assert await here.say(mine) == set()
        assert here.state() == "none"
        assert here.waits(mine) == ".mcp.json"


async def test_the_displayed_content_is_the_trusted_content(tmp_path: Path, store: Store) -> None:
    """The page returns the hash of the content it displayed."""
    file = project(tmp_path, "odd")
    shown = FileHash(str(file), hashlib.sha256(file.read_bytes()).hexdigest())
    neovim = Neovim(tmp_path, store)
    async with neovims(neovim):
        chat = await neovim.open()
        project(tmp_path, "fresh")
        for what in ("files", "folder"):
            await neovim.decide(what=what, folder=str(folder_of(tmp_path)), files=(shown,))
            assert await neovim.say(chat) == set()
            assert neovim.waits(chat) == ".mcp.json"


async def test_the_page_shows_whether_a_file_is_trusted(tmp_path: Path, store: Store) -> None:
    file = project(tmp_path, "odd")
    neovim = Neovim(tmp_path, store)
    show = ShowMcp(cwd=str(tmp_path))
    async with neovims(neovim):
        row = {"path": str(file), "trusted": False, "servers": ["odd"], "problem": ""}
        found: Any = await neovim.host.carry_out(show)
        assert found["files"] == [row]
        await neovim.decide(what="folder")
        found = await neovim.host.carry_out(show)
        assert found["files"] == [{**row, "trusted": True}]
        file.unlink()
        found = await neovim.host.carry_out(show)
        assert found["files"] == []
