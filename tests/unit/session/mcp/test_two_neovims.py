"""Random runs of two Neovims in one project: decisions, files that change, servers that die, hang, rename tools.

After each message: a server's tools were offered only if the current file was trusted, individually or with the folder;
every call has one result, and the chat accepts the next message.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codecompanion.errors import InputError
from codecompanion.model.invariants import violations
from codecompanion.session.session import Session
from codecompanion.store.opening import open_memory_store
from codecompanion.wire.requests import Approve
from tests.leftovers import closed_at_end
from tests.mcp.listener import HOSTILE
from tests.unit.session.fakes import calls, says, submit
from tests.unit.session.mcp.test_file_servers import Neovim, neovims

STEPS = 14


class Story:
    """The project, two hosts on one store, and the answers about the file."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.random = root, random.Random(seed)
        self.file = root / ".mcp.json"
        store = closed_at_end(open_memory_store())
        self.neovims = [Neovim(root, store, name) for name in "ab"]
        for neovim in self.neovims:
            neovim.bench.adapter._replies = self.reply  # as it calls what it is offered
        self.version = 0
        self.trusted = {"folder": -1, "files": -1}
        """The version of the file that was trusted, with the folder and individually."""
        self.told: list[str] = []
        self.calls = 0

    def reply(self, request: Any) -> Iterable[Any]:
        """Call a tool of a server once per message, if there is one."""
        names = [spec.name for spec in request.tools if "__" in spec.name and spec.name != "odd__ask"]
        if request.messages[-1].role == "tool" or not names:
            return says("ok")
        self.calls += 1
        return calls((f"c{self.calls}", self.random.choice(names), '{"text": "x"}'))

    def write(self) -> None:
        """Write different content to the file."""
        self.version += 1
        ways = self.random.choice([(), ("rename",), ("garbage",), ("twice",), ("flood",)])
        args = [str(HOSTILE), *ways, f"version-{self.version}"]
        self.file.write_text(json.dumps({"mcpServers": {"odd": {"command": sys.executable, "args": args}}}))

    def is_agreed(self) -> bool:
        """Return whether the current file may be used."""
        return self.file.exists() and self.version in self.trusted.values()

    async def step(self) -> None:
        """Do one thing in one of the Neovims, then send a message there."""
        neovim = self.random.choice(self.neovims)
        chats = list(neovim.chats.values())
        if not chats or (len(chats) < 3 and self.random.random() < 0.25):
            self.told.append(f"{neovim.name} opens")
            chats.append(await neovim.open())
        chat = self.random.choice(chats)
        await self.random.choice([self.decide, self.decide, self.change, self.revoke, self.nothing])(neovim, chat)
        await self.say(neovim, chat)

    async def nothing(self, neovim: Neovim, chat: Session) -> None:
        """Only send the message."""

    async def decide(self, neovim: Neovim, chat: Session) -> None:
        """Trust the folder, or the file, in its current state."""
        what = self.random.choice(["folder", "files"])
        if what == "files" and not self.file.exists():
            return
        self.told.append(f"{neovim.name} trusts {what}")
        await neovim.decide(what=what, path=".mcp.json" if what == "files" else "")
        self.trusted[what] = self.version if self.file.exists() else -1

    async def change(self, neovim: Neovim, chat: Session) -> None:
        """Change or delete the file."""
        if self.random.random() < 0.2:
            self.file.unlink(missing_ok=True)
            self.version += 1
        else:
            self.write()
        self.told.append(f"the file changes: {self.file.exists()}")

    async def revoke(self, neovim: Neovim, chat: Session) -> None:
        """Revoke the decision on the page."""
        if max(self.trusted.values()) >= 0:
            self.told.append(f"{neovim.name} revokes")
            with contextlib.suppress(InputError):  # the folder was trusted before it had the file
                await neovim.decide(what="revoke")
            self.trusted = {"folder": -1, "files": -1}

    async def say(self, neovim: Neovim, chat: Session) -> None:
        """Send a message, allow its calls, stop a hanging one; check the tools that were sent."""
        bench, number = neovim.bench, len(chat.log.view.messages) + 1
        first = len(bench.adapter.requests)
        chat.submit(msgspec.structs.replace(submit("go", number), chat=chat.chat_id))
        while not bench.is_idle(chat):
            await bench.until(lambda: bench.is_idle(chat) or bool(chat.desk.questions) or self._hangs(chat))
            for question in chat.desk.questions:
                chat.desk.answer(Approve(chat=chat.chat_id, call_id=question.call_id, decision="once"))
                await bench.until(lambda call=question.call_id: call not in chat.desk._open)  # type: ignore[misc]
            if self._hangs(chat):
                chat.cancel()
                await bench.idle(chat)
        offered = [spec.name for spec in bench.adapter.requests[first].tools if "__" in spec.name]
        self.told.append(f"{neovim.name} sends {len(offered)} tools")
        assert not offered or self.is_agreed(), self.told
        assert violations(chat.log.view.messages) == [], self.told
        called = [call.id for message in chat.log.view.messages for call in message.tool_calls]
        results = [message.tool_call_id for message in chat.log.view.messages if message.role == "tool"]
        assert sorted(called) == sorted(results), self.told
        assert not bench.bugs, self.told

    def _hangs(self, chat: Session) -> bool:
        """Return whether a call of the tool that never answers is running."""
        pending = [call for message in chat.log.view.messages for call in message.tool_calls]
        answered = {message.tool_call_id for message in chat.log.view.messages if message.role == "tool"}
        return any(call.name == "odd__wait" and call.id not in answered for call in pending) and not chat.desk.questions


@pytest.mark.slow("random histories of two editors")
@pytest.mark.parametrize("seed", range(4))
async def test_only_approved_tools_are_offered_in_any_sequence(tmp_path: Path, seed: int) -> None:
    story = Story(tmp_path, seed)
    story.write()
    async with neovims(*story.neovims):
        for _ in range(STEPS):
            await story.step()
