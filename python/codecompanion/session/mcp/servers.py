"""Manages the MCP servers of this host: configured servers, and those of projects whose server file the user trusts.

No server is started and no part of the SDK is imported until a chat is about to send its first request or the user asks
for it. A request waits a limited time for servers to start; then it is sent without their tools.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import codecompanion
from codecompanion.adapters.keys.known_secrets import looks_like_a_key
from codecompanion.adapters.keys.redact import redact, secrets_in_url
from codecompanion.counting.tokens import MessageCounter
from codecompanion.errors import CodeCompanionError
from codecompanion.mcp.server_spec import ServerSpec
from codecompanion.mcp.server_types import ElicitationRequest, McpError, McpMissing, SamplingReply, SamplingRequest
from codecompanion.session.chat.chat import Chat
from codecompanion.session.mcp.changed_tools import ChangedTools
from codecompanion.session.mcp.server import Server, ServerState
from codecompanion.session.mcp.tool_names import group_name, is_tool_of
from codecompanion.session.mcp_config.server_entries import Entry, configured, spec_of
from codecompanion.session.services import Services
from codecompanion.session.state import State
from codecompanion.tools.commands.command_environment import HiddenVariables, clean_environment
from codecompanion.tools.tool import Tool
from codecompanion.tools.tool_provider import ProvidedGroup
from codecompanion.wire.events import McpChanged, PackagesMissing, Severity
from codecompanion.workspace.secret_text import contains_secret

_OWN_SOURCE = Path(codecompanion.__file__).resolve().parent.parent
MAX_LISTED = 500
"""Maximum number of resources, and of prompts, per server that are sent to the editor for completion."""
SEE = ":CodeCompanion mcp shows more."


def is_installed() -> bool:
    """Return whether the official MCP SDK is installed."""
    return importlib.util.find_spec("mcp") is not None


class _Provider:
    """Provides the tools of one server to the toolbox."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.source = f"MCP server {server.name}"

    def tools(self, root: Path) -> Sequence[Tool]:
        """Return the server's tools, or none if it does not serve chats in `root`."""
        return self._server.joined if self._server.root in (None, root) else ()

    def may_bring(self, name: str, root: Path) -> bool:
        """Return whether a tool of the server may have this name, while its tools are not known yet."""
        server = self._server
        is_known = not server.is_on or server.state is ServerState.READY
        return not is_known and server.root in (None, root) and is_tool_of(server.name, name)

    def group(self, root: Path) -> ProvidedGroup | None:
        """Return the group of all the server's tools, or None if it does not serve chats in `root`."""
        server = self._server
        if server.root not in (None, root):
            return None
        state = "" if server.state is ServerState.READY else server.state.value
        name, what = group_name(server.name), f"the MCP server {server.name}"
        why_not = "" if server.is_on else f"{what} is off; start it with `r` in :CodeCompanion mcp"
        if server.is_on and state and not is_installed():
            why_not = (
                f"{what} needs packages that are not installed (:CodeCompanion install mcp); try again once they are"
            )
        return ProvidedGroup(
            name=name,
            short=name.partition(":")[2],
            brings=partial(is_tool_of, server.name),
            what=what,
            state=f"{state}: {server.problem}" if state and server.problem else state,
            is_listed=server.is_on,
            why_not=why_not,
            lacks="mcp" if server.is_on and why_not else "",
        )


class McpServers:
    """Starts and stops all servers of a host. `chats`: the open chats by id; `keep_secret` registers values to hide."""

    def __init__(
        self,
        services: Services,
        chats: Callable[[], Mapping[str, Chat]],
        keep_secret: Callable[[Iterable[str]], None],
    ) -> None:
        self._services, self._chats, self._keep_secret = services, chats, keep_secret
        self._servers: dict[tuple[Path | None, str], Server] = {}
        self._providers: dict[tuple[Path | None, str], _Provider] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._told: set[tuple[str, str, str]] = set()
        self._changed = ChangedTools(chats)
        self._missing_told = False
        mcp = services.settings.mcp
        entries, mistakes = configured(mcp.servers if mcp.enabled else {})
        services.mistakes += mistakes
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry, root: Path | None = None) -> None:
        """Add a server if it is new; a configured server takes precedence over one from a file."""
        key = (root, entry.name)
        if (None, entry.name) in self._servers or key in self._servers:
            return
        server = self._servers[key] = Server(entry, self, root)
        provider = self._providers[key] = _Provider(server)
        self._services.tools.add(provider)

    def use_of_files(self, root: Path, entries: Iterable[Entry]) -> list[Entry]:
        """Replace the servers that files define for chats in a folder; return the entries that were removed."""
        wanted = {entry.name: entry for entry in entries}
        ended = []
        for key, server in list(self._servers.items()):
            if key[0] == root and wanted.get(server.name) != server.entry:
                self._services.tools.remove(self._providers.pop(key))
                self._end_later(self._servers.pop(key))
                ended += [server.entry] if server.name not in wanted else []
        for entry in wanted.values():
            self.add(entry, root)
        return ended

    def _end_later(self, server: Server) -> None:
        task = asyncio.get_running_loop().create_task(server.aclose())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def of(self, root: Path) -> list[Server]:
        """Return the servers for chats in a folder, sorted by name."""
        found = [server for (place, _), server in self._servers.items() if place in (None, root)]
        return sorted(found, key=lambda server: server.name)

    def named(self, root: Path, name: str) -> Server:
        """Return the server with this name for chats in a folder. Raises `McpError`."""
        for server in self.of(root):
            if server.name == name:
                return server
        names = ", ".join(server.name for server in self.of(root)) or "none"
        raise McpError(f"There is no MCP server {name[:80]}; the servers are: {names}.")

    async def aclose(self) -> None:
        """Stop all servers; return when their processes have exited."""
        ends = [server.aclose() for server in self._servers.values()]
        await asyncio.gather(*ends, *self._ending, return_exceptions=True)

    # ---- started on demand

    def start_all(self, root: Path) -> None:
        """Start the servers of a folder that have not been started."""
        _start(self.of(root))

    def _wanted(self, chat: Chat) -> list[Server]:
        """Return the servers whose tools may be sent with the chat's next request."""
        tools = chat.control.tools
        known = self.of(chat.root())
        return [one for one in known if tools.may_offer(partial(is_tool_of, one.name), group_name(one.name))]

    async def wait_for(self, chat: Chat) -> None:
        """Start the servers the chat can use and wait up to the configured time; report missing ones."""
        servers = self._wanted(chat)
        if any(one.state in _NOT_STARTED for one in servers) and not await _can_send(chat):
            return
        tasks = _start(servers)
        if tasks:
            names = ", ".join(server.name for server in servers if server.state is ServerState.STARTING)
            chat.enter(State.PREPARING, f"starting MCP servers: {names}" if "," in names else f"starting {names} (MCP)")
            await asyncio.wait(tasks, timeout=self._services.settings.mcp.wait_s)
            chat.enter(State.PREPARING)
        self._report_missing_packages(chat, [one.name for one in servers if one.lacks_packages])
        for server in servers:
            if tasks and server.state is ServerState.STARTING:
                self._tell(chat, server, "is still starting; its tools will be in a later request.", chat.chat_id)
            elif server.state is ServerState.FAILED and not server.lacks_packages:
                self._tell(chat, server, f"is not running: {server.problem}. {SEE}")

    def _report_missing_packages(self, chat: Chat, names: list[str]) -> None:
        """Report once per chat that a message is sent without servers; the editor offers to install the packages."""
        key = (chat.chat_id, "", "packages")
        if names and key not in self._told:
            self._told.add(key)
            without = f"Sent without the tools of {', '.join(names)}"
            chat.notice(Severity.WARN, f"{without}: the packages for MCP servers are not installed yet.")

    def _tell(self, chat: Chat, server: Server, what: str, chat_id: str = "") -> None:
        """Report a problem once in the chat `chat_id`, or once for all chats if `chat_id` is ""."""
        key = (chat_id, server.name, what)
        if key not in self._told:
            self._told.add(key)
            chat.notice(Severity.WARN, f"The MCP server {server.name} {what}")

    # ---- services for servers (`server.HostServices`)

    def spec(self, entry: Entry) -> ServerSpec:
        """Return how to start a server now, and register its secrets so that they are hidden everywhere."""
        if not self.have_packages():
            raise McpMissing("the packages for MCP servers are not installed")
        root = next((place for (place, _), one in self._servers.items() if one.entry is entry and place), None)
        spec = spec_of(entry, self._services.environment, self._folder_of(entry, root or self._workspace()))
        self._keep_secret(filter(looks_like_a_key, _secrets(entry, spec)))
        return spec

    def have_packages(self) -> bool:
        """Return whether the packages for servers are installed; if not, ask the editor once to install them."""
        if is_installed():
            return True
        if not self._missing_told:
            self._missing_told = True
            self._services.emit(PackagesMissing(extra="mcp"))
        return False

    def _folder_of(self, entry: Entry, workspace: Path) -> Path:
        """Return a server's folder, never an untrusted workspace, which could provide modules and settings.

        `python -m server` and `npx server` load files from the working folder first.
        """
        is_of_workspace = bool(entry.source) and Path(entry.source).parent == workspace  # trusted with its file
        return workspace if is_of_workspace or self._services.trust.is_trusted(workspace) else Path.home()

    def _workspace(self) -> Path:
        """Return the folder of the newest chat, used for servers that serve all folders."""
        chats = list(self._chats().values())
        return chats[-1].root() if chats else Path.cwd()

    def environment(self, spec: ServerSpec) -> Mapping[str, str]:
        """Return a server's environment: Neovim's without secrets, plus the entry's variables."""
        hidden = self._services.hidden_variables()
        return {**clean_environment(self._services.environment, _OWN_SOURCE, hidden), **spec.env}

    def hide(self, text: str) -> str:
        """Return the text with keys removed."""
        return redact(self._services.known_secrets.hide(text))

    def on_changed(self, server: Server) -> None:
        """Update pages and context blocks; revoke grants for tools that have changed."""
        self._changed.look_at(server)
        for chat in self._chats().values():
            if server.root in (None, chat.root()):
                chat.context.show_tools()
        self._services.emit(McpChanged(server=server.name))

    def roots(self, server: Server) -> Sequence[str]:
        """Return the folders of the chats that the server serves."""
        if server.root is not None:
            return (str(server.root.resolve()),)
        return tuple(dict.fromkeys(str(chat.root().resolve()) for chat in self._chats().values()))

    async def sample(self, server: Server, chats: Sequence[str], request: SamplingRequest) -> SamplingReply:
        """Ask the user, then the model of the chat whose call is running; return its reply."""
        from codecompanion.session.mcp.questions import sample  # rarely needed

        return await sample(self._services, self._chat(chats), server.name, request)

    async def elicit(self, server: Server, chats: Sequence[str], request: ElicitationRequest) -> dict[str, Any] | None:
        """Ask the user for values."""
        from codecompanion.session.mcp.questions import elicit

        return await elicit(self._chat(chats), server.name, request)

    def _chat(self, chats: Sequence[str]) -> Chat | None:
        return next((chat for one in reversed(chats) if (chat := self._chats().get(one))), None)

    # ---- the status page

    def status(self, root: Path) -> list[dict[str, Any]]:
        """Return the content of the status page, one table per server."""
        return [self._row(server) for server in self.of(root)]

    def _row(self, server: Server) -> dict[str, Any]:
        connection, counter = server.connection, MessageCounter(self._services.count_text)
        tools = [
            {
                "name": one.name,
                "own_name": one.own_name,
                "tokens": 0 if one.tool is None else counter.tools([one.tool.spec]),
                "offered": server.is_offered(one),
                "asks": one.asks,
                "hints": list(one.hints),
                "problem": one.problem,
            }
            for one in server.tools
        ]
        return {
            "name": server.name,
            "state": server.state.value,
            "problem": server.problem,
            "lacks_packages": server.lacks_packages,
            "source": server.entry.source,
            "line": self.hide(server.entry.line()),
            "version": self.hide(f"{connection.server_name} {connection.server_version}".strip()) if connection else "",
            "protocol": connection.protocol if connection else "",
            "tools": tools,
            "tokens": sum(one["tokens"] for one in tools if one["offered"]),
            "resources": [[one.uri, one.name] for one in server.offer.resources[:MAX_LISTED]],
            "prompts": [
                [one.name, [name for name, _, _ in one.arguments], [name for name, must, _ in one.arguments if must]]
                for one in server.offer.prompts[:MAX_LISTED]
            ],
            "left_out": [*server.offer.left_out, *_not_listed(server)],
            "log": list(server.log),
            "older_lines": server.older_lines,
        }


def _not_listed(server: Server) -> Iterator[str]:
    for what, there in (("resources", server.offer.resources), ("prompts", server.offer.prompts)):
        if len(there) > MAX_LISTED:
            yield f"Only the first {MAX_LISTED} of {len(there):,} {what} are offered for completion"


_NOT_STARTED = (ServerState.STOPPED, ServerState.STARTING)


def _start(servers: Iterable[Server]) -> list[asyncio.Task[None]]:
    """Start the servers that have not been started; return the tasks to wait for."""
    return [task for one in servers if one.state in _NOT_STARTED and (task := one.start())]


async def _can_send(chat: Chat) -> bool:
    """Return whether the chat's adapter can send requests; if not, the request itself will report why."""
    try:
        await chat.control.adapter().require_key()
    except CodeCompanionError:
        return False
    return True


def _secrets(entry: Entry, spec: ServerSpec) -> Iterator[str]:
    """Yield the secrets in a server's entry: secret or looked-up environment values, headers, and keys in the URL."""
    hidden = HiddenVariables(is_secret=contains_secret)
    for name, value in spec.env.items():
        if hidden.hides(name, value) or entry.settings.env[name].startswith(("cmd:", "file:")):
            yield value
    for value in spec.headers.values():
        yield value
        yield from value.split()
    yield from secrets_in_url(spec.url)
