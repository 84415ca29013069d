"""Opens chats and handles the editor's requests about an open chat (architecture.md).

The module imports most of the modules that a chat needs but `hello` does not, so `runtime` imports it after `hello`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, assert_never

from codecompanion.session.services import Services
from codecompanion.session.session import Session
from codecompanion.session.storage.lost_history import LostHistory
from codecompanion.session.storage.open_chat import open_new
from codecompanion.wire import requests
from codecompanion.wire.events import Notice, Severity


def watch_history(
    services: Services, chats: Mapping[str, Session], start: Callable[[Coroutine[Any, Any, None]], object]
) -> None:
    """Handle the loss of the history database while chats are open."""
    LostHistory(services, chats, start)


async def open_chat(services: Services, request: requests.OpenChat) -> Session | None:
    """Open a new or stored chat and return its session, or None if it is read-only. Raises `CodeCompanionError`."""
    if not request.resume:
        return await open_new(services, request)
    from codecompanion.session.storage.open_stored import open_stored  # not needed at startup

    return await open_stored(services, request)


async def carry_out(services: Services, session: Session, request: requests.Request) -> object:
    """Handle one request about an open chat and return its result; raises `CodeCompanionError`."""
    if isinstance(
        request,
        requests.RedrawChat
        | requests.GoOn
        | requests.Inspect
        | requests.ShowRequest
        | requests.ForecastCompaction
        | requests.Preview,
    ):
        await session.log.write_late()  # these requests refer to everything shown
    from codecompanion.session.actions.choose_policy import choose_policy, list_policies  # not needed at startup

    match request:
        case requests.Submit():
            session.submit(request)
        case requests.EditorContext():
            session.mentioned.take(request)
        case requests.Cancel():
            session.cancel()
        case requests.RedrawChat():
            from codecompanion.session.chat.redraw import redraw  # not needed at startup

            await redraw(session)
        case requests.Compact():
            session.compact(request.instructions, go_on=request.go_on)
        case requests.Attach():
            return await _attach(services, session, request)
        case requests.Detach():
            await session.detach(request.items)
        case requests.FetchPage():
            from codecompanion.session.actions.fetch_page import attach_page  # rarely needed, so not at startup

            return await session.fetches.run(lambda: attach_page(session, request.url, again=request.again))
        case requests.CancelFetch():
            session.fetches.stop()
        case requests.SetLive():
            return await session.context.set_live(request.items, request.live)
        case requests.AddRules():
            await _add_rules(services, session, request.group)
        case requests.Approve():
            session.desk.answer(request)
        case requests.SetYolo():
            session.desk.approvals = session.desk.approvals.with_yolo(request.on)
        case requests.SetModel():
            services.adapters.give_secrets(request.secrets)
            await session.use_model(request.adapter, request.model)
        case requests.SetPolicy():
            await choose_policy(session, request.policy)
        case requests.ListPolicies():
            return list_policies(session.control)
        case requests.SetOverrides():
            session.use_overrides(request.context_management, request.wrong)
        case requests.Clear():
            await session.clear()
        case requests.Regenerate():
            await session.regenerate(request.snapshot)
        case requests.GoOn():
            from codecompanion.session.turn.incomplete_reply import check_incomplete  # not needed at startup

            await check_incomplete(session.log)
            session.continue_reply(request.snapshot)
        case requests.ListChanges() | requests.ShowChange() | requests.RevertChanges():
            return await session.changes.carry_out(request)
        case requests.PreviewCode() | requests.ShowGathered() | requests.ChooseCode():
            return await _look_at_code(session, request)
        case requests.ListTools():
            from codecompanion.session.actions.switch_tools import list_tools

            return await list_tools(session)
        case requests.ChooseTools():
            from codecompanion.session.actions.switch_tools import choose_tools

            return await choose_tools(session, request)
        case requests.ListGrants() | requests.RevokeGrant():
            return session.grants.carry_out(request)
        case (
            requests.Inspect()
            | requests.ForecastCompaction()
            | requests.Preview()
            | requests.ShowOriginal()
            | requests.ShowRequest()
            | requests.ShowSystemPrompt()
        ):
            from codecompanion.engine.chat_views import look

            return await look(services, session, request)
        case _:
            return await session.edits.carry_out(request)
    return None


async def _look_at_code(
    session: Session, request: requests.PreviewCode | requests.ShowGathered | requests.ChooseCode
) -> object:
    from codecompanion.session.actions import code_report  # rarely needed, so not at startup

    match request:
        case requests.PreviewCode():
            return await code_report.preview_code(session, request)
        case requests.ShowGathered():
            return await code_report.show_gathered(session, request)
        case requests.ChooseCode():
            return await code_report.choose_code(session, request)
        case _:
            assert_never(request)


async def _attach(services: Services, session: Session, request: requests.Attach) -> dict[str, object]:
    from codecompanion.session.attachments.read_attachment import read_attachment  # not needed at startup

    message = await read_attachment(services, request, session.root())
    await session.attach(message)
    from codecompanion.workspace.secret_text import find_secrets  # not needed at startup

    found = await asyncio.to_thread(find_secrets, message.text)
    if found:
        kind = found[0].kind
        text = f"{message.path or request.path} contains a secret ({kind}). It is sent because you attached it."
        services.emit(Notice(chat=session.chat_id, level=Severity.INFO, text=text))
    joined = next((one for one in reversed(session.log.view.messages) if one.id == message.id), message)
    return {"label": message.path, "tokens": session.control.meter.scaled(joined.tokens)}


async def _add_rules(services: Services, session: Session, group: str) -> None:
    root = services.root(session.snapshot)
    messages, problems = await session.context.rules.add_group(group, root)
    level = Severity.WARN if messages else Severity.INFO
    for problem in problems:
        services.emit(Notice(chat=session.chat_id, level=level, text=problem))
    await session.attach(*messages)
    from codecompanion.session.actions.follow_trust import show_waiting_files  # not needed at startup

    await show_waiting_files(session)
