"""One editor, one host, one provider: a story is played through the same interface as a real chat.

The editor's side sends requests as JSON by their verbs and records every event; the host is `engine.runtime.Runtime` on
a real store in a folder; the provider is a loopback server. No other part of the plugin is imported, because it may
move.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import shutil
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.engine.runtime import Runtime
from codecompanion.errors import CodeCompanionError
from codecompanion.wire import requests
from codecompanion.wire.events import Event
from tests.patience import PATIENCE_S
from tests.providers.anthropic.models import ModelSpec
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.chat.answers import reply
from tests.providers.chat.server import ChatServer
from tests.providers.loopback.server import LoopbackServer
from tests.providers.responses.rules import Rules
from tests.providers.responses.server import ResponsesServer

CHAT = "chat-1"
MODEL = "test-model"


@dataclass(frozen=True)
class Setting:
    """The user's configuration for the chat of a story.

    `tools`: the enabled built-in tools; None = all. `chat`, `more`: further settings, for the chat section and for
    others. `whole_tools`: the record shows the schemas of the tools, otherwise only their names.
    """

    wire: str = "openai"
    window: int = 20_000
    policy: str = "codecompanion"
    tools: tuple[str, ...] | None = ("read_file",)
    yolo: bool = False
    chat: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    whole_tools: bool = False


LASTING: tuple[str, ...] = (
    *("_guarded", "_ask", "_run_one", "_serve", "_played", "_run_coro", "_read_messages", "_write_messages"),
    *(
        "_read_stderr",
        "_keep",
        "Event.wait",
        "StreamReader.read",
        "_answer_when_quiet",
        "Queue.get",
        "_import_chat_modules",
    ),
)
"""Name endings of the host's coroutines that keep running while the story waits for an answer: the turn and its
requests, servers and connections, and the import of modules after a second without a request. All others must end
before the story continues, or their place in the record would be random.
"""
QUIET_LIMIT_S = 20.0


async def _quiet() -> None:
    """Wait until the host is only waiting for the editor or the provider."""
    own = asyncio.current_task()

    def busy() -> list[str]:
        names = [task.get_coro().__qualname__ for task in asyncio.all_tasks() if task is not own]  # type: ignore[union-attr]
        return [name for name in names if not name.endswith(LASTING)]

    try:
        async with asyncio.timeout(QUIET_LIMIT_S):
            while busy():  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.001)
    except TimeoutError:
        raise AssertionError(
            f"these coroutines of the host do not end: {busy()}; if they last, name them in LASTING"
        ) from None


BUILT_IN = (
    "read_file",
    "file_search",
    "grep_search",
    "code_search",
    "get_diagnostics",
    "insert_edit",
    "create_file",
    "delete_file",
    "run_command",
    "memory",
    "recall",
)


class Desk:
    """Plays the steps of a story; `happened` lists the steps and their results in order."""

    def __init__(self, root: Path, server: Any, setting: Setting) -> None:
        self.root, self.server, self.setting = root, server, setting
        self.data = root / "data"
        self.work = root / "work"
        self.work.mkdir(parents=True)
        self.happened: list[dict[str, Any]] = []
        self.open_files: dict[str, dict[str, Any]] = {}
        self.own_tools: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
        self._changed = asyncio.Event()
        self._seen = 0
        self._submits = 0
        self._answering: set[asyncio.Task[None]] = set()
        self.runtime = Runtime(self._take)
        self._neovims = {"first": self.runtime}
        self._answer_quietly()
        self._deaf = self._closed = False

    # ---- the files and the provider

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def read(self, name: str) -> None:
        """Record the current content of a file in the project."""
        path = self.work / name
        self.happened.append({"file": name, "text": path.read_text(encoding="utf-8") if path.exists() else None})

    def open_in_editor(self, name: str, text: str, *, modified: bool = False) -> None:
        """Act as if the file were open in a buffer with this text."""
        path = str(self.work / name)
        number = len(self.open_files) + 1
        self.open_files[path] = {"path": path, "buffer": number, "tick": 1, "modified": modified, "text": text}

    def model(self, *answers: Any) -> None:
        """Add answers for the provider."""
        self.server.script.extend(answers)

    def model_by(self, answer: Callable[[dict[str, Any]], Any]) -> None:
        """Let the provider answer by request content once its script is used up; `answer` receives the body."""
        self.server._default = lambda request: answer(request.json)

    def _answer_quietly(self) -> None:
        """Delay the provider's answers until the host does nothing but wait for them."""
        answer = self.server.answer

        def answered(request: Any) -> Any:
            gate = asyncio.Event()

            async def _answer_when_quiet() -> None:
                try:
                    await _quiet()
                except AssertionError as error:
                    self.happened.append({"bug": str(error)})
                finally:
                    gate.set()

            task = asyncio.get_running_loop().create_task(_answer_when_quiet())
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
            given = answer(request)
            return given if request.method != "POST" else replace(given, parts=(gate, *given.parts))

        self.server.answer = answered

    # ---- the editor

    def snapshot(self) -> dict[str, Any]:
        """Return the facts about the editor that the host may know."""
        return {"cwd": str(self.work)}

    async def send(self, verb: str, **fields: Any) -> Any:
        """Send a request and return its result; a refusal is recorded as the editor would show it."""
        await _quiet()
        self._seen = len(self.happened)
        self.happened.append({"send": verb, **{name: value for name, value in fields.items() if name != "snapshot"}})
        try:
            result = await self.runtime.handle(requests.decode(verb, json.dumps(fields)))
        except CodeCompanionError as error:
            self.happened.append({"refused": verb, "error": str(error)})
            return None
        if result is not None:
            self.happened.append({"result": verb, "of": msgspec.to_builtins(result)})
        return result

    async def chat(self, verb: str, **fields: Any) -> Any:
        """Send a request about the chat."""
        return await self.send(verb, chat=CHAT, **fields)

    async def submit(self, text: str, **fields: Any) -> None:
        """Send a message and do not wait for the reply."""
        self._submits += 1
        await self.chat("submit", submit_id=self._submits, text=text, snapshot=self.snapshot(), **fields)

    async def say(self, text: str, **fields: Any) -> None:
        """Send a message and wait for the end of its turn."""
        await self.submit(text, **fields)
        await self.until("turn_finished")

    async def until(self, kind: str, **wanted: Any) -> dict[str, Any]:
        """Wait for the next event of this kind with these values after the last request or wait."""

        def position() -> int | None:
            for at in range(self._seen, len(self.happened)):
                event = self.happened[at]
                if event.get("type") == kind and all(event.get(key) == value for key, value in wanted.items()):
                    return at
            return None

        try:
            async with asyncio.timeout(PATIENCE_S):
                while (at := position()) is None:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            told = "\n".join(json.dumps(one, default=str)[:300] for one in self.happened[-12:])
            raise AssertionError(f"there was never a {kind} {wanted or ''}; the last events:\n{told}") from None
        self._seen = at + 1
        if kind == "turn_finished":
            await self._idle()
        return self.happened[at]

    async def _idle(self) -> None:
        """Wait until the chat accepts requests again, which is slightly after the last event of a turn."""
        async with asyncio.timeout(PATIENCE_S):
            while any(session.task is not None for session in self.runtime._chats.values()):  # noqa: ASYNC110
                await asyncio.sleep(0)

    async def until_asked(self, requests: int) -> None:
        """Wait until the provider has received this number of requests."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.bodies()) < requests:  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    async def until_file(self, name: str) -> None:
        """Wait until there is a file of this name in the project."""
        async with asyncio.timeout(PATIENCE_S):
            while not (self.work / name).exists():  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    async def approve(self, decision: str, **fields: Any) -> dict[str, Any]:
        """Wait for a tool's approval request, and answer it."""
        asked = await self.until("approval_requested")
        await self.chat("approve", call_id=asked["call_id"], decision=decision, **fields)
        return asked

    # ---- the host

    async def greet(self) -> None:
        """Greet the host with the settings of the story."""
        setting = self.setting
        tools: dict[str, Any] = {"yolo": setting.yolo}
        if setting.tools is not None:
            tools["entries"] = {name: {"enabled": name in setting.tools} for name in BUILT_IN}
        more = {section: dict(values) for section, values in setting.more.items()}
        tools |= more.pop("tools", {})
        mine = {"kind": setting.wire, "base_url": self.server.url, "model": MODEL, "key": "GOLDEN_KEY"}
        mine["context_window"] = setting.window
        if setting.wire == "anthropic":
            mine["max_output_tokens"] = 4_096  # otherwise it is what a list of models says, if that comes in time
        self.adapter = "mine" if setting.wire == "openai_compatible" else setting.wire
        settings = {
            "chat": {"adapter": self.adapter, "policy": setting.policy, "tell_environment": False, **setting.chat},
            "adapters": {self.adapter: mine},
            "tools": tools,
            "rules": {"enabled": False},
            "sandbox": {"mode": "off"},
            "context": {"enabled": False},
            **more,
        }
        hello = {
            "settings": settings,
            "data_dir": str(self.data),
            "cache_dir": str(self.root / "cache"),
            "log_path": str(self.root / "log"),
            "nvim": "0.11.0",
            "shell": "/bin/sh",
            "language": "English",
            "environment": {"GOLDEN_KEY": "sk-test"},
        }
        mistakes = await self.runtime.handle(requests.decode("hello", json.dumps(hello)))
        if mistakes:
            self.happened.append({"mistakes": mistakes})

    async def open(self, **fields: Any) -> None:
        """Open the chat of the story."""
        await self.chat("open_chat", snapshot=self.snapshot(), **fields)

    async def go_to_neovim(self, name: str, **changed: Any) -> None:
        """Switch to another Neovim with its own host on the same data; the previous one stays as it is.

        `changed`: the settings that differ.
        """
        await _quiet()
        self.setting = replace(self.setting, **changed)
        self.happened.append({"neovim": name})
        self._seen = len(self.happened)
        if name in self._neovims:
            self.runtime = self._neovims[name]
            return
        self.runtime = self._neovims[name] = Runtime(self._take)
        await self.greet()

    async def kill(self) -> None:
        """Kill the host during a request, and continue with another one."""
        async with asyncio.timeout(PATIENCE_S):
            while self.log()[CHAT][-1]["type"] != "request_sent":  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        left = self.root / "left"
        left.mkdir()
        for path in sorted(self.data.rglob("*")):
            target = left / path.relative_to(self.data)
            if path.is_dir():
                target.mkdir(exist_ok=True)
            elif path.name != "sessions.db" and not path.name.startswith("sessions.db-"):
                shutil.copy2(path, target)
        database, copied = self.data / "sessions.db", left / "sessions.db"
        with (
            contextlib.closing(sqlite3.connect(database)) as source,
            contextlib.closing(sqlite3.connect(copied)) as copy,
        ):
            source.backup(copy)
        old, self.runtime = self.runtime, Runtime(self._take)
        self._neovims = {"first": self.runtime}
        self._deaf = True
        await old.aclose()
        self._deaf = False
        self.data = left
        self.happened.append({"host": "killed, another one is started"})
        self._seen = len(self.happened)
        await self.greet()

    def _take(self, event: Event) -> None:
        if self._deaf:
            return
        told = msgspec.to_builtins(event)
        last = self.happened[-1] if self.happened else {}
        if told["type"] in ("text", "reasoning") and last.get("type") == told["type"] and last["chat"] == told["chat"]:
            last["text"] += told["text"]  # as the outbox does; how a reply is cut depends on the network
        else:
            self.happened.append(told)
        if told["type"] == "ask" and told["ask_id"]:
            task = asyncio.get_running_loop().create_task(self._answer(told))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        self._changed.set()

    async def _answer(self, ask: dict[str, Any]) -> None:
        fields = ask["fields"]
        match ask["what"]:
            case "look":
                wanted = fields["paths"]
                files = [file for path, file in self.open_files.items() if wanted is None or path in wanted]
                result: Any = {"files": [file for file in files if wanted is not None or file["modified"]]}
            case "change":
                file = self.open_files[fields["path"]]
                file["text"], file["tick"] = fields["text"], file["tick"] + 1
                if fields["save"]:
                    Path(fields["path"]).write_text(fields["text"], encoding="utf-8")
                result = {"state": "written"}
            case "run_tool":
                result = self.own_tools[fields["name"]](fields["arguments"])
            case _:
                result = {}
        answer = requests.Answer(ask_id=ask["ask_id"], ok=True, result=result)
        await self.runtime.handle(answer)

    async def remove_history(self) -> None:
        """Delete the file of all chats, as another program might."""
        await _quiet()
        for path in self.data.glob("sessions.db*"):
            path.unlink()

    # ---- what is left of it

    async def close(self) -> None:
        """End the host."""
        if not self._closed:
            await _quiet()
            self._closed = self._deaf = True  # its events to a closed editor are dropped
            for runtime in self._neovims.values():
                await runtime.aclose()

    def log(self) -> dict[str, list[Any]]:
        """Return the payloads of every chat's log, in order."""
        chats: dict[str, list[Any]] = {}
        with contextlib.closing(sqlite3.connect(self.data / "sessions.db")) as database:
            for chat, payload in database.execute("SELECT chat_id, payload FROM events ORDER BY id"):
                chats.setdefault(chat, []).append(json.loads(payload))
        return chats

    def bodies(self) -> list[dict[str, Any]]:
        """Return the requests that the provider received, in order."""
        return [
            {"to": f"{one.method} {one.path}", "body": one.json if one.body else None}
            for one in self.server.requests
            if one.method == "POST"  # a list of models is asked for in passing
        ]


def _server(setting: Setting) -> LoopbackServer:
    match setting.wire:
        case "anthropic":
            return AnthropicServer(models=(ModelSpec(MODEL),))
        case "openai_responses":
            return ResponsesServer(rules=Rules(models=(MODEL,)))
        case _:
            return ChatServer(check=False, default=lambda request: reply("There is no answer left in the script."))


def _folder() -> Path:
    """Return a new folder; paths are counted as tokens, so all names have the same length."""
    for _ in range(10_000):
        folder = Path(f"/tmp/golden-{random.SystemRandom().randrange(100, 1_000)}")
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise AssertionError("the folders /tmp/golden-100 … 999 are all there: remove those of runs that were killed")


@contextlib.asynccontextmanager
async def desk_for(setting: Setting) -> AsyncIterator[Desk]:
    """Yield a desk with an open chat."""
    root = _folder()
    try:
        async with _server(setting) as server:
            desk = Desk(root, server, setting)
            try:
                await desk.greet()
                await desk.open()
                yield desk
            finally:
                await desk.close()
    finally:
        shutil.rmtree(root, ignore_errors=True)


Play = Callable[[Desk], Awaitable[None]]


@dataclass(frozen=True)
class Story:
    """A scripted chat: its configuration, and the user's actions."""

    name: str
    about: str
    setting: Setting
    play: Play


STORIES: dict[str, Story] = {}


def story(**setting: Any) -> Callable[[Play], Play]:
    """Register the function as a story under its name, with these settings."""

    def register(play: Play) -> Play:
        name = play.__name__
        assert name not in STORIES, f"there are two stories {name}"
        STORIES[name] = Story(name, (play.__doc__ or "").strip(), Setting(**setting), play)
        return play

    return register
