"""Sends one request of a turn, shows the reply as it arrives, and logs it; a cut-off reply is kept (lesson 39)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

import msgspec

from codecompanion.adapters.base import Finished
from codecompanion.adapters.model_list import other_model
from codecompanion.adapters.transport.time_limits import is_own_server
from codecompanion.errors import StoreError, StoreUnavailable
from codecompanion.model.history import EventPayload, MessageAdded, ReadTwice, RequestSent, ServerEdited, UsageReported
from codecompanion.model.messages import Message
from codecompanion.session.accounts.accounting import RequestRecord
from codecompanion.session.accounts.local_models import runs_on_own_server, speed_of
from codecompanion.session.chat.chat import Chat
from codecompanion.session.chat.streamed_reply import ReplySoFar, stream_reply
from codecompanion.session.message_context.visible_file import tell_user
from codecompanion.session.state import State
from codecompanion.tools.tool_registry import ToolRegistry
from codecompanion.wire.events import ReplyFinished, ReplyStarted, Severity

if TYPE_CHECKING:
    from codecompanion.adapters.prompt_slots import Loss
    from codecompanion.session.turn.arriving_size import ArrivingSize

MIN_SHOWN_S = 3.0
"""Minimum expected prompt processing time, in seconds, that is announced."""


class Exchange:
    """Sends the requests of one turn, one at a time, and receives the replies."""

    def __init__(self, chat: Chat, turn_id: str, cycle: int) -> None:
        self._chat, self.turn_id, self.cycle = chat, turn_id, cycle
        self.prepared_for = ("", "")
        """Adapter and model of the last prepared request; the user may switch at any time."""
        self.reply: ReplySoFar | None = None
        self.tools: ToolRegistry | None = None
        """The tools of the last request, or None before the first."""

    @property
    def is_switched(self) -> bool:
        """Return whether the user has switched models since the request was prepared."""
        return self.prepared_for != self._chat.control.named

    @property
    def has_words(self) -> bool:
        """Return whether part of a reply has arrived but is not logged yet."""
        return self.reply is not None and not self.reply.is_empty

    def forget(self) -> None:
        """Drop the arriving reply from the display."""
        self.reply = self._chat.arrived = None

    async def send(self) -> Finished:
        """Send the next request and log its reply; text is shown as it arrives.

        Raises:
            CodeCompanionError: the request was refused, or its reply was cut off or could not be stored.
        """
        chat = self._chat
        chat.enter(State.PREPARING)
        adapter = chat.services.adapters.get(chat.adapter_name)
        request = chat.control.request()
        self.tools = chat.control.tools.offered().only({spec.name for spec in request.tools})
        with chat.control.shaper.as_sent() as sent_view:
            estimated, schemas = chat.meter.estimated_prompt(sent_view), chat.meter.schemas
        loss = chat.control.prompt_loss()
        record = RequestRecord(chat.services.new_token(), chat.log, chat.services.clock)
        sent = RequestSent(
            turn_id=self.turn_id,
            adapter=chat.adapter_name,
            model=chat.model,
            messages=len(request.messages),
            estimated_tokens=chat.control.shaper.current().measure.tokens,
            request_id=record.id,
            shaping=chat.control.shaper.savings(),
            limits=chat.control.request_limits(),
        )
        sent = chat.parts.described(request, sent)
        chat.log.write_unawaited(chat.contents.described(request, chat.control.shaper.sent, sent))
        storing = asyncio.create_task(chat.contents.store())  # the request does not wait for the disk
        estimate = self._reading_estimate()
        chat.enter(State.STREAMING, estimate or "waiting for the model")
        chat.emit(ReplyStarted(chat=chat.chat_id, adapter=chat.adapter_name, model=chat.model))
        self.reply = reply = ReplySoFar()
        self._chat.arrived = reply, ""
        native, size = chat.control.native.compaction(), cache(self._arriving_size)

        def keep(text: str) -> None:
            chat.save_partial(text)
            size().show(text)

        try:
            finished = await stream_reply(
                adapter,
                request,
                reply,
                emit=chat.emit,
                on_label=lambda label: chat.enter(State.STREAMING, label),
                on_second=keep,
                on_compaction=native.take,
                on_retry=record.take_retry,
                has_estimate=bool(estimate),
            )
        except BaseException as error:
            await native.end(error)
            await record.fail(error)
            raise
        finally:
            await storing
        await native.end()
        if finished.stop == "compacted" and not native.done:
            chat.control.native.expect(missed=True)
        # Only now may the server have reported that the model does not see the tools.
        if not self.is_switched and chat.control.drop_unseen_tools():
            estimated -= schemas
        again = self._read_again(finished, loss)
        await self._log_reply(record, reply, finished, estimated, again, compacted=native.done)
        return finished

    def _arriving_size(self) -> ArrivingSize:
        from codecompanion.session.turn.arriving_size import (
            ArrivingSize,
        )  # not needed for a reply of less than a second

        return ArrivingSize(self._chat)

    def _reading_estimate(self) -> str:
        """Return the label with the prompt processing time if that is known and long enough, or ""."""
        chat = self._chat
        speed = speed_of(chat.services.adapters, *chat.control.named)
        tokens = chat.control.shaper.unread_tokens() if speed.reads else 0
        seconds = speed.seconds_to_read(tokens)
        if seconds < MIN_SHOWN_S:
            return ""
        from codecompanion.reports.markdown import expected_text, tokens_text  # only local servers have a speed

        return f"reading about {tokens_text(tokens)} tokens, ≈ {expected_text(seconds)}"

    def _read_again(self, finished: Finished, loss: Loss) -> ReadTwice | None:
        """Record a cache hit or miss on the user's own server.

        Return the tokens that it had to process again, if any.
        """
        chat, control = self._chat, self._chat.control
        is_own = finished.read_tokens is not None and runs_on_own_server(chat.services.adapters, *control.named)
        if self.is_switched or not is_own:
            return None
        shared = control.shaper.shared_tokens(is_lost=bool(loss))
        again = control.read_again.judge(finished.usage, finished.read_tokens, shared, loss)
        if loss == "other_request" and control.read_again.was_kept:
            control.adapter().learn_kept_prompt(control.model)
        return ReadTwice(again, loss) if again else None

    async def _log_reply(
        self,
        record: RequestRecord,
        reply: ReplySoFar,
        finished: Finished,
        estimated: int,
        again: ReadTwice | None,
        *,
        compacted: bool,
    ) -> None:
        chat, usage = self._chat, finished.usage
        self.reply = None
        message = self.message(reply, finished)
        self._chat.arrived = reply, message.id
        # A reply may consist only of the provider's compaction, which is already in the view.
        empty = finished.stop == "compacted" and not message.content
        payloads: list[EventPayload] = [] if empty else [MessageAdded(message=message)]
        reported = self._reported(message.id, finished, estimated, empty=empty)
        payloads += [msgspec.structs.replace(usage, request_id=record.id, read_again=again) for usage in reported]
        keep = partial(self._keep_for_later, message, reply, payloads[len(payloads) - len(reported) :])
        try:
            await chat.log.write(*payloads, record.ended(finished.stop), on_failure=keep)
        except StoreError as failure:
            lost = "No tool was run, because the calls could not be stored" if finished.tool_calls else ""
            raise StoreUnavailable(f"{lost or 'The reply is not stored yet'}: {failure}") from failure
        if not self.is_switched:
            chat.control.unseen_tools.see_calls(finished.tool_calls)
        if usage is not None and not empty and not self.is_switched:
            cleared = sum(edit.cleared_tokens for edit in finished.server_edits)
            chat.control.learn(usage, estimated, compacted=compacted, cleared=cleared)
            chat.keep_calibration()
        chat.emit(
            ReplyFinished(
                chat=chat.chat_id,
                message_id=message.id,
                stop=finished.stop,
                prompt_tokens=usage.prompt_tokens if usage else 0,
                output_tokens=usage.output_tokens if usage else 0,
                other_model=self._other_model(finished) or msgspec.UNSET,
            )
        )
        if finished.stop == "stop" and not finished.tool_calls and not message.text.strip():
            chat.notice(Severity.INFO, "The model sent an empty reply. Send another message, or regenerate.")
        chat.control.window.take_in()
        chat.control.window.tell_no_tools()
        chat.control.window.tell_no_room()
        if not finished.tool_calls:
            tell_user(chat.services, chat.chat_id)
        for edit in finished.server_edits:
            chat.notice(
                Severity.INFO,
                f"{self.prepared_for[0]} cleared {edit.cleared_items} old tool results on its side"
                f" ({edit.cleared_tokens:,} tokens; {edit.kind}).",
            )
        chat.show_meter()

    def _other_model(self, finished: Finished) -> str:
        """Return the model that answered in place of the requested one; "" if the requested one answered.

        Providers report a versioned name for an alias; only gateways and local servers redirect requests.
        """
        adapter, model = self.prepared_for
        adapters = self._chat.services.adapters
        entry = adapters.settings(adapter)
        if entry.kind != "openai_compatible" and not is_own_server(entry):
            return ""
        return other_model(model or adapters.get(adapter).default_model, finished.model)

    def _keep_for_later(self, message: Message, reply: ReplySoFar, reported: Sequence[EventPayload]) -> None:
        """Queue a reply that was already shown for the next log write, without its tool calls, which were not run."""
        if message.tool_calls:
            reply.finished = None
            message = msgspec.structs.replace(self.message(reply, None), id=message.id)
        kept: tuple[EventPayload, ...] = (MessageAdded(message=message),) if message.text.strip() else ()
        self._chat.log.write_later(*kept, *reported)

    async def keep_what_arrived(self) -> None:
        """Log the part of an interrupted reply that arrived, marked as cut off.

        Raises:
            StoreError: it could not be stored yet; it is written with the next events.
        """
        chat = self._chat
        if self.reply is not None and self.reply.is_empty:
            chat.services.store.clear_partial(chat.chat_id)
        elif self.reply is not None:
            message = self.message(self.reply, None)
            chat.arrived = self.reply, message.id
            chat.log.write_later(MessageAdded(message=message))
            await chat.log.write()
            chat.emit(ReplyFinished(chat=chat.chat_id, message_id=message.id, stop="cut"))

    def _reported(self, message_id: str, finished: Finished, estimated: int, *, empty: bool) -> list[UsageReported]:
        """Return the usage events of a reply, or none if the provider reported no usage."""
        chat, usage, others = self._chat, finished.usage, finished.other_passes
        (adapter, model), services = self.prepared_for, chat.services
        if usage is None or empty:
            passes = (*([usage] if usage else []), *others)
            return [services.passes_reported(adapter, model, message_id, passes)] if passes else []
        edits = tuple(
            ServerEdited(edit.kind, edit.cleared_tokens, edit.cleared_items) for edit in finished.server_edits
        )
        reported = UsageReported(
            message_id=message_id,
            adapter=adapter,
            model=model,
            usage=usage,
            estimated_prompt_tokens=estimated,
            other_passes=others,
            server_edits=edits,
        )
        return [services.priced(reported)]

    def message(self, reply: ReplySoFar, finished: Finished | None) -> Message:
        """Return the reply as a message.

        If the reply has no end marker, it is marked as cut off and its calls are dropped.
        """
        chat = self._chat
        return chat.meter.counted(
            Message(
                id=chat.services.new_token(),
                role="assistant",
                content=reply.content(),
                tool_calls=finished.tool_calls if finished else (),
                cycle=self.cycle,
                turn_id=self.turn_id,
                cut=finished is None,
                ts=chat.services.clock(),
                usage=finished.usage if finished else None,
            )
        )
