"""Builds the services once, handles requests, and owns all chats of this host (architecture.md).

`chats` handles requests about one chat; `hello` builds the parts of a host.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codecompanion.adapters import catalog
from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.transport.client import transport_steps
from codecompanion.engine.hello import build_services
from codecompanion.engine.idle_work import LONG_QUIET_S, QUIET_S, idle_steps, keep_modules, work_when_idle
from codecompanion.engine.lazy_mcp_host import LazyMcpHost
from codecompanion.engine.user_environment import UserEnvironment
from codecompanion.errors import CodeCompanionError, InputError
from codecompanion.model.messages import Usage
from codecompanion.session.files.editor_client import EditorClient
from codecompanion.session.services import Services
from codecompanion.store.store import durable
from codecompanion.tools.commands.command_environment import is_plain_name
from codecompanion.wire import requests
from codecompanion.wire.events import Event, Restored

if TYPE_CHECKING:
    from codecompanion.engine.logins import Logins
    from codecompanion.session.actions.cost_reports import Reports
    from codecompanion.session.complete.completer import Completer
    from codecompanion.session.session import Session
    from codecompanion.session.storage.missing_chats import MissingChats

_log = logging.getLogger(__name__)
WARM_UP_AFTER_S = 0.02
PAUSE_S = 0.001
"""Seconds between two import steps, so that a request that arrived meanwhile begins before the next step."""


class Runtime:
    """One host, with its services and chats. `emit` may be called from any thread."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._services: Services | None = None
        self._reports: Reports | None = None
        self._completer: Completer | None = None
        self._logins: Logins | None = None
        self._missing: MissingChats | None = None
        self._mcp: LazyMcpHost | None = None
        self._chats: dict[str, Session] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._editor = EditorClient(emit, time.time)
        self._environment = UserEnvironment()
        self._last_request = 0.0
        self._can_import = asyncio.Event()
        """Cleared while a stored chat is about to be shown, because importing would delay it (both need the GIL)."""
        self._can_import.set()
        self._has_submitted = asyncio.Event()

    async def handle(self, request: requests.Request) -> object:
        """Handle one request and return its result.

        Raises:
            CodeCompanionError: the request failed; the message is for the user.
        """
        self._last_request = time.monotonic()
        match request:
            case requests.Hello():
                return await self._greet(request)
            case requests.OpenChat():
                await self._open(request)
            case requests.CloseChat():
                await self._close(request.chat)
            case requests.ListSessions():
                wanted = (request.cwd or None, request.limit, request.chat or None)
                return list(await asyncio.to_thread(self.services.store.list_sessions, *wanted))
            case requests.ListMissing():
                return await self._missing_chats().look()
            case requests.BringBack():
                return await self._missing_chats().restore_all()
            case requests.RenameSession(chat=chat_id, title=title):
                from codecompanion.session.storage import stored_chats

                is_open = self._chats.get(chat_id)
                return await stored_chats.rename(self.services, chat_id, title, is_open.log if is_open else None)
            case requests.ForkChat():
                return await self._fork(request)
            case requests.ListBranches(chat=chat_id):
                from codecompanion.session.actions.forking import list_branches

                return await list_branches(self.services, chat_id)
            case requests.ExportChat():
                from codecompanion.session.storage.shareable_chat import export_chat

                return await asyncio.to_thread(export_chat, self.services, request)
            case requests.DeleteSession(chat=chat_id):
                from codecompanion.session.storage import stored_chats

                return await stored_chats.delete(self.services, chat_id, self._chats)
            case requests.ListModels():
                from codecompanion.engine.model_choice import list_models

                return await list_models(self.services, request.adapter)
            case requests.ServerCards(adapters=names):
                from codecompanion.engine.server_card import server_cards

                return await server_cards(self.services, names)
            case requests.Login():
                return await self._logging_in().carry_out(request)
            case requests.ListRules():
                return self._list_rules()
            case requests.ListPrompts():
                from codecompanion.session.prompt_library.library import list_prompts

                return await list_prompts(self.services, request)
            case requests.CheckMentions():
                from codecompanion.session.prompt_library.outside_mentions import check_mentions

                return await check_mentions(self.services, request)
            case requests.ShowTrust() | requests.ChangeTrust():
                from codecompanion.session.actions.trust_page import decide_trust

                return await decide_trust(self.services, request, self._chats)
            case requests.ListCheckpoints() | requests.RestoreChat():
                return await self._keep(request)
            case requests.ShowMemory() | requests.DeleteMemory() | requests.RestoreMemory():
                from codecompanion.session.actions.memory_page import carry_out_memory  # not needed at startup

                return await carry_out_memory(self.services, request, self._chats)
            case requests.Answer():
                self._editor.take(request)
            case requests.GiveSecrets():
                self.services.adapters.give_secrets(request.secrets)
            case requests.GiveEnvironment():
                self._take_environment(request)
            case requests.Doctor():
                from codecompanion.engine.doctor import examine_all  # rarely needed, so not at startup

                return await examine_all(self.services, completes=self._completer is not None)
            case requests.ShowCost():
                return await asyncio.to_thread(self._reporting().show_cost, self.services, request)
            case requests.ShowTrace():
                return await asyncio.to_thread(self._reporting().show_trace, self.services, request)
            case requests.ShowAudit():
                from codecompanion.session.actions.show_audit import show_audit  # not needed at startup

                return await asyncio.to_thread(show_audit, self.services, request)
            case requests.ReadStaged():
                from codecompanion.workspace.git_staged import read_staged

                named = (request.index, request.git_dir, request.work_tree)
                return await asyncio.to_thread(read_staged, Path(request.cwd), *named)
            case requests.ListNames(cwd=cwd):
                from codecompanion.workspace.git_listing import names_below

                return await asyncio.to_thread(names_below, Path(cwd))
            case requests.FilesChanged():
                if self.services.indexes is not None:
                    self.services.indexes.mark_changed(request.paths)
            case requests.ShowMcp() | requests.ChangeMcp() | requests.ReadMcp():
                return await self._servers.carry_out(request)
            case requests.IndexProject():
                from codecompanion.engine.index_project import index_project

                return await index_project(self.services, request)
            case requests.CompleteCode():
                return await self._completing().complete(request)
            case requests.CancelCompletion(of=request_id):
                self._completing().cancel(request_id)
            case requests.SaveDraft():
                await durable(self.services.store.save_draft(request.chat, request.text, request.copy))
            case _:
                from codecompanion.engine.chats import carry_out

                session = self._session(request.chat)
                result = await carry_out(self.services, session, request)
                if isinstance(request, requests.SetModel):
                    self._warm_up(session)
                elif isinstance(request, requests.Submit):
                    self._has_submitted.set()
                return result
        return None

    async def aclose(self) -> None:
        """Stop every chat, leaving its history valid, then write and release everything."""
        closing = [session.close(host_ends=True) for session in self._chats.values()]
        await asyncio.gather(*closing, return_exceptions=True)
        for task in self._background:
            task.cancel()
        if self._mcp is not None:
            await self._mcp.aclose()
        if self._completer is not None:
            await self._completer.aclose()
        if self._logins is not None:
            self._logins.stop()
        if self._services is not None:
            await self._services.adapters.aclose()
            await _release(self._services)

    @property
    def services(self) -> Services:
        """Return the services; raises `InputError` before `hello`."""
        if self._services is None:
            raise InputError("The Python process is still starting.")
        return self._services

    @property
    def _servers(self) -> LazyMcpHost:
        if self._mcp is None:
            raise InputError("The Python process is still starting.")
        return self._mcp

    # ---- the host

    async def _greet(self, request: requests.Hello) -> list[str]:
        """Build the services from the settings; return the configuration errors."""
        environment = UserEnvironment()
        services, chosen = await build_services(request, self._tell, environment, self._editor)
        previous, self._services, self._reports, self._missing = self._services, services, None, None
        services.adapters.on_facts = self._server_changed
        completer, self._completer = self._completer, None
        mcp, self._mcp = self._mcp, LazyMcpHost(services, self._chats)
        if mcp is not None:
            await mcp.aclose()
        if completer is not None:
            await completer.aclose()
        self._environment = environment
        if previous is not None:
            await _release(previous)
        self._start_in_background(self._import_chat_modules(chosen, Path(request.data_dir)))
        return services.mistakes

    async def _import_chat_modules(self, chosen: AdapterSettings | None, data_dir: Path) -> None:
        """Import the modules that chats need while the editor handles the `hello` response, and the rest when idle."""
        from codecompanion.engine import chats

        chats.watch_history(self.services, self._chats, self._start_in_background)
        for step in transport_steps() if chosen is not None and chosen.kind != "offline" else ():
            await asyncio.sleep(PAUSE_S)
            await self._can_import.wait()
            await asyncio.to_thread(step)
        await asyncio.sleep(QUIET_S)
        await work_when_idle(self._is_busy, idle_steps(data_dir))
        await self._has_submitted.wait()  # a first turn imports more
        await work_when_idle(lambda: self._is_busy(LONG_QUIET_S), (keep_modules,))

    def _tell(self, event: Event) -> None:
        """Emit an event of the services; resume imports when the newest piece of a stored chat is sent."""
        self._emit(event)
        if isinstance(event, Restored) and event.first:
            self._can_import.set()

    def _is_busy(self, quiet_s: float = QUIET_S) -> bool:
        """Return whether a chat is working, or the last request was less than `quiet_s` ago."""
        works = any(session.task is not None for session in self._chats.values())
        return works or time.monotonic() - self._last_request < quiet_s

    def _take_environment(self, request: requests.GiveEnvironment) -> None:
        """Use changed keys from the running editor, starting with the next request."""
        adapters = self.services.adapters
        self.services.known_secrets.learn_environment(request.changed, adapters.key_variables(), is_plain_name)
        adapters.forget_keys(self._environment.take(request.changed, request.gone))

    def _completing(self) -> Completer:
        from codecompanion.session.complete.completer import make_completer  # imported only when used

        if self._completer is None:
            self._completer = make_completer(self.services)
        return self._completer

    def _logging_in(self) -> Logins:
        from codecompanion.engine.logins import Logins  # rarely needed, so not at startup

        if self._logins is None:
            self._logins = Logins(self.services)
        return self._logins

    def _missing_chats(self) -> MissingChats:
        from codecompanion.session.storage.missing_chats import MissingChats  # not needed at startup

        if self._missing is None:
            self._missing = MissingChats(self.services)
        return self._missing

    def _reporting(self) -> Reports:
        from codecompanion.session.actions.cost_reports import Reports  # not needed at startup

        if self._reports is None:
            self._reports = Reports()
        return self._reports

    async def _keep(self, request: requests.ListCheckpoints | requests.RestoreChat) -> object:
        """Handle requests about the files stored beside the database."""
        services = self.services
        if services.keeping is None:
            return []
        match request:
            case requests.ListCheckpoints():
                return await asyncio.to_thread(services.keeping.checkpoints.list_checkpoints, request.of)
            case requests.RestoreChat():
                from codecompanion.session.storage.from_checkpoint import restore_chat

                return await restore_chat(services, request.checkpoint, request.snapshot.cwd)

    def _list_rules(self) -> list[dict[str, Any]]:
        groups = self.services.settings.rules.groups
        return [
            {"name": name, "description": group.description, "files": [file.path for file in group.files]}
            for name, group in groups.items()
        ]

    # ---- chats

    def _session(self, chat_id: str) -> Session:
        session = self._chats.get(chat_id)
        if session is None:
            raise InputError("The Python process no longer has this chat open; open it again.")
        return session

    async def _open(self, request: requests.OpenChat) -> None:
        from codecompanion.engine.chats import open_chat

        if request.resume:
            self._can_import.clear()
        try:
            session = await open_chat(self.services, request)
        finally:
            self._can_import.set()
        if session is not None:
            self._chats[request.chat] = session
            self._warm_up(session)
            self._start_in_background(self._missing_chats().tell(session))
            if request.purpose in ("", "edit_in_place"):
                session.servers_known = self._start_in_background(self._servers.opened(session))

    def _warm_up(self, session: Session) -> None:
        """Import the transport once the chat is on the screen, so that the first request does not wait for it."""

        async def warm() -> None:
            await asyncio.sleep(WARM_UP_AFTER_S)
            try:
                await session.control.adapter().warm_up()
                session.refresh_limits()
                await session.use_reported_model()
                # Import the prices in a thread while the model works on its first reply, whose end needs them.
                await asyncio.to_thread(self.services.price, session.adapter_name, session.model, (Usage(),))
                address = self.services.adapters.settings(session.adapter_name).base_url
                await asyncio.to_thread(catalog.keep, address, session.model)
            except CodeCompanionError as error:
                _log.info("warm-up: %s", error)

        self._start_in_background(warm())

    def _server_changed(self, adapter_name: str) -> None:
        """Update every chat that uses this adapter with the new facts about its server."""
        for session in self._chats.values():
            if session.adapter_name == adapter_name:
                session.refresh_limits()

    def _start_in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def _fork(self, request: requests.ForkChat) -> str:
        """Create a branch of a chat; raises `InputError` if the chat is open and busy."""
        from codecompanion.session.actions.forking import fork

        session = self._chats.get(request.chat)
        if session is None:
            return await fork(self.services, request)
        return await session.occupy(lambda: fork(self.services, request))

    async def _close(self, chat_id: str) -> None:
        session = self._chats.pop(chat_id, None)
        if session is not None:
            await session.close()
            await durable(self.services.store.release(session.chat_id))


async def _release(services: Services) -> None:
    """Close the files of replaced services."""
    if services.vectors is not None:
        await services.vectors.aclose()
    if services.indexes is not None:
        await services.indexes.aclose()
    await asyncio.to_thread(services.audit.close)
    await services.store.aclose()
