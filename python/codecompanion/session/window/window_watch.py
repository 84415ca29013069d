"""Determines the context window of a chat's model, and issues the notices about it (K4, R-506, R-109).

Limits are resolved again whenever the endpoint reports something new, or a refusal names the true size.
"""

from __future__ import annotations

import asyncio
import logging

import msgspec

from codecompanion.adapters.server_facts import NO_FACTS
from codecompanion.context.thresholds import lacks_budget
from codecompanion.counting.model_windows import ModelLimits
from codecompanion.errors import AdapterError
from codecompanion.session.window.chat_model import ChatModel
from codecompanion.wire.events import Severity

_log = logging.getLogger(__name__)
SHORT_WAIT_S = 1.5
"""Maximum time in seconds that the first request waits for the endpoint's report; near a limit it waits for as long as
it takes.
"""


class WindowWatch:
    """Keeps `ChatModel.limits` up to date."""

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat
        self._told_of_endpoint: ModelLimits | None = None
        self._facts = NO_FACTS
        self._named: dict[tuple[str, str], tuple[int, ModelLimits | None]] = {}
        self._asked: set[tuple[str, str]] = set()
        self._told_no_room: set[tuple[str, str]] = set()
        self._told_no_tools: set[str] = set()

    def resolve(self) -> None:
        """Resolve the current limits; a smaller window named in a refusal is kept.

        A later report by the server overrides that window, because the server may have been restarted with another
        window.
        """
        chat, known = self._chat, self._chat.named
        self._told_of_endpoint, self._facts = chat.adapter().limits(chat.model), chat.adapter().facts(chat.model)
        limits = chat.services.limits(*known, chat.policy.default_window)
        named, told = self._named.get(known, (limits.context_window, None))
        is_newer = self._facts.window > 0 and told != self._told_of_endpoint
        if named < limits.context_window and not is_newer:
            limits = msgspec.structs.replace(limits, context_window=named, source="endpoint")
        self._chat.limits = limits
        chat.meter.window = 0 if limits.source == "default" else limits.context_window
        chat.meter.assumed_window = limits.context_window
        chat.offer_tools()

    def refresh(self) -> bool:
        """Apply the endpoint's latest report about the model; return whether it changed anything."""
        chat = self._chat
        old = chat.limits, chat.specs
        self.resolve()
        return old != (chat.limits, chat.specs)

    def take_in(self) -> None:
        """Apply the endpoint's reports about the model; some endpoints know its limits only once it is loaded."""
        chat = self._chat
        told = chat.adapter().limits(chat.model), chat.adapter().facts(chat.model)
        if told != (self._told_of_endpoint, self._facts):
            self.resolve()

    async def know_server(self) -> None:
        """Ask the model's server now and apply its report; an earlier report may be out of date (`ServerFacts`)."""
        await self._chat.adapter().know_server(self._chat.model)
        self.take_in()

    @property
    def model_that_runs(self) -> str:
        """Return the model that actually answers, or "" if it is the chat's own model or one that the user configured.

        A server with a single model ignores the name in a request; a server with several needs it.
        """
        chat, services = self._chat, self._chat.services
        entry = services.adapters.settings(chat.adapter_name)
        if chat.model in (entry.model, *entry.models, *services.settings.models) and chat.model:
            return ""
        runs = self._facts.model or ("" if chat.model else chat.adapter().default_model)
        return runs if runs != chat.model else ""

    def tell_no_tools(self) -> None:
        """Report once for each reason that tools are not sent because the model would not see them."""
        chat, why = self._chat, self._chat.lacks_tools
        if why in self._told_no_tools or not why or not chat.wants_tools:
            return
        self._told_no_tools.add(why)
        chat.notice(Severity.INFO, f"No tools are sent: {why}.")

    def learn(self, tokens: int) -> None:
        """Use the context window that the provider named, and tell the user."""
        old, told = self._chat.limits, self._chat.adapter().limits(self._chat.model)
        self._named[self._chat.named] = tokens, told
        self.resolve()
        # Do not advise configuring a window that the server reports: it may differ after the next start.
        from codecompanion.session.window.unknown_window import window_setting  # rarely needed

        advice = "" if self._facts.window else f" In opts or setup(): {window_setting(*self._chat.named, tokens)}"
        self._chat.notice(
            Severity.WARN, f"The window of {self._name} is {tokens:,} tokens, not {old.context_window:,}.{advice}"
        )

    async def confirm_window(self) -> None:
        """Ask the endpoint for an unknown window before the first request; warn if a guess decides (R-506, lesson 30).

        Right after a restart the endpoint may not have reported yet; if a guess would decide anything, wait for the
        report. A server that loads a model with the first request may report the window only then.
        """
        self.take_in()
        if not self.is_a_guess:
            return
        decides = self._reaches_a_limit()
        if self._chat.named not in self._asked:
            self._asked.add(self._chat.named)
            try:
                # warm_up waits only a few seconds for an answer, and the request needs its other results anyway.
                async with asyncio.timeout(None if decides else SHORT_WAIT_S):
                    await self._chat.adapter().warm_up()
            except (AdapterError, TimeoutError) as error:
                _log.info("the endpoint did not report its windows: %s", error or "no answer yet")
            self.take_in()
        if decides:
            self._tell_guess()

    @property
    def is_a_guess(self) -> bool:
        """Return whether the size of the window is unknown."""
        return self._chat.limits.source == "default"

    @property
    def guess(self) -> str:
        """Return two sentences on the assumed window and the option that sets it, or "" if the window size is known."""
        if not self.is_a_guess:
            return ""
        from codecompanion.session.window.unknown_window import unknown_window  # rarely needed

        return unknown_window(self._chat.services, *self._chat.named, self._chat.limits.context_window)

    def _tell_guess(self) -> None:
        """Warn once per model and host that a guess decides something (R-506, lessons 30, 43)."""
        told, known = self._chat.services.told_guesses, self._chat.named
        if self.is_a_guess and known not in told:
            told.add(known)
            self._chat.notice(Severity.WARN, self.guess)

    def tell_no_room(self) -> None:
        """Warn once per model that its window only has room for the system prompt and a reply (R-109)."""
        known, policy, room = self._chat.named, self._chat.policy, self._chat.room
        targets = [stage.target for stage in policy.stages if stage.target is not None]
        if known in self._told_no_room or not policy.enabled or not lacks_budget(room, *targets):
            return
        self._told_no_room.add(known)
        self._chat.notice(
            Severity.WARN,
            f"System prompt and tools ({room.fixed:,} tokens) and a reply fill the window of {room.window:,} tokens, so"
            " compactions target half of it. Offer fewer tools (/tools), or use a model with a larger window.",
        )

    def _reaches_a_limit(self) -> bool:
        chat = self._chat
        ends = (*chat.thresholds(), self._chat.limits.prompt_tokens)
        return chat.measured().tokens >= min((at for at in ends if at > chat.room.fixed), default=0)

    @property
    def _name(self) -> str:
        return self._chat.model or self._chat.adapter_name
