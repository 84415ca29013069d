"""An MCP server that sends a hostile text wherever it can: names, descriptions, schemas, results, logs, questions.

As in `test_hostile_texts.py`, the same chat with a harmless text is the reference: nothing else may happen.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codecompanion.engine.chats import carry_out
from codecompanion.engine.mcp import McpHost
from codecompanion.session.session import Session
from codecompanion.wire.events import ApprovalRequested
from codecompanion.wire.requests import Approve, EditorItem, ListTools, ReadMcp
from tests.faults.hostile_texts import HARMLESS, OUTSIDE, SAYS, TEXTS
from tests.faults.test_hostile_texts import SECRET, WORDS, _kind, is_fenced
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, submit
from tests.unit.session.mcp_bench import server, with_servers

CALLS = calls(("c1", "odd__echo", "{}")), calls(("c2", "odd__ask", "{}"))
REFUSES = (Approve(call_id="c1", decision="once"), Approve(call_id="c2", decision="once"))


class Story:
    """A chat with the server: a call, a question from it, a mentioned resource, a prompt and the server's page."""

    def __init__(self, root: Path, text: str) -> None:
        self.root, self.text = root / "work", text
        self.root.mkdir(parents=True)
        (self.root / OUTSIDE).write_text(SECRET)
        (self.root / "text").write_bytes(text.encode())
        self.adapter = ScriptedAdapter("s", [*CALLS, SAYS, SAYS, SAYS])
        self.kept: list[str] = []

    @asynccontextmanager
    async def _chat(self) -> AsyncIterator[tuple[Bench, Session, McpHost]]:
        servers = {"odd": server("text", env={"TEXT": str(self.root / "text")})}
        async with with_servers(self.root, self.adapter, servers) as parts:
            yield parts

    async def play(self, monkeypatch: pytest.MonkeyPatch) -> Story:
        async with self._chat() as (bench, session, host):
            monkeypatch.setattr(bench.store, "save_grants", lambda *given: self.kept.append("grants"))
            monkeypatch.setattr(bench.services.trust, "_change", lambda *given: self.kept.append("trust"))
            session.submit(submit("what is this?"))
            await self._approve(bench, session, 1)
            await self._approve(bench, session, 2)
            await bench.until(lambda: len(bench.of(ApprovalRequested)) == 3)
            self.asked = bench.of(ApprovalRequested)
            session.desk.answer(Approve(call_id=self.asked[2].call_id, decision="reject"))
            await bench.idle(session)
            item = EditorItem("#{it}", "mcp", "odd:note://x", comes="by_host")
            session.submit(msgspec.structs.replace(submit("what is #{it}?", 2), items=(item,)))
            await bench.idle(session)
            self.prompt = await host.carry_out(ReadMcp(chat=session.chat_id, server="odd", prompt="plain"))
            (self.page,) = host.servers.status(self.root)
            self.list: Any = await carry_out(bench.services, session, ListTools(chat=session.chat_id))
            self.messages = session.log.view.messages
            self.grants = session.desk.approvals.grants()
            self.logged = [_kind(event.payload) for event in bench.store.load_events("chat-1")]
            kinds = [type(event).__name__ for event in bench.events]
            self.told = [kind for kind, before in zip(kinds, ["", *kinds], strict=False) if kind != before]
            self.bugs = bench.bugs
        return self

    async def _approve(self, bench: Bench, session: Session, number: int) -> None:
        await bench.until(lambda: len(bench.of(ApprovalRequested)) == number)
        session.desk.answer(REFUSES[number - 1])

    @property
    def offered(self) -> list[tuple[int, str, str]]:
        """Return for each request the number of offered tools, the model and the system prompt."""
        heads = ("".join(m.text for m in one.messages[:1] if m.role == "system") for one in self.adapter.requests)
        return [(len(one.tools), one.model, head) for one, head in zip(self.adapter.requests, heads, strict=True)]


def calm(names: list[str]) -> list[str]:
    """Remove events whose number depends on when log and progress lines arrive."""
    return [name for name in names if name not in ("State", "McpChanged", "ContextItems")]


async def test_text_from_a_server_is_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each text in the table is sent from every place where a server can send text."""
    plain = await Story(tmp_path / "harmless", HARMLESS).play(monkeypatch)
    assert plain.asked[2].kind == "elicitation"
    for number, (name, text) in enumerate(TEXTS.items()):
        played = await Story(tmp_path / str(number), text).play(monkeypatch)
        assert played.bugs == [], name
        assert played.logged == plain.logged, name
        assert calm(played.told) == calm(plain.told), name
        assert played.offered == plain.offered, name
        assert played.kept == plain.kept == [], name
        assert list(played.grants) == [], name
        assert not list(tmp_path.rglob("ran")), name
        assert not any(SECRET in message.text for one in played.adapter.requests for message in one.messages), name
        _is_bounded(played, name)
        words = WORDS.findall(text)
        holders = [one for one in played.adapter.requests[-1].messages if all(word in one.text for word in words)]
        assert {one.role for one in holders} == {"tool", "user"}, name
        for message in holders:
            assert message.role == "tool" or (message.tag and is_fenced(message.text, text)), f"{name}: {message.text}"


def _is_bounded(played: Story, name: str) -> None:
    """Assert that no raw name is passed on, and that every question names its source."""
    offered = [spec for spec in played.adapter.requests[-1].tools if spec.name.startswith("odd")]
    assert len(offered) == 3, name
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", spec.name) for spec in offered), name
    assert json.dumps([spec.parameters for spec in offered]), name
    assert [asked.title for asked in played.asked[:2]] == [f"{one} of the MCP server odd" for one in ("echo", "ask")]
    assert (played.asked[2].title, played.asked[2].name) == ("asks you to enter values", "odd"), name
    form = json.loads(played.asked[2].form)
    assert all("\n" not in field["label"] and len(field["label"]) <= 60 for field in form), name
    assert all("\n" not in line for line in played.page["log"]), name
    assert {group["name"] for group in played.list["groups"]} >= {"mcp:odd", "mcp"}, name
    assert all("\n" not in row["description"] for row in played.list["tools"]), name
