"""What an answer about `.mcp.json` means: in the other chats of a Neovim, in another Neovim, and once the file changes.

Each test plays one or two hosts on one store, in one folder.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codecompanion.engine.mcp import McpHost
from codecompanion.errors import InputError, StoreError
from codecompanion.session.session import Session
from codecompanion.settings import load
from codecompanion.store.opening import open_memory_store
from codecompanion.store.store import Store
from codecompanion.wire.events import ApprovalClosed, ApprovalRequested, McpAnswered, Notice, PackagesMissing
from codecompanion.wire.requests import Approve, ChangeMcp, McpAnswer, ShowMcp
from tests.mcp.listener import HOSTILE
from tests.patience import PATIENCE_S
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit


class Neovim:
    """A host with chats in the folder, each of which answers whatever it is sent."""

    def __init__(
        self, root: Path, store: Store, name: str = "a", answers: tuple[McpAnswer, ...] = (), **mcp: Any
    ) -> None:
        self.name, self.root = name, root
        self.bench = Bench(root, ScriptedAdapter("s", lambda request: says("ok")), store=store)
        loaded = load({"mcp": {"servers": {}, "wait_s": PATIENCE_S, **mcp}}).mcp
        services = self.bench.services
        services.settings = msgspec.structs.replace(services.settings, mcp=loaded)
        self.chats: dict[str, Session] = {}
        self.host = McpHost(services, self.chats, answers)

    async def open(self) -> Session:
        """Open a chat, as the editor does."""
        session = await self.bench.open(f"{self.name}-{len(self.chats) + 1}")
        self.chats[session.chat_id] = session
        await self.host.opened(session)
        return session

    async def say(self, session: Session) -> set[str]:
        """Send a message; return the tools of servers that went with it, without the server's name."""
        number = len(session.log.view.messages) + 1
        session.submit(msgspec.structs.replace(submit("go", number), chat=session.chat_id))
        await self.bench.idle(session)
        specs = self.bench.adapter.requests[-1].tools
        return {spec.name for spec in specs if spec.name.endswith("__echo")}

    async def answer(self, session: Session, decision: Any) -> None:
        """Answer the question that stands in the chat."""
        (question,) = session.desk.offers
        await session.desk.take(Approve(chat=session.chat_id, call_id=question.call_id, decision=decision))

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
    return open_memory_store()


async def test_this_time_is_for_all_chats_of_this_neovim(tmp_path: Path, store: Store) -> None:
    """No chat asks again what was answered, and nothing goes out unanswered; the next Neovim asks."""
    project(tmp_path, "odd")
    first, later = Neovim(tmp_path, store), Neovim(tmp_path, store, "b")
    async with neovims(first, later):
        one, two = await first.open(), await first.open()
        assert len(one.desk.offers) == len(two.desk.offers) == 1
        assert await first.say(one) == set()
        await first.answer(one, "once")
        assert not one.desk.offers
        assert not two.desk.offers
        assert [closed.decision for closed in first.bench.of(ApprovalClosed)] == ["once", "once"]
        assert await first.say(two) == {"odd__echo"}
        three = await first.open()
        assert not three.desk.offers
        assert await first.say(three) == {"odd__echo"}
        other = await later.open()
        assert len(other.desk.offers) == 1
        assert await later.say(other) == set()


def kept_by_the_editor(neovim: Neovim) -> tuple[McpAnswer, ...]:
    """Return what `mcp/known.lua` has of the events so far, and tells the next host."""
    kept = {(one.root, one.path): one for one in neovim.bench.of(McpAnswered)}
    fields = ("root", "path", "sha256", "allowed")
    return tuple(McpAnswer(**{name: getattr(one, name) for name in fields}) for one in kept.values() if one.sha256)


async def test_this_time_outlives_the_host_and_no_change_of_the_file(tmp_path: Path, store: Store) -> None:
    """The next host of the same Neovim does not ask again; a changed file, or an answer taken back, is asked about."""
    file = project(tmp_path, "odd")
    first = Neovim(tmp_path, store)
    async with neovims(first):
        await first.answer(await first.open(), "once")
        answers = kept_by_the_editor(first)
        assert [one.allowed for one in answers] == [True]
    second = Neovim(tmp_path, store, "b", answers)
    async with neovims(second):
        chat = await second.open()
        assert not chat.desk.offers
        assert await second.say(chat) == {"odd__echo"}
        project(tmp_path, "odd", "other")
        await second.open()
        assert second.state() == "none"
        await second.host.carry_out(ChangeMcp(chat=chat.chat_id, what="ask", file=str(file)))
        assert kept_by_the_editor(second) == ()


async def test_the_page_shows_a_file_that_no_chat_has_looked_at(tmp_path: Path, store: Store) -> None:
    file = project(tmp_path, "odd")
    neovim = Neovim(tmp_path, store)
    show = ShowMcp(cwd=str(tmp_path))
    async with neovims(neovim):
        row = {"path": str(file), "answer": "unasked", "servers": ["odd"], "problem": "", "asked": False}
        found: Any = await neovim.host.carry_out(show)
        assert found["files"] == [row]
        await neovim.open()
        found = await neovim.host.carry_out(show)
        assert found["files"] == [{**row, "asked": True}]
        file.unlink()
        elsewhere = Neovim(tmp_path, store, "b")
        async with neovims(elsewhere):
            found = await elsewhere.host.carry_out(show)
            assert found["files"] == []


async def test_an_answer_promises_no_start_before_the_packages_are_there(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are installed from the answer on."""
    project(tmp_path, "odd")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    neovim = Neovim(tmp_path, store)
    async with neovims(neovim):
        await neovim.answer(await neovim.open(), "once")
        assert neovim.told == ["MCP servers that start once the packages for them are installed: odd."]
        assert [event.extra for event in neovim.bench.of(PackagesMissing)] == ["mcp"]


async def test_no_ends_what_ran_this_time_in_every_chat(tmp_path: Path, store: Store) -> None:
    """Asked again on the page, refused in another chat: no server runs on, and no chat offers it; each chat is told."""
    file = project(tmp_path, "odd")
    neovim = Neovim(tmp_path, store)
    async with neovims(neovim):
        one, two = await neovim.open(), await neovim.open()
        await neovim.answer(one, "once")
        assert await neovim.say(one) == {"odd__echo"}
        assert neovim.state() == "ready"
        await neovim.host.carry_out(ChangeMcp(chat=two.chat_id, what="ask", file=str(file)))
        assert neovim.state() == "none"
        assert await neovim.say(one) == set()
        await neovim.answer(two, "reject")
        assert neovim.state() == "none"
        assert not one.desk.offers
        assert await neovim.say(one) == await neovim.say(two) == set()
        three = await neovim.open()
        assert not three.desk.offers
        text = "Not used: the MCP servers of .mcp.json (odd). It is asked again when the file changes."
        assert neovim.told.count(text) == 2  # where it was asked


async def test_no_in_another_neovim_ends_servers_here(tmp_path: Path, store: Store) -> None:
    project(tmp_path, "odd")
    here, there = Neovim(tmp_path, store), Neovim(tmp_path, store, "b")
    async with neovims(here, there):
        mine, too, other = await here.open(), await here.open(), await there.open()
        await here.answer(mine, "once")
        assert await here.say(mine) == {"odd__echo"}
        await there.answer(other, "reject")
        assert await here.say(mine) == set()
        assert here.state() == "none"
        sentence = "MCP servers of .mcp.json that are not used any more: odd (you said no)."
        assert here.told.count(sentence) == len({mine, too})


async def test_always_in_another_neovim_answers_the_question_here(tmp_path: Path, store: Store) -> None:
    project(tmp_path, "odd")
    here, there = Neovim(tmp_path, store), Neovim(tmp_path, store, "b")
    async with neovims(here, there):
        mine, other = await here.open(), await there.open()
        await there.answer(other, "always")
        assert await here.say(mine) == {"odd__echo"}
        assert not mine.desk.offers


@pytest.mark.parametrize("decision", ["once", "always"])
async def test_a_file_that_changes_is_asked_about_and_its_servers_end(
    tmp_path: Path, store: Store, decision: str
) -> None:
    """What is asked about does not go out meanwhile; in an open chat the next message asks."""
    project(tmp_path, "odd")
    neovim = Neovim(tmp_path, store)
    async with neovims(neovim):
        chat = await neovim.open()
        await neovim.answer(chat, decision)
        assert await neovim.say(chat) == {"odd__echo"}
        project(tmp_path, "odd", "fresh")
        assert await neovim.say(chat) == set()
        (question,) = chat.desk.offers
        assert question.title == "let .mcp.json start 2 MCP servers?"
        await neovim.answer(chat, "once")
        assert await neovim.say(chat) == {"odd__echo", "fresh__echo"}
        (tmp_path / ".mcp.json").unlink()
        assert await neovim.say(chat) == set()
        assert not chat.desk.offers


async def test_a_question_about_what_a_file_said_before_is_replaced(tmp_path: Path, store: Store) -> None:
    project(tmp_path, "odd")
    neovim = Neovim(tmp_path, store)
    async with neovims(neovim):
        chat = await neovim.open()
        project(tmp_path, "fresh")
        await neovim.say(chat)
        (question,) = chat.desk.offers
        assert "fresh" in question.body
        assert "odd" not in question.body.replace(str(HOSTILE), "")


async def test_a_file_that_changes_while_it_is_asked_about_is_asked_about_again(tmp_path: Path, store: Store) -> None:
    """An answer is about what was shown."""
    project(tmp_path, "odd")
    neovim = Neovim(tmp_path, store)
    async with neovims(neovim):
        chat = await neovim.open()
        project(tmp_path, "fresh")
        await neovim.answer(chat, "always")
        assert await neovim.say(chat) == set()
        (question,) = chat.desk.offers
        assert "fresh" in question.body


async def test_closing_the_question_is_no_answer(tmp_path: Path, store: Store) -> None:
    project(tmp_path, "odd")
    neovim = Neovim(tmp_path, store)
    async with neovims(neovim):
        chat = await neovim.open()
        await neovim.answer(chat, "cancel")
        assert len((await neovim.open()).desk.offers) == 1


async def test_a_store_that_fails_keeps_the_answer_until_neovim_ends(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise StoreError("the disk is full")

    project(tmp_path, "odd")
    neovim = Neovim(tmp_path, store)
    async with neovims(neovim):
        chat = await neovim.open()
        with monkeypatch.context() as patch:
            patch.setattr(store, "save_permits", fail)
            await neovim.answer(chat, "reject")
        assert not (await neovim.open()).desk.offers


async def test_the_projects_server_counts_before_claude_desktops_of_the_same_name(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And neither takes the place of the other with each chat that is opened."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(sys, "platform", "linux")
    (tmp_path / "config" / "Claude").mkdir(parents=True)
    ours = project(tmp_path, "odd")
    theirs = tmp_path / "config" / "Claude" / "claude_desktop_config.json"
    theirs.write_text(json.dumps({"mcpServers": {"odd": {"command": "false"}, "more": {"command": "false"}}}))
    neovim = Neovim(tmp_path, store, claude_desktop=True)
    async with neovims(neovim):
        chat = await neovim.open()
        for question in chat.desk.offers:
            await chat.desk.take(Approve(chat=chat.chat_id, call_id=question.call_id, decision="always"))
        assert await neovim.say(chat) == {"odd__echo"}
        odd = neovim.host.servers.named(tmp_path, "odd")
        assert odd.entry.source == str(ours)
        await neovim.open()
        assert neovim.host.servers.named(tmp_path, "odd") is odd
        assert neovim.state("more") == "failed"


async def test_the_page_says_what_was_answered_and_asks_again(tmp_path: Path, store: Store) -> None:
    file = project(tmp_path, "odd")
    neovim = Neovim(tmp_path, store)

    async def answer() -> list[str]:
        found: Any = await neovim.host.carry_out(ShowMcp(chat="a-1", cwd=str(tmp_path)))
        return [row["answer"] for row in found["files"]]

    async with neovims(neovim):
        chat = await neovim.open()
        for decision, shown in (("once", "this time"), ("always", "allowed"), ("reject", "refused")):
            assert await answer() == ["unasked"]
            await neovim.answer(chat, decision)
            assert await answer() == [shown]
            await neovim.host.carry_out(ChangeMcp(chat="a-1", what="ask", file=str(file)))
            assert len(chat.desk.offers) == 1
        with pytest.raises(InputError, match="This folder brings no file of MCP servers"):
            await neovim.host.carry_out(ChangeMcp(chat="a-1", what="ask", file="/etc/passwd"))
        assert not neovim.bench.bugs
        assert len(neovim.bench.of(ApprovalRequested)) == 4
