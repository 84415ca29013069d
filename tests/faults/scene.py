"""One row of the table played through one wire format: a real chat, adapter, store and server, then the four checks.

The user sends four messages. The fault occurs with the second one (or lasts from the first on), ends before the third,
and the host is restarted before the fourth. A row has these further fields:

From the first message on: `usage` (reported instead of the server's figures), `window` (configured, 0 = nowhere),
`server_window` (the server's limit, 0 = none), `compact_at` (the token count for compaction), `policy`, `offers_tools`,
`past_words` (the first reply has three times as many). With the second message: `text` (its content), `disk` (the fault
of the store, see `disks.py`), `summary` (the summariser's answer), `quiet_s` (the endpoint counts as gone after this
many seconds of silence), `away` (the server is not running), `hasty` (the third message is sent while the reply
arrives, is returned, and is sent again). `clock_jumps_s`: the jumps of the wall clock before the second and the third
message and before the restart.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.adapters.base import Adapter
from codecompanion.engine.mcp import McpHost
from codecompanion.errors import StoreError
from codecompanion.model.history import MessageAdded
from codecompanion.model.invariants import violations
from codecompanion.model.messages import Message, is_typed_by_user
from codecompanion.session.session import Session
from codecompanion.session.state import State
from codecompanion.settings import load
from codecompanion.store.opening import open_store
from codecompanion.store.store import Store
from codecompanion.tools.builtin import BUILTIN_TOOLS
from codecompanion.tools.tool_provider import GivenTools
from codecompanion.tools.toolbox import Toolbox
from codecompanion.wire.events import (
    CompactionFailed,
    MessageSent,
    Notice,
    RequestFailed,
    SubmitFailed,
    Text,
    TurnFinished,
)
from tests.faults.disks import DISKS
from tests.faults.faults import Answers, Row, Says
from tests.faults.own_tools import BreakingSource, OwnFaults
from tests.faults.raising_tool import RAISING_TOOL
from tests.faults.wires import Wire, adapter_settings, make_adapter
from tests.patience import PATIENCE_S
from tests.providers.loopback.server import LoopbackServer
from tests.summaries import nine_sections
from tests.unit.session.fakes import Bench, submit
from tests.unit.session.mcp_bench import server as hostile_server

COLUMNS = 80
GENERATING = ("/chat/completions", "/responses", "/messages")
"""The paths of requests for a reply; other requests only count tokens."""
FIRST, SECOND, THIRD, FOURTH = (f"Message {word}: what comes next?" for word in ("one", "two", "three", "four"))
SUMMARY = nine_sections("The user asks what comes next, in message one and message two, and gets an answer each time.")


class Host(Bench):
    """A host with a store on disk, whose wall clock the test sets; `reports`: the store's messages."""

    reports: list[str]

    def __init__(self, root: Path, adapter: Adapter, settings: Any, row: Row, store: Store, now: list[float]) -> None:
        tools = {} if row.offers_tools else {"enabled": False}
        own: dict[str, Any] = {"policy": row.policy}
        if row.compact_at:
            own["context_management"] = {"compaction": {"trigger": row.compact_at}}
        super().__init__(root, adapter, store=store, settings=own, tools=tools, checks_usage=True)  # type: ignore[arg-type]
        self.services.adapters.add(adapter, settings)
        self.services.clock = lambda: now[0]
        self.services.lookup = lambda name, model: None
        self.services.tools = Toolbox(
            [GivenTools("built in", (*BUILTIN_TOOLS, RAISING_TOOL)), OwnFaults(), BreakingSource()],
            self.services.settings.tools.entries,
        )
        self.chats: dict[str, Session] = {}
        self.servers: McpHost | None = None
        if row.server is not None:
            odd = hostile_server(*row.server, require_approval_before=False, timeout_s=row.server_limit_s)
            given = load({"mcp": {"servers": {"odd": odd}, "wait_s": PATIENCE_S}}).mcp
            self.services.settings = msgspec.structs.replace(self.services.settings, mcp=given)
            self.servers = McpHost(self.services, self.chats)

    async def end_servers(self) -> None:
        """Stop everything that was started."""
        if self.servers is not None:
            await self.servers.aclose()


class Scene:
    """A row being played."""

    def __init__(self, row: Row, wire: Wire, root: Path) -> None:
        self.row, self.wire, self.root = row, wire, root
        self.second = row.text or SECOND
        self.now = [1_800_000_000.0]
        self.waiting = list(row.answers)
        self.summaries = list(row.summary)
        self.sent: list[str] = []
        self.returned: list[str] = []
        self.bodies: list[Mapping[str, Any]] = []
        self._adapters: list[Adapter] = []
        self._stores: list[Store] = []
        self._hosts: list[Host] = []
        self._numbers = 0
        self._damaged: Any = None

    async def play(self) -> None:
        """Play the row, and make the four checks."""
        (self.root / "work").mkdir()
        (self.root / "work" / "binary.txt").write_bytes(bytes(range(256)) * 9)
        (self.root / "work" / "big.txt").write_text("a line of a long file, with some words in it\n" * 6_000)
        async with self.wire.serve(self.reply, self.row.server_window) as server:
            try:
                await self._play(server)
            finally:
                for host in self._hosts:
                    await host.end_servers()
                for adapter in self._adapters:
                    await adapter.aclose()
                for store in self._stores:
                    store.close()

    async def _play(self, server: LoopbackServer) -> None:
        row = self.row
        host = self._open_host(server)
        host.chats["chat-1"] = session = await host.open()
        await self._ask(host, session, FIRST)
        self._jump(0)
        port = server.port
        if row.away:
            await server.close()
        self._spoil(host, server)
        await self._ask(host, session, self.second, then=THIRD if row.hasty else "")
        self._mend(host, server)
        if row.away:
            await server.start(port)
        self._jump(1)
        await self._ask(host, session, THIRD)
        self._check_answered(session, THIRD)
        self._check_told(self._listen(host))
        shown = _shown(host)
        await session.close()
        host.store.close()
        self._jump(2)
        again = self._open_host(server)
        resumed = await again.resume()
        assert resumed is not None
        again.chats["chat-1"] = resumed
        await self._ask(again, resumed, FOURTH)
        self._check_answered(resumed, FOURTH)
        self._check_nothing_lost(_messages(again.store), shown)
        self._check_told(self._listen(again), again=True)
        await resumed.close()
        again.store.close()
        self._check_arrived(server)
        assert host.bugs == again.bugs == [], (host.bugs, again.bugs)
        if not row.server_window:
            assert self.wire.refusals(server) == []

    # ---- the story

    def reply(self, body: Mapping[str, Any]) -> Answers:
        """Return the server's answer to a request."""
        self.bodies.append(body)
        newest, lies = self.wire.newest_text(body), (self.row.usage or {}).get(self.wire.name)
        if newest == "":
            return self.waiting.pop(0) if self.waiting and self.row.kind != "tool" else Says("Done.", usage=lies)
        if newest == self.second and self.waiting:
            return self.waiting.pop(0)
        if newest in (FIRST, self.second, THIRD, FOURTH):
            more = " and so on" * self.row.past_words if newest == FIRST else ""
            return Says(f"You said: {newest[:40]}{more}", usage=lies)
        if newest.startswith(("Go on", "Continue")):
            return Says("The rest.", usage=lies)
        if not self.summaries:
            return Says(SUMMARY)
        return self.summaries.pop(0) if len(self.summaries) > 1 else self.summaries[0]

    def _open_host(self, server: LoopbackServer) -> Host:
        limits = {"context_window": self.row.window, "idle_timeout_s": 0.0}
        settings = adapter_settings(self.wire, server.url, **limits)
        reports: list[str] = []
        store = open_store(self.root / "data", lambda: self.now[0], lambda problem: reports.append(_as_told(problem)))
        self._stores.append(store)
        adapter = make_adapter(self.wire, settings, server, self.root / "login")
        self._adapters.append(adapter)
        host = Host(self.root / "work", adapter, settings, self.row, store, self.now)
        host.reports = reports
        self._hosts.append(host)
        return host

    async def _ask(self, host: Host, session: Session, text: str, *, then: str = "") -> None:
        """Send a message, and another one (`then`) as soon as the reply has begun; wait until both are done."""
        self._numbers += 1
        shown = len(host.of(Text))
        session.submit(submit(text, self._numbers))
        if then:
            await host.until(lambda: len(host.of(Text)) > shown)
            session.submit(submit(then, 99))
        await host.until(lambda: session.state is State.IDLE and session.task is None)

    def _jump(self, number: int) -> None:
        self.now[0] += self.row.clock_jumps_s[number]

    def _spoil(self, host: Host, server: LoopbackServer) -> None:
        if self.row.quiet_s:
            adapter: Any = self._adapters[-1]
            adapter._connection.settings = adapter_settings(self.wire, server.url, idle_timeout_s=self.row.quiet_s)
        if self.row.disk:
            self._damaged = DISKS[self.row.disk]
            if self._damaged.in_reply:
                original = server.answer

                def answer(request: Any) -> Any:
                    server.answer = original  # type: ignore[method-assign]
                    self._damaged.damage(host.store)
                    return original(request)

                server.answer = answer  # type: ignore[method-assign]
            else:
                self._damaged.damage(host.store)

    def _mend(self, host: Host, server: LoopbackServer) -> None:
        if self._damaged is not None:
            self._damaged.mend(host.store)
        if self.row.quiet_s:
            mended: Any = self._adapters[-1]
            mended._connection.settings = adapter_settings(self.wire, server.url, context_window=self.row.window)
        self.waiting.clear()
        self.summaries.clear()

    # ---- the four questions

    def _check_answered(self, session: Session, text: str) -> None:
        """Assert that the chat is usable: this message has its answer, and a provider accepts the history."""
        view = session.log.view.messages
        asked = max(k for k, message in enumerate(view) if message.text == text)
        assert [(m.role, m.cut) for m in view[asked + 1 :]] == [("assistant", False)], view[asked:]
        assert violations(view) == []

    def _check_nothing_lost(self, stored: list[Message], shown: str) -> None:
        """Assert that typed text is stored once or back in the input, and displayed parts of replies are stored."""
        row = self.row
        typed = [message.text for message in stored if is_typed_by_user(message)]
        expected = [FIRST, *([] if row.returned else [self.second]), THIRD, FOURTH]
        assert typed == expected
        said = "".join(message.text for message in stored if message.role == "assistant" and not message.tag)
        assert said.startswith(shown), (said[-200:], shown[-200:])
        assert sum(message.cut for message in stored) == row.kept
        if not row.returned:
            second, third = (next(k for k, m in enumerate(stored) if m.text == text) for text in (self.second, THIRD))
            replies = [m for m in stored[second:third] if m.role == "assistant" and not m.tool_calls and not m.cut]
            assert bool(replies) == row.answered, stored[second:third]

    def _listen(self, host: Host) -> list[str]:
        """Return the host's messages to the user, without repetitions."""
        self.sent += [event.text for event in host.of(MessageSent)]
        self.returned += [event.text for event in host.of(SubmitFailed)]
        told, host.reports = [*host.reports], []
        for event in host.events:
            match event:
                case Notice(text=text) | RequestFailed(error=text) | SubmitFailed(error=text):
                    told.append(text)
                case TurnFinished(error=text) | CompactionFailed(reason=text):
                    told.append(text)
                case _:
                    continue
        return [text for text, _ in groupby(text for text in told if text)]

    def _check_told(self, told: list[str], *, again: bool = False) -> None:
        """Assert that the user saw one message, important half first, or none, and at most one more after a restart."""
        wanted = 1 if self.row.says else 0
        # A server that ends may run again before the next request: then there is nothing to say.
        assert len(told) == wanted or (not told and (again or self.row.may_be_over)), told
        for text in told:
            assert "\n" not in text
            assert self.row.says in text[:COLUMNS], text

    def _check_arrived(self, server: LoopbackServer) -> None:
        """Assert that each message reached the server as new as often as the row says, and never twice in a request."""
        row, wire = self.row, self.wire
        assert self.returned == [self.second] * row.returned + [THIRD] * row.hasty
        assert self.sent == [FIRST, *([] if row.returned else [self.second]), THIRD, FOURTH]
        wanted = {FIRST: 1, self.second: 0 if row.returned else row.arrives, THIRD: 1, FOURTH: 1}
        asked = [request for request in server.requests if request.path.endswith(GENERATING)]
        newest = [wire.newest_text(request.json) for request in asked]
        assert {text: newest.count(text) for text in wanted} == wanted
        for body in self.bodies:
            texts = wire.user_texts(body)
            assert all(texts.count(text) <= 1 for text in wanted), texts


def _as_told(problem: StoreError) -> str:
    """Return the store's messages as the engine reports them."""
    return str(problem)[:1].upper() + str(problem)[1:]


def _shown(host: Host) -> str:
    """Return the text of all replies as it was shown."""
    return "".join(event.text for event in host.of(Text))


def _messages(store: Store) -> list[Message]:
    return [e.payload.message for e in store.load_events("chat-1") if isinstance(e.payload, MessageAdded)]
