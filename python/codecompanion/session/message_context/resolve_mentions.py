"""Turns a message's editor mentions into context messages: once each, with current content, within limits.

The editor has already sent the content, or sends it later if a language server is slow. Until all content has arrived,
the message waits in the queue, so stopping returns it to the input. On failure the user sees one sentence, and the
message returns to the input.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import msgspec

from codecompanion.errors import InputError
from codecompanion.formats.plural import counted
from codecompanion.model.history import MessageAdded
from codecompanion.model.messages import Message, with_changes
from codecompanion.session.message_context.composing import Composing
from codecompanion.session.message_context.found_context import NOTHING, Found
from codecompanion.session.message_context.visible_file import last_reported, looking_at, looking_message
from codecompanion.session.services import Services
from codecompanion.session.window.context_control import ContextControl
from codecompanion.session.window.too_large import IS_BACK
from codecompanion.wire.events import EditorContextSent
from codecompanion.wire.requests import EditorContext, EditorItem, EditorText, Submit
from codecompanion.workspace.secret_files import is_secret
from codecompanion.workspace.secret_text import find_secrets, hide_secrets

LATE_LIMIT_S = 60.0
"""Timeout in seconds for an editor that does not answer at all; slow sources have their own limits in the editor."""
LABEL = "reading the editor"
_CHOSEN = frozenset({"buffer", "selection", "file", "diff"})
"""Items that show only text chosen by the user; secrets are removed from all other items (a diff arrives without them).
"""
_SHOWN_LINES = 12
"""Maximum number of lines in the fold below the message; K shows all."""


class MentionedContext:
    """Collects the editor content mentioned in one chat's messages. `show` displays progress, "" = done."""

    def __init__(self, services: Services, control: ContextControl, show: Callable[[str], None]) -> None:
        self._services, self._control, self._show = services, control, show
        self._composing = Composing(services, control)
        self._late: dict[int, asyncio.Future[tuple[EditorItem, ...]]] = {}

    def expect(self, submit: Submit) -> None:
        """Prepare to receive content that arrives after the submit."""
        if any(item.comes == "later" for item in submit.items):
            self._late[submit.submit_id] = asyncio.get_running_loop().create_future()

    def take(self, request: EditorContext) -> None:
        """Receive late content; content of a returned message is ignored."""
        late = self._late.get(request.submit_id)
        if late is not None and not late.done():
            late.set_result(request.items)

    def forget(self, submit: Submit) -> None:
        """Stop waiting for the content of a submit."""
        self._late.pop(submit.submit_id, None)

    async def before(
        self, submit: Submit, turn_id: str, cycle: int, begin: Callable[[], None], coming: Sequence[Message] = ()
    ) -> Found:
        """Return the context sent before a message, after `coming`. `begin` is called before a slow part.

        Raises:
            InputError: something that the message mentions is unavailable; nothing was logged.
            asyncio.CancelledError: stopped; nothing was logged.
        """
        line = self._looking_at(submit)
        if not submit.items and not line:
            return NOTHING
        items = await self._all_of(submit, begin) if submit.items else ()
        self._refuse(items)
        mentioned = await self._composing.messages(submit, items, coming)
        looking = [looking_message(line, self._services.new_token())] if line else []
        ts = self._services.clock()
        messages = [
            self._control.meter.counted(with_changes(message, cycle=cycle, turn_id=turn_id, ts=ts))
            for message in (*looking, *mentioned)
        ]
        found = Found(
            tuple(MessageAdded(message=message) for message in messages),
            tuple(self._sent_event(message) for message in messages if message.mentioned is not None),
        )
        return found.with_notices(self._control.chat_id, self._with_secrets(messages))

    def _looking_at(self, submit: Submit) -> str:
        """Return the line about the open file, or "" if disabled, already sent, or the submit is an edit in place."""
        if self._control.purpose or submit.edit is not None or not self._services.settings.chat.tell_open_file:
            return ""
        root = self._services.root(submit.snapshot)
        line = looking_at(submit.snapshot, root)
        if not line or line == last_reported(self._control):
            return ""
        if self._services.open_file_notice == "not sent":
            self._services.open_file_notice = "due"
        return line

    async def _all_of(self, submit: Submit, begin: Callable[[], None]) -> tuple[EditorItem, ...]:
        """Return the mentioned items of a submit, including those that arrive late or are read by the host."""
        items = submit.items
        if any(item.comes != "now" for item in items):
            begin()
            self._show(LABEL)
            try:
                late = await self._late_items(submit)
                items = tuple([await self._complete(item, late, submit) for item in items])
            finally:
                self._show("")
        if any(item.name not in _CHOSEN for item in items):
            items = await asyncio.to_thread(lambda: tuple(map(_without_secrets, items)))
        return items

    async def _late_items(self, submit: Submit) -> Mapping[str, EditorItem]:
        waiting = self._late.get(submit.submit_id)
        if waiting is None:
            return {}
        try:
            async with asyncio.timeout(LATE_LIMIT_S):
                return {item.written: item for item in await waiting}
        except TimeoutError:
            return {}

    async def _complete(self, item: EditorItem, late: Mapping[str, EditorItem], submit: Submit) -> EditorItem:
        match item.comes:
            case "now":
                return item
            case "later":
                return late.get(item.written) or msgspec.structs.replace(
                    item, nothing="the editor did not answer in time"
                )
            case "by_host":
                from codecompanion.session.editor_context.host_mentions import read_by_host

                given, root = self._services, self._services.root(submit.snapshot)
                return await read_by_host(item, root, given.editor, given.context_sources)

    def _refuse(self, items: Sequence[EditorItem]) -> None:
        wrong = next((item for item in items if item.error), None)
        if wrong is not None:
            why = wrong.error.rstrip(".")
            raise InputError(f"Not sent: {wrong.written}: {why}. {IS_BACK}")

    def _sent_event(self, message: Message) -> EditorContextSent:
        return EditorContextSent(
            chat=self._control.chat_id,
            message_id=message.id,
            title="" if message.mentioned is None else message.mentioned.title,
            body=body_of_mentioned(message),
            tokens=self._control.meter.scaled(message.tokens),
        )

    def _with_secrets(self, messages: Sequence[Message]) -> tuple[str, ...]:
        """Return a sentence about secret files that are sent because the user mentioned them, or nothing (R-266)."""
        paths = [path for m in messages if m.mentioned is not None for path in m.mentioned.paths]
        secret = [path for path in dict.fromkeys(paths) if is_secret(path)]
        held = [m.mentioned.paths for m in messages if m.mentioned is not None and find_secrets(m.text)]
        secret += dict.fromkeys(path for paths in held for path in paths if path not in secret)
        if not secret:
            return ()
        them = "it" if len(secret) == 1 else "them"
        return (f"Sent with {counted(len(secret), 'secret file')} because you named {them}: {', '.join(secret)}",)


def _without_secrets(item: EditorItem) -> EditorItem:
    """Return an item without secrets in text that the user did not choose individually."""
    if item.name in _CHOSEN:
        return item

    def shown(text: EditorText) -> EditorText:
        return msgspec.structs.replace(text, text=hide_secrets(text.text, text.path))

    return msgspec.structs.replace(item, texts=tuple(map(shown, item.texts)))


def body_of_mentioned(message: Message) -> str:
    """Return the first lines of the sent text, for the fold below the question."""
    lines = message.text.split("\n")
    more = len(lines) - _SHOWN_LINES
    shown = [line[:200] for line in lines[:_SHOWN_LINES]]
    return "\n".join([*shown, f"… {counted(more, 'more line')} · K shows all"] if more > 0 else shown)
