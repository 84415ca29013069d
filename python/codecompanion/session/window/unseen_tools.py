"""Determines from a local server's token counts whether its model sees the tools that are sent (lesson 58).

Some servers silently drop the tools if the chat template does not support them. Not sending them saves room, but a
wrong conclusion costs the user every tool. The conclusion therefore requires a server that has not reported whether its
template supports tools, a model that has not called a tool in any chat, and two clear reports (`usage_check`).
"""

from __future__ import annotations

from collections.abc import Sequence

from codecompanion.model.messages import ToolCall
from codecompanion.session.window.chat_model import ChatModel


class UnseenTools:
    """Stops sending tools that the server drops silently before they reach the model."""

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat

    @property
    def may_be(self) -> bool:
        """Return whether the server may be dropping tools silently."""
        chat = self._chat
        adapter = chat.adapter()
        if not chat.services.adapters.settings(chat.adapter_name).local_server:
            return False
        if adapter.facts(chat.model).tools is not None or adapter.runs_model_itself(chat.model) is False:
            return False
        has_called = any(message.tool_calls for message in chat.log.view.messages)
        return not has_called and not chat.services.usage_doubts.sees_tools(*self._model)

    def see_calls(self, calls: Sequence[ToolCall]) -> None:
        """Record that the model sees tools if the reply calls any, regardless of its server's reports."""
        doubts = self._chat.services.usage_doubts
        if not calls:
            return
        was_hidden = doubts.hides_tools(*self._model)
        doubts.note_sees_tools(*self._model)
        if was_hidden:
            self._chat.meter.forget_doubts()
            self._chat.offer_tools()

    def drop(self) -> int:
        """Stop sending tools; return the estimated token count of the tools that were sent."""
        chat, schemas = self._chat, self._chat.meter.schemas
        chat.services.usage_doubts.note_toolless(*self._model)
        chat.offer_tools()
        chat.meter.forget_doubts()
        return schemas

    @property
    def _model(self) -> tuple[str, str]:
        return self._chat.endpoint, self._chat.model
