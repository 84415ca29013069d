"""Checks before `/continue` that the last reply is incomplete: a model that continues a complete one invents more."""

from __future__ import annotations

from codecompanion.errors import InputError
from codecompanion.model.history import RequestEnded, RequestSent
from codecompanion.model.messages import GO_ON_TAG
from codecompanion.session.history.chat_log import ChatLog


async def check_incomplete(log: ChatLog) -> None:
    """Check that the chat does not end with a complete reply.

    Raises:
        InputError: the last reply is complete.
    """
    newest = next((m for m in reversed(log.view.messages) if m.role != "user" or m.tag in (None, GO_ON_TAG)), None)
    if newest is None or newest.role != "assistant" or newest.cut or newest.tool_calls:
        return
    chat_requests, ended = set(), ""
    for event in await log.events():
        match event.payload:
            case RequestSent(purpose="chat", request_id=request_id):
                chat_requests.add(request_id)
            case RequestEnded(request_id=request_id, result=result) if request_id in chat_requests:
                ended = result
    if ended == "stop":
        raise InputError("The last reply is complete; there is nothing to continue.")
