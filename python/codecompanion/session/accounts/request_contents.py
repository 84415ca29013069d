"""Logs the contents of each request, so that the user can later see the model's input (R-328).

The view at that time is already in the log. The rest of the request is logged here: system prompt and tool schemas as
hashes of blobs, each stored once, and the shaped messages as a difference from the previous request.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec

from codecompanion.adapters.base import ChatRequest
from codecompanion.context.shape_request import Shaped
from codecompanion.errors import StoreError
from codecompanion.model.history import RequestSent, Shaping
from codecompanion.model.messages import Message, ToolSpec

_log = logging.getLogger(__name__)


class RequestContents:
    """Records the contents of one chat's requests; `put_blob` stores bytes and returns their sha256."""

    def __init__(self, put_blob: Callable[[bytes], str]) -> None:
        self._put_blob = put_blob
        self._prompt: tuple[Message | None, str] = (None, "")
        self._tools: tuple[Sequence[ToolSpec] | None, str] = (None, "")
        self._known, self._waiting = set[str](), list[bytes]()
        self._shaped: dict[str, Message] | None = None

    def described(self, request: ChatRequest, shaped: Shaped | None, sent: RequestSent) -> RequestSent:
        """Return a request's log entry with its contents; contents that are not stored yet wait for `store`."""
        system = request.messages[0]
        if system is not self._prompt[0]:
            self._prompt = system, self._name(system.text.encode("utf-8", "surrogatepass"))
        if request.tools is not self._tools[0]:
            self._tools = request.tools, self._name(msgspec.json.encode(request.tools))
        return msgspec.structs.replace(
            sent,
            prompt=self._prompt[1],
            tools=self._tools[1],
            shaped=self._difference(shaped),
            max_output_tokens=request.max_output_tokens,
            compact_at=request.compact_at,
        )

    async def store(self) -> None:
        """Store new contents; if this fails, the request is still sent but cannot be inspected later."""
        waiting, self._waiting = self._waiting, []
        for content in waiting:
            try:
                await asyncio.to_thread(self._put_blob, content)
            except StoreError as error:
                _log.warning("the prompt or the tools of a request could not be stored: %s", error)

    def _name(self, content: bytes) -> str:
        name = hashlib.sha256(content).hexdigest()
        if name not in self._known:
            self._known.add(name)
            self._waiting.append(content)
        return name

    def _difference(self, shaped: Shaped | None) -> Shaping | None:
        """Return the difference between this shaping and that of the previous request, or None if there is none."""
        before, is_first = self._shaped or {}, self._shaped is None
        packets: Mapping[int, Message] = {} if shaped is None else shaped.packets
        replaced = {} if shaped is None else shaped.kept.placeholders
        self._shaped = {**replaced, **{message.id: message for message in packets.values()}}
        difference = Shaping(
            replaced=tuple(m for m in replaced.values() if before.get(m.id) is not m),
            packets=tuple(m for m in packets.values() if before.get(m.id) is not m),
            dropped=tuple(id for id in before if id not in self._shaped),
            whole=is_first,
        )
        return None if difference in (Shaping(), Shaping(whole=True)) and not is_first else difference
