"""Infrastructure for playing scenes: Neovim reads a configuration, used by a host in this process or a chat buffer."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec

from chat_driver import INIT as FAKE_HOST_INIT
from chat_driver import ChatDriver
from harness import NO_PROVIDER, Nvim, lua_string
from tests.leftovers import kept_for_the_run
from tests.providers.chat.thread import ChatServerThread
from tests.providers.completion.server import FillServer
from tests.providers.embeddings.server import EmbeddingServerThread
from tests.providers.loopback.thread import LoopbackThread

_GIVEN = Path(__file__).with_name("given.lua")
_LOAD = f"_G.options_test = dofile({lua_string(str(_GIVEN))})\n"


class Given(NamedTuple):
    """A configuration: a Lua table as text, and the option (`path`; "" for none) that has a different value in it."""

    base: str = "{}"
    path: str = ""
    value: str = ""


class WrongOption(AssertionError):
    """Raised when the configuration check refuses the value of a row."""


class Desk:
    """One Neovim that reads configurations, one with chat buffers, and one provider, each started on first use."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @cached_property
    def provider(self) -> Any:
        """Return the loopback Chat Completions server; a scene sets its script and clears its requests."""
        with kept_for_the_run():
            return self._stack.enter_context(ChatServerThread(check=False, key=""))

    @cached_property
    def filler(self) -> Any:
        """Return the loopback server for code completion."""
        with kept_for_the_run():
            return self._stack.enter_context(LoopbackThread(FillServer))

    @cached_property
    def embedder(self) -> Any:
        """Return the loopback embedding server."""
        with kept_for_the_run():
            return self._stack.enter_context(EmbeddingServerThread("vllm"))

    @cached_property
    def reader(self) -> Nvim:
        """Return the Neovim that turns configurations into `hello` requests."""
        return self._nvim("reader", NO_PROVIDER)

    @cached_property
    def chats(self) -> ChatDriver:
        """Return the driver for chat buffers, whose host is fake."""
        chat = ChatDriver(self._nvim("chats", FAKE_HOST_INIT))
        chat.open()  # the first one loads modules and grammars, which takes until after its first drawing
        chat.reply("Hello `there`.\n")
        chat.nvim.command("silent! only | enew | silent! %bwipeout!")
        return chat

    @cached_property
    def ghosts(self) -> Nvim:
        """Return the Neovim with completion at the cursor, whose host is fake."""
        return self._nvim("ghosts", FAKE_HOST_INIT)

    def setup(self, nvim: Nvim, given: Given) -> None:
        """Pass the configuration to a Neovim.

        Raises:
            WrongOption: the value is not legal.
        """
        problems = nvim.lua("return _G.options_test.setup(...)", *given)
        if problems:
            raise WrongOption(f"{given}: {problems}")

    def greeting(self, given: Given) -> dict[str, Any]:
        """Return the `hello` request that the editor sends with this configuration."""
        self.setup(self.reader, given)
        found: dict[str, Any] = msgspec.json.decode(self.reader.lua("return _G.options_test.greeting()"))
        return found

    def folder(self, name: str) -> Path:
        """Return an empty folder at a path that is the same in every run of a scene."""
        path, used = self.root / "scenes" / name, self.root / "used"
        used.mkdir(exist_ok=True)
        if path.exists():
            path.rename(used / f"{len(list(used.iterdir()))}")  # a host that has just ended may still write there
        path.mkdir(parents=True)
        return path

    def _nvim(self, name: str, init: str) -> Nvim:
        root = self.root / name
        root.mkdir()
        with kept_for_the_run():
            return self._stack.enter_context(Nvim(root, init=init + _LOAD, size=(120, 40)))
