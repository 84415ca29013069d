"""Opens a new chat, and announces a chat that was opened (lessons 35, 36; architecture.md)."""

from __future__ import annotations

from codecompanion.errors import ConfigError
from codecompanion.model.history import ChatCreated
from codecompanion.session.actions.follow_trust import show_waiting_files
from codecompanion.session.history.chat_log import ChatLog
from codecompanion.session.services import Services
from codecompanion.session.session import Session
from codecompanion.store.store import durable
from codecompanion.wire.events import ChatOpened, Notice, Severity, StoredSubmit
from codecompanion.wire.requests import OpenChat


async def open_new(services: Services, request: OpenChat) -> Session:
    """Create a chat with the rules that apply to every new chat, and return it.

    Raises:
        ConfigError: the adapter does not exist.
        StoreError: the chat cannot be stored.
    """
    session = Session(services, ChatLog(services.store, request.chat), request.snapshot)
    chat = services.settings.chat
    adapter_name = request.adapter or chat.adapter
    session.control.use_model(adapter_name, request.model or (chat.model if adapter_name == chat.adapter else ""))
    is_plain = request.purpose in ("", "edit_in_place")
    session.control.serve("" if is_plain else request.purpose)
    await session.control.read_environment(session.root())
    await durable(services.store.acquire(request.chat))
    await session.log.write(
        ChatCreated(
            adapter=session.adapter_name,
            model=session.model,
            policy=session.control.policy.name,
            cwd=request.snapshot.cwd,
            purpose=request.purpose,
        )
    )
    if not is_plain:
        announce(session, resumed=False)
        return session
    messages, problems = await session.context.rules.autoload(session.root())
    for problem in problems:
        services.emit(Notice(chat=request.chat, level=Severity.WARN, text=problem))
    await session.attach(*messages)
    await _join_memory(session)
    announce(session, resumed=False)
    await show_waiting_files(session)
    return session


async def _join_memory(session: Session) -> None:
    """Attach the project's memory, if configured."""
    if session.services.keeping is None or not session.services.settings.chat.memory.max_tokens:
        return
    from codecompanion.session.actions.join_memory import join_memory  # not needed at startup

    await join_memory(session)


def announce(
    session: Session,
    *,
    resumed: bool,
    read_only: bool = False,
    drafts: tuple[str, str] = ("", ""),
    stored: tuple[StoredSubmit, ...] = (),
    shows_context: bool = True,
) -> None:
    """Tell the editor that the chat is open, and show problems of its configuration."""
    session.emit(
        ChatOpened(
            chat=session.chat_id,
            title=session.log.title,
            adapter=session.adapter_name,
            model=session.model,
            window=session.control.limits.context_window,
            policy=session.control.policy.name,
            resumed=resumed,
            read_only=read_only,
            draft=drafts[0],
            beside=drafts[1],
            stored=stored,
        )
    )
    if shows_context:
        session.context.show()
    if not resumed:
        session.show_meter()
    for mistake in session.services.mistakes:
        session.notice(Severity.WARN, mistake)
    _tell_unusable_adapter(session)
    session.control.tell_ignored_settings()


def _tell_unusable_adapter(session: Session) -> None:
    """Report a problem with the chat's adapter, unless it is among the mistakes already reported."""
    try:
        session.services.adapters.check(session.adapter_name)
    except ConfigError as error:
        if not any(mistake.startswith(f"{error.key}:") for mistake in session.services.mistakes):
            session.notice(Severity.WARN, str(error))
