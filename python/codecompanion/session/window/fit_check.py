"""Checks, by the best estimate, whether requests fit the context window, and refuses those that do not (R-524).

The best estimate combines reported usage with our own count, scaled by the ratio of the model's family until usage is
reported. If it is inconclusive, a provider that counts tokens is asked before a request is refused; if the provider
cannot count, or does not answer in time, the estimate decides.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from functools import partial, reduce

from codecompanion.adapters.transport.time_limits import is_loopback
from codecompanion.context.shape_request import Shaped
from codecompanion.context.work import Messages
from codecompanion.counting.calibration import wants_provider_count
from codecompanion.errors import AdapterError, ContextOverflow, NetworkFailed, ServerLoading
from codecompanion.model.messages import GATHERED_TAG, Message, is_protected, is_question_context
from codecompanion.model.view import View, append
from codecompanion.session.accounts.local_models import runs_on_own_server
from codecompanion.session.compaction.dry_run import dry_run
from codecompanion.session.window.chat_model import ChatModel
from codecompanion.session.window.native_side import NativeSide
from codecompanion.session.window.pause import Pause
from codecompanion.session.window.plans import Plans
from codecompanion.session.window.request_shaper import RequestShaper
from codecompanion.session.window.too_large import Refusal, too_large

_log = logging.getLogger(__name__)
COUNT_LIMIT_S = 5.0
"""Timeout for a provider's token count, in seconds; after that the estimate decides."""
SUMMARY_TOKENS = 2_000
"""Maximum number of tokens in a summary made without a model; at most an eighth of the context window."""
NEXT_MESSAGE_TOKENS = 500
"""Tokens reserved for the user's next message when an idle chat is checked; messages are seldom longer."""


class Fitting:
    """Checks one chat's requests against its size limits."""

    def __init__(self, chat: ChatModel, shaper: RequestShaper, native: NativeSide, pause: Pause, plans: Plans) -> None:
        self._chat, self._shaper, self._native, self._pause, self._plans = chat, shaper, native, pause, plans
        self._late: set[tuple[str, str]] = set()
        self._away: set[tuple[str, str]] = set()
        self._last: tuple[tuple[object, ...], int] | None = None
        self._counted_idle: tuple[View, tuple[str, str]] | None = None

    @property
    def room(self) -> int:
        """Return the maximum number of tokens in a request, excluding the reply reserve.

        0 = the window is only assumed (R-506).

        If context management is off or the provider compacts, this is the whole window; the reply gets the space that
        the request leaves free.
        """
        chat = self._chat
        limits = chat.limits
        if limits.source == "default":
            return 0
        is_ours = chat.policy.enabled and not self._native.compact_at
        return limits.prompt_tokens if is_ours else limits.context_window

    @property
    def fits(self) -> bool:
        """Return whether the next request fits according to the best estimate.

        Always true if the window is only assumed.
        """
        chat = self._chat
        return not self.room or self._shaper.measure(chat.log.view.messages).tokens <= self.room

    async def must_fit(self) -> None:
        """Check that the request fits the context window after all attempts to make room.

        Raises:
            ContextOverflow: the request is too large; the message names the largest part and the remedy.
        """
        chat, shaped = self._chat, self._shaper.current()
        known, view = chat.named, chat.log.view
        size = await self.excess(shaped)
        if size:
            raise ContextOverflow(too_large(chat, view.messages, size, self.room))
        # A count that corrects the estimate also leaves more room for the reply.
        if self.room < shaped.measure.tokens and shaped.messages == view.messages and known == chat.named:
            chat.meter.take_provider_count(await self._ask(view.messages), view)

    async def excess(self, shaped: Shaped, beside: int = 0) -> int:
        """Return the size in tokens of a request that does not fit according to the best count, or 0 if it fits.

        `beside`: tokens that will be added to the request.
        """
        room = self.room - beside
        if not self.room or shaped.measure.tokens <= room:
            return 0
        # A provider's report can be wrong, so a request is refused only if the estimate agrees.
        estimate = self._chat.meter.by_estimate(shaped.messages)
        size = min(shaped.measure.tokens, estimate.tokens)
        if size > room:
            size = await self._counted(shaped.messages, estimate.lower, room) or size
        return size + beside if size > room else 0

    async def refuse(self, text: str) -> Refusal | None:
        """Return why a message cannot be sent even after compaction, or None. Called before the message is logged.

        Checking a short message in a chat with room is cheap, because hardly any text has two tokens per character.
        """
        chat, room = self._chat, self.room
        if not room:
            return None
        chat.offer_tools()
        if chat.measured().tokens + 2 * len(text) <= room:
            return None
        message = Message(id="new", role="user", content=text, cycle=chat.log.view.cycle + 1)
        return await self.impossible(
            append(chat.log.view, chat.meter.counted(message)), is_close=len(text) >= room // 2
        )

    def room_for_code(self, text: str, beside: int = 0) -> int:
        """Return how many tokens of gathered code may be sent with a message: half of the free room, 0 = none.

        The other half is for the model's own lookups. `beside`: token count of the message's other attachments.
        """
        return max(0, self._free(text) - beside) // 2

    def room_for_mentioned(self, text: str) -> int:
        """Return how many tokens of mentioned content may be sent with a message: three quarters of the free room.

        The user requested this content, so it gets more room than gathered code; the rest is left for the model's work.
        """
        return self._free(text) * 3 // 4

    def _free(self, text: str) -> int:
        """Return the number of tokens that remain free with this message.

        Messages that a compaction would remove count as free if automatic compaction is possible.
        """
        chat = self._chat
        cycle = chat.log.view.cycle + 1
        message = chat.meter.counted(Message(id="new", role="user", content=text, cycle=cycle))
        messages = (*chat.log.view.messages, message)
        if chat.compacts_automatically and not self._pause.is_on:
            messages = _staying(messages)
        return max(0, (self.room or chat.limits.prompt_tokens) - self._shaper.of(messages).measure.tokens)

    def still_sent(self, ids: Collection[str], text: str, more_tokens: int) -> tuple[Message, ...]:
        """Return the messages among `ids` that the next request contains unchanged, oldest first.

        The next request contains `text`, preceded by `more_tokens` tokens; messages that would be cleared, summarised
        or shaped for it are left out.
        """
        view = self._chat.log.view
        whole = {m.id: m for m in view.messages if m.id in ids and not (m.edited or m.compacted or m.blob)}
        if not whole:
            return ()
        cycle = view.cycle + 1
        code = Message(id="code", role="user", tag=GATHERED_TAG, content=" ", cycle=cycle, tokens=more_tokens)
        question = self._chat.meter.counted(Message(id="new", role="user", content=text, cycle=cycle))
        coming = append(append(view, code), question) if more_tokens else append(view, question)
        prepared = dry_run(self._plans.request(view=coming))
        sent = list(self._shaper.of(prepared.messages).messages)
        by_provider = max((at for at, m in enumerate(sent) if m.compaction is not None), default=-1)
        return tuple(m for m in sent[by_provider + 1 :] if m.id in whole and m.content == whole[m.id].content)

    async def impossible(self, view: View, *, is_close: bool = False) -> Refusal | None:
        """Return why this view's request cannot be sent even after removing all it can, or None if it might fit.

        Nothing is compacted for a request that can never fit (R-524). First only the messages that no compaction
        removes are measured; if they leave less room than a summary may take (or if `is_close`), every step that makes
        room without a model is simulated, including paused stages.
        """
        chat, room = self._chat, self.room
        if not room or self._shaper.measure(view.messages).tokens <= room:
            return None
        left = _staying(view.messages)
        summary = min(SUMMARY_TOKENS, chat.limits.context_window // 8)
        if not is_close and self._shaper.of(left).measure.tokens + summary <= room:
            return None
        if not self._native.compact_at:
            left = dry_run(self._plans.request(view=view, anyway=True)).messages
        beside = chat.recall_tokens if left != view.messages else 0
        size = await self.excess(self._shaper.of(left), beside)
        return Refusal(too_large(chat, left, size, room, is_compacted=left != view.messages), size) if size else None

    async def _counted(self, messages: Messages, least: int, room: int) -> int:
        """Return the provider's count of these messages, or 0 if it cannot count or the messages cannot fit anyway."""
        return await self._ask(messages) if least <= room else 0

    async def ask_when_close(self) -> None:
        """Ask the provider for the size of the request if the size is only estimated and close to a limit.

        The user's own server was already asked while the chat was idle (`count_idle`).
        """
        chat = self._chat
        if not self._is_close() or runs_on_own_server(chat.services.adapters, *chat.named):
            return
        known = chat.named
        counted = await self._ask(chat.log.view.messages)
        if known == chat.named:
            chat.meter.take_provider_count(counted, chat.log.view)

    def _is_close(self, coming: int = 0) -> bool:
        """Return whether the estimate, with up to `coming` tokens added, is close to a limit."""
        chat = self._chat
        limits = [at for at in (*chat.thresholds(), chat.limits.prompt_tokens) if at]
        return wants_provider_count(chat.meter.count(chat.log.view), limits, coming)

    @property
    def wants_idle_count(self) -> bool:
        """Return whether the endpoint should count the idle chat now, in preparation for the next message."""
        chat = self._chat
        view, known = chat.log.view, chat.named
        done = self._counted_idle
        if not view.messages or (done is not None and done[0] is view and done[1] == known):
            return False
        is_asked = known not in self._late and self._is_close(NEXT_MESSAGE_TOKENS) and self._may_see(view.messages)
        return is_asked and chat.adapter().counts_tokens(chat.model)

    def _may_see(self, messages: Messages) -> bool:
        """Return whether counting sends only text that the endpoint has already received or written.

        New attachments are sent only with a message from the user. A server on this machine may receive everything.
        """
        adapters, (name, model) = self._chat.services.adapters, self._chat.named
        if is_loopback(adapters.settings(name).base_url) and runs_on_own_server(adapters, name, model):
            return True
        sent = self._shaper.sent_contents()
        new = [message for message in messages if sent.get(message.id) != message.content]
        return bool(sent) and (not new or (new == [messages[-1]] and new[0].role == "assistant"))

    async def count_idle(self) -> bool:
        """Let the endpoint count the idle chat, once; return whether it did.

        A minimal message stands in for the next one, because many models refuse a prompt that ends with a reply.
        """
        chat = self._chat
        view, known = chat.log.view, chat.named
        self._counted_idle = view, known
        counted = view
        if view.messages[-1].role == "assistant":
            counted = append(
                view, chat.meter.counted(Message(id="next", role="user", content=".", cycle=view.cycle + 1))
            )
        tokens = await self._ask(counted.messages)
        if not tokens or view is not chat.log.view or known != chat.named:
            return False
        chat.meter.take_provider_count(tokens, counted)
        return True

    async def _ask(self, messages: Messages) -> int:
        """Return the provider's count of a request with these messages, or 0 if it cannot count or is too slow."""
        chat = self._chat
        adapter, known = chat.adapter(), chat.named
        if known in self._late or not adapter.counts_tokens(chat.model):
            return 0
        asked = (*known, chat.system_message, chat.specs, messages)
        if self._last is not None and self._last[0] == asked:
            return self._last[1]
        try:
            async with asyncio.timeout(COUNT_LIMIT_S) as limit:
                on_wait = None if known in self._away else partial(chat.tell_wait, limit, COUNT_LIMIT_S)
                counted = max(0, await adapter.count_tokens(self._native.plain_request(messages), on_wait))
            self._last = asked, counted
            self._away.discard(known)
            return counted
        except (AdapterError, TimeoutError) as error:
            if isinstance(error, NetworkFailed | ServerLoading):
                self._away.add(known)  # waited long enough; the message itself will wait once more
            if isinstance(error, TimeoutError):
                # Later requests should not wait this long again.
                self._late.add(known)
            _log.info("no token count from the provider, using the estimate: %s", error)
            return 0

    async def paused_excess(self, coming: Sequence[Message] = ()) -> int:
        """Return the size of the next request with `coming` if it does not fit and a pause prevents making it fit.

        Uses the best count, after all steps that still run automatically. 0 = the request can be sent, or nothing is
        paused.
        """
        chat = self._chat
        if not self._pause.is_on:
            return 0
        view = reduce(append, coming, chat.log.view)
        if not await self.excess(self._shaper.of(view.messages)):
            return 0
        prepared = dry_run(self._plans.request(view=view))
        return await self.excess(self._shaper.of(prepared.messages))


def _staying(messages: Messages) -> Messages:
    """Return the messages that no compaction removes: protected messages, and messages not answered yet (R-551).

    Attachments are removed before the question they belong to.
    """
    from codecompanion.context.selection.select_window import first_pending  # not needed at startup

    first, newest = first_pending(messages), messages[-1].cycle if messages else None
    waiting = {i for i, m in enumerate(messages) if i >= first and m.cycle == newest and not is_question_context(m)}
    return tuple(message for i, message in enumerate(messages) if is_protected(message) or i in waiting)
