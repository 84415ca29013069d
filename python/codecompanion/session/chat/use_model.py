"""Switches a chat to another adapter or model, and finds the model of a chat whose adapter entry names none."""

from __future__ import annotations

import msgspec

from codecompanion.adapters.base import RetryScheduled
from codecompanion.errors import AdapterError
from codecompanion.model.history import ModelSet
from codecompanion.session.chat.chat import Chat
from codecompanion.session.state import State
from codecompanion.wire.events import ModelChanged, ReplyStarted, Retrying


async def use_model(chat: Chat, adapter_name: str, model: str) -> None:
    """Use another adapter and model from the next request on (lesson 4).

    Raises:
        ConfigError: the adapter does not exist, or it cannot be used; nothing is changed.
    """
    chat.services.adapters.check(adapter_name)
    chat.control.use_model(adapter_name, model)
    chat.control.watch.reset()
    await chat.log.write(ModelSet(adapter=chat.adapter_name, model=chat.model))
    if chat.task is None:
        # During a turn, its next preparation does this.
        await chat.control.native.drop_foreign_blocks()
        await _resume_meter(chat)
    chat.emit(
        ModelChanged(
            chat=chat.chat_id,
            adapter=chat.adapter_name,
            model=chat.model,
            window=chat.control.limits.context_window,
        )
    )
    chat.show_meter()


async def find_model(chat: Chat) -> None:
    """Ask the endpoint for the model of a chat that has none; wait for a local server that is starting.

    Raises:
        AdapterError: the endpoint lists none; the model's header is shown, for the error below it.
    """
    chat.enter(State.STREAMING, "waiting for the model")
    adapter_name = chat.adapter_name

    def tell_wait(event: RetryScheduled) -> None:
        chat.emit(Retrying(chat=chat.chat_id, **msgspec.structs.asdict(event)))

    try:
        model = await chat.control.adapter().find_model(tell_wait)
    except AdapterError:
        chat.emit(ReplyStarted(chat=chat.chat_id, adapter=adapter_name, model=""))
        raise
    if model and chat.control.named == (adapter_name, ""):  # the user may have switched meanwhile
        await use_model(chat, adapter_name, model)


async def _resume_meter(chat: Chat) -> None:
    """Restore the meter from this model's earlier reports in this chat, if any."""
    model, events = chat.control.named, await chat.log.events()
    if chat.task is None and model == chat.control.named:
        chat.meter.resume(events, *model)
