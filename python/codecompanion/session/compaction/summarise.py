"""Asks an adapter for a summary and returns its reply, with a limit on silence (lesson 18).

Used by chats and by the command line. A model that is still writing is never cut off, because a local model may take
minutes for a long summary.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import msgspec

from codecompanion.adapters.base import Adapter, ChatRequest, Finished, ReasoningDelta, RetryScheduled, TextDelta
from codecompanion.context.work import SummaryReply, SummaryRequest
from codecompanion.errors import AdapterError, ContextOverflow, RequestRejected
from codecompanion.model.messages import Message

_CHARS_PER_TOKEN = 3
"""Characters per token assumed for reasoning whose size is not reported; low, to reserve too much rather than too
little.
"""


def summary_request(
    model: str, request: SummaryRequest, thinking_tokens: int = 0, *, chat: ChatRequest | None = None
) -> ChatRequest:
    """Return the summary request for the adapter; an in-place request continues the `chat`.

    `thinking_tokens`: tokens the model is known to spend before its answer; they are added to the limit, within the
    window.
    """
    most = max(request.max_output_tokens, request.room_tokens)
    order = Message(id="summary-prompt", role="user", content=request.prompt)
    if chat is not None:
        # Keep the chat's own limit, if there is one, because another limit could change the model's thinking budget.
        limit = min(max(chat.max_output_tokens, request.max_output_tokens + thinking_tokens), most)
        return msgspec.structs.replace(
            chat,
            messages=(*chat.messages, order),
            max_output_tokens=limit,
            purpose="summary",
            subject=request.subject,
        )
    return ChatRequest(
        messages=(order,),
        model=model,
        max_output_tokens=min(request.max_output_tokens + thinking_tokens, most),
        purpose="summary",
        subject=request.subject,
    )


async def ask_summary(
    adapter: Adapter,
    request: ChatRequest,
    *,
    silence_s: float,
    on_retry: Callable[[RetryScheduled], None] = lambda event: None,
    on_begin: Callable[[], None] = lambda: None,
) -> SummaryReply:
    """Return the reply to a summary request; any failure except cancellation is returned in the reply, as one sentence.

    `silence_s`: the maximum number of seconds without new output; neither keep-alives nor status reports of a server
    that is starting reset it. `on_begin` is called when the first output arrives.
    """
    name = request.model or adapter.name
    texts: list[str] = []
    thought_chars = 0
    finished: Finished | None = None
    has_begun = False
    now = asyncio.get_running_loop().time
    try:
        async with asyncio.timeout(silence_s) as limit, aclosing(adapter.stream(request)) as events:
            async for event in events:
                if not (isinstance(event, RetryScheduled) and event.waiting):
                    limit.reschedule(now() + silence_s)
                if not has_begun and not isinstance(event, RetryScheduled):
                    has_begun = True
                    on_begin()
                match event:
                    case TextDelta(text=text):
                        texts.append(text)
                    case RetryScheduled():
                        on_retry(event)
                    case Finished():
                        finished = event
                    case ReasoningDelta(text=text):
                        thought_chars += len(text)
    except TimeoutError:
        silence = "wrote nothing for" if has_begun else "did not answer within"
        return SummaryReply(error=f"{name} {silence} {silence_s:g} s")
    except AdapterError as error:
        return SummaryReply(error=str(error), refused=isinstance(error, ContextOverflow | RequestRejected))
    if finished is None:
        return SummaryReply(error=f"{name} ended its reply without an end marker")
    return SummaryReply(
        text="".join(texts),
        stop="stop" if finished.tool_calls else finished.stop,
        called_tools=bool(finished.tool_calls),
        usage=finished.usage,
        thinking_tokens=(finished.usage.reasoning_tokens if finished.usage else 0) or thought_chars // _CHARS_PER_TOKEN,
    )
