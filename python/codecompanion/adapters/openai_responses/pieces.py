"""Renders and checks the items of a request as bytes, each message once.

The pieces of the last request of a few chats are cached. The next request is nearly always the same list with
additions, so it renders and checks only the new messages. The bytes do not depend on the cache.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from codecompanion.adapters.alternation import Speaker, user_form
from codecompanion.adapters.base import ChatRequest
from codecompanion.adapters.joined_pieces import JoinedPieces
from codecompanion.adapters.openai_chat.render import encode
from codecompanion.adapters.openai_responses.call_ids import CallIds
from codecompanion.adapters.openai_responses.check import Mark, OrderCheck, mark_of
from codecompanion.adapters.openai_responses.check_items import check_item
from codecompanion.adapters.openai_responses.items import ItemRenderer, is_empty
from codecompanion.adapters.pairing import mend_pairs
from codecompanion.errors import ContextOverflow, EncryptedRefused, RequestRejected
from codecompanion.model.invariants import with_partners
from codecompanion.model.messages import Message, is_protected

_log = logging.getLogger(__name__)
_CHATS_KEPT = 4
_USER = user_form("input_text", '"type":"message",')


class _Piece(msgspec.Struct, frozen=True):
    """A message rendered with the given call ids: its items joined by commas, and the data needed to check them."""

    call_ids: tuple[str, ...]
    body: bytes
    marks: tuple[Mark, ...]
    problems: tuple[str, ...]


class _Kept(msgspec.Struct):
    """The last request of a chat: its messages, their pieces in the order sent, and the final state of the check.

    `mended`: the sent messages differ from these, so the next request cannot reuse the pieces.
    """

    messages: list[Message]
    with_encrypted: bool
    sent: list[Message]
    pieces: list[_Piece]
    ids: CallIds
    order: OrderCheck
    joined: JoinedPieces | None = None
    joined_in_turns: bool = False
    mended: bool = False

    def join(self, *, in_turns: bool) -> JoinedPieces:
        """Return all pieces joined; with `in_turns`, user and assistant alternate."""
        if self.joined is None or self.joined_in_turns != in_turns:
            self.joined, self.joined_in_turns = JoinedPieces(_USER if in_turns else None), in_turns
        for piece in self.pieces[self.joined.count :]:
            self.joined.add(_speaker(piece), piece.body)
        return self.joined


class PieceRenderer:
    """Renders the `input` of requests; `name` is the adapter's name, for errors."""

    def __init__(self, items: ItemRenderer, name: str) -> None:
        self._items, self._name = items, name
        self.alternating: set[str] = set()
        """Models whose errors show that their chat template requires alternating roles."""
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def render(self, request: ChatRequest) -> JoinedPieces:
        """Return the items of the request.

        Raises:
            RequestRejected: the endpoint would refuse the items, and no safe repair is possible.
        """
        messages = list(request.messages)
        if not request.chat_id:
            done = self._render_all(messages, request.send_encrypted, None)
            return done.join(in_turns=request.model in self.alternating)
        old = self._kept.pop(request.chat_id, None)
        if old is not None and self._extend(old, messages, request.send_encrypted):
            done = old
        else:
            done = self._render_all(messages, request.send_encrypted, old)
        if not done.mended:
            self._kept[request.chat_id] = done
        while len(self._kept) > _CHATS_KEPT:
            self._kept.popitem(last=False)
        return done.join(in_turns=request.model in self.alternating)

    def render_only(self, messages: Sequence[Message], *, with_encrypted: bool) -> JoinedPieces:
        """Return the items of these messages without caching anything."""
        return self._render_all(list(messages), with_encrypted, None).join(in_turns=False)

    def _extend(self, kept: _Kept, messages: list[Message], with_encrypted: bool) -> bool:
        """Append the new messages to the cached pieces; return False if the cache is no longer usable."""
        known = len(kept.messages)
        # List comparison checks identity before equality: 0.1 ms for 10,000 identical objects.
        if not known or kept.with_encrypted != with_encrypted or messages[:known] != kept.messages:
            return False
        new = messages[known:]
        if with_encrypted and any(self._items.holds_compaction(message) for message in new):
            return False
        for message in new:
            piece = self._render(message, kept.ids.assign(message), with_encrypted)
            if piece.problems or any(kept.order.add(mark) for mark in piece.marks):
                return False
            kept.pieces.append(piece)
            kept.sent.append(message)
        kept.messages = messages
        return not kept.order.finish()

    def _render_all(self, messages: list[Message], with_encrypted: bool, old: _Kept | None) -> _Kept:
        sent = self._select(messages, with_encrypted)
        # The kept messages are alive, so their ids cannot have been reused.
        usable = old is not None and old.with_encrypted == with_encrypted
        reusable = {id(m): p for m, p in zip(old.sent, old.pieces, strict=True)} if old is not None and usable else {}
        done, problems = self._fold(messages, sent, with_encrypted, reusable)
        if not problems:
            return done
        for problem in problems:
            _log.warning("request repaired before sending: %s", problem)
        done, problems = self._fold(messages, mend_pairs(sent, is_empty), with_encrypted, {})
        if problems:
            raise self._refusal(problems, done.pieces)
        done.mended = True
        return done

    def _fold(
        self, messages: list[Message], sent: list[Message], with_encrypted: bool, reusable: dict[int, _Piece]
    ) -> tuple[_Kept, list[str]]:
        ids, order = CallIds(), OrderCheck()
        pieces: list[_Piece] = []
        problems: list[str] = []
        for message in sent:
            call_ids = ids.assign(message)
            piece = reusable.get(id(message))
            if piece is None or piece.call_ids != call_ids:
                piece = self._render(message, call_ids, with_encrypted)
            wrong = [*piece.problems, *(problem for mark in piece.marks for problem in order.add(mark))]
            problems += [f"message {message.id} {problem}" for problem in wrong]
            pieces.append(piece)
        if any(piece.marks for piece in pieces):
            problems += order.finish()
        return _Kept(messages, with_encrypted, sent, pieces, ids, order), problems

    def _render(self, message: Message, call_ids: tuple[str, ...], with_encrypted: bool) -> _Piece:
        items = self._items.render(message, call_ids, with_encrypted=with_encrypted)
        problems = tuple(problem for item in items for problem in check_item(item))
        return _Piece(call_ids, encode(items)[1:-1] if items else b"", tuple(map(mark_of, items)), problems)

    def _select(self, messages: list[Message], with_encrypted: bool) -> list[Message]:
        """Return the messages to send as items: without the system prompt, starting at the newest compaction (R-539).

        Protected messages before the compaction are sent after it, so that their text is kept.
        """
        rest = messages[1:] if messages and messages[0].role == "system" else messages
        holds = self._items.holds_compaction
        places = [k for k, message in enumerate(rest) if holds(message)] if with_encrypted else []
        if not places:
            return list(rest)
        newest = places[-1]
        before = rest[:newest]
        protected = frozenset(k for k, message in enumerate(before) if is_protected(message)) - frozenset(places)
        kept = sorted(with_partners(before, protected))
        return [rest[newest], *(before[k] for k in kept), *rest[newest + 1 :]]

    def _refusal(self, problems: list[str], pieces: list[_Piece]) -> RequestRejected | ContextOverflow:
        """Return the error for a request that must not be sent, in a class from which the session can recover."""
        told = f"{self._name}: not sent; the provider would refuse it: {problems[0]}"
        if any("fit into a request" in problem or " MB" in problem for problem in problems):
            return ContextOverflow(f"{told}.")
        if any(mark.kind in ("encrypted", "reasoning", "compaction") for piece in pieces for mark in piece.marks):
            return EncryptedRefused(f"{told}.")
        return RequestRejected(f"{told}.")


def _speaker(piece: _Piece) -> Speaker:
    kinds = [mark.kind for mark in piece.marks]
    if kinds == ["input"]:
        return "user" if piece.body.startswith(_USER.head) else "system"
    if kinds == ["output"]:
        return "tool"
    return "calls" if "call" in kinds else "assistant"
