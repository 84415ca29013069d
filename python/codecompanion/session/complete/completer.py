"""Suggests code at the cursor: one request of an editor at a time, a newer one ends the older (R-256 … R-261).

Any failure is an answer without a suggestion and with one sentence. Nothing here is imported before the first request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from codecompanion.adapters.completion.endpoints import CodeReply, CodeRequest
from codecompanion.completion.families import Family, family_named, family_of, stops_of, without_tokens
from codecompanion.completion.imports import imports_outside
from codecompanion.completion.prompt import build_prompt
from codecompanion.completion.reply import Place, usable
from codecompanion.completion.window import PREFIX_CHARS, SUFFIX_CHARS, Window
from codecompanion.errors import CodeCompanionError
from codecompanion.session.complete.asking import Asked, make_asked
from codecompanion.session.complete.cache import SuggestionCache
from codecompanion.session.services import Services
from codecompanion.settings import CompletionSettings
from codecompanion.wire.requests import CompleteCode
from codecompanion.workspace.secret_files import is_secret

_log = logging.getLogger(__name__)
MAX_COUNT = 5
MAX_HEAD_CHARS = 20_000
_STEP = 0.3
"""How much warmer each further suggestion is asked for, so that it differs."""
_MAX_TEMPERATURE = 1.0
_LATE_STOPS = ("\n\n\n",)


class Suggestion(msgspec.Struct, frozen=True):
    """One text that can be inserted at the cursor."""

    text: str


class Suggestions(msgspec.Struct, frozen=True, kw_only=True):
    """The answer. Without `items`, `why` says why, "" = there is nothing to suggest, or nobody wants to know any more.

    `failed`: the server could not be asked, or refused. `off`: this file never gets any.
    """

    items: tuple[Suggestion, ...] = ()
    model: str = ""
    ms: int = 0
    cached: bool = False
    why: str = ""
    failed: bool = False
    off: bool = False


class Completer:
    """Completion of one editor. `clock` gives seconds, `report_bug` logs a bug of ours and returns a sentence."""

    def __init__(
        self,
        settings: CompletionSettings,
        make: Callable[[], Asked],
        *,
        is_secret: Callable[[str], bool],
        clock: Callable[[], float],
        report_bug: Callable[[BaseException], str],
    ) -> None:
        self._settings, self._make = settings, make
        self._is_secret, self._clock, self._report_bug = is_secret, clock, report_bug
        self._asked: Asked | None = None
        self._cache = SuggestionCache()
        self._running: tuple[int, asyncio.Task[Suggestions]] | None = None

    async def complete(self, request: CompleteCode) -> Suggestions:
        """Return suggestions; never raises but when it is cancelled itself."""
        began = self._clock()
        self.cancel()
        task = asyncio.ensure_future(self._find(request))
        self._running = (request.id, task)
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()
            raise
        if self._running is not None and self._running[1] is task:
            self._running = None
        if task.cancelled():
            return Suggestions(model=self._settings.model)
        error = task.exception()
        if error is None:
            found = task.result()
        elif isinstance(error, CodeCompanionError):
            _log.info("no completion: %s", error)
            found = Suggestions(why=str(error), failed=True)
        else:
            found = Suggestions(why=self._report_bug(error), failed=True)
        ms = round((self._clock() - began) * 1000)
        return msgspec.structs.replace(found, model=self._settings.model, ms=ms)

    def cancel(self, request_id: int = 0) -> None:
        """Stop the request of that id (0 = whichever runs); its connection is closed."""
        if self._running is not None and request_id in (0, self._running[0]):
            self._running[1].cancel()
            self._running = None

    async def aclose(self) -> None:
        """Stop, and close the connections."""
        self.cancel()
        asked, self._asked = self._asked, None
        if asked is not None:
            await asked.aclose()

    async def _find(self, request: CompleteCode) -> Suggestions:
        if self._is_secret(request.path):
            return Suggestions(why=f"{request.path.rpartition('/')[2]} may hold secrets", off=True)
        if self._asked is None:
            self._asked = self._make()
        settings = self._settings
        family = family_named(settings.family) if settings.family else family_of(settings.model)
        wanted = self._ask_for(request, self._asked, family)
        known = self._cache.get(settings.model, _key(wanted))
        count = max(1, min(request.count, MAX_COUNT))
        if known is not None and (len(known) >= count or not (request.manual or request.count > 1)):
            return Suggestions(items=tuple(map(Suggestion, known[:count])), cached=True)
        place = Place(request.before, request.after)
        texts = list(known or ())
        for attempt in range(len(texts), count):
            warmer = min(settings.temperature + _STEP * attempt, max(_MAX_TEMPERATURE, settings.temperature))
            asked = msgspec.structs.replace(wanted, temperature=warmer)
            reply = await self._asked.ask(asked, request.path, settings.timeout_s)
            text = self._usable(reply, place, family, asked.stop)
            if text and text not in texts:
                texts.append(text)
            self._cache.put(settings.model, _key(wanted), tuple(texts))
        return Suggestions(items=tuple(map(Suggestion, texts)))

    def _usable(self, reply: CodeReply, place: Place, family: Family, stop: tuple[str, ...]) -> str:
        if self._asked is not None and self._asked.is_chat:
            family, stop = Family(name="chat"), ()
        return usable(reply.text, place, family, stop, multi_line=self._settings.multi_line, is_cut=reply.is_cut)

    def _ask_for(self, request: CompleteCode, asked: Asked, family: Family) -> CodeRequest:
        """Return what the endpoint is asked: one prompt with the family's tokens, or the texts apart."""
        settings = self._settings
        prefix, suffix = request.before[-PREFIX_CHARS:], request.after[:SUFFIX_CHARS]
        window = Window(request.head[:MAX_HEAD_CHARS] + request.before[:-PREFIX_CHARS], prefix, suffix, "")
        imports = imports_outside(request.path, window)
        has_tokens = family.fills_in and asked.reads_tokens
        if asked.takes_suffix and not has_tokens:
            stop = stops_of(family) if family.fills_in else _LATE_STOPS
            prompt, suffix = (without_tokens(text, family) for text in (imports + prefix, suffix))
        else:
            made = build_prompt(family, imports, prefix, suffix)
            prompt, suffix, stop = made.prompt, "", made.stop
        return CodeRequest(
            model=settings.model,
            prompt=prompt,
            suffix=suffix,
            has_tokens=has_tokens,
            stop=stop if settings.multi_line else (*stop, "\n"),
            max_tokens=settings.max_tokens,
            temperature=settings.temperature,
        )


def make_completer(services: Services) -> Completer:
    """Return the completer of a host."""
    settings = services.settings
    return Completer(
        settings.completion,
        lambda: make_asked(settings.completion, services.adapters, settings.chat.adapter),
        is_secret=is_secret,
        clock=services.clock,
        report_bug=services.report_bug,
    )


def _key(request: CodeRequest) -> str:
    return "\0".join((request.prompt, request.suffix, *(text for _, text in request.extra)))
