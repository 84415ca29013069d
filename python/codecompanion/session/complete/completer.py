"""Suggests code at the cursor: one request per editor at a time; a newer request cancels the older one (R-256 … R-261).

Any failure results in an answer without suggestions and with a one-sentence reason. This module and its imports are
loaded only at the first request.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import msgspec

from codecompanion.adapters.completion.endpoints import CodeReply, CodeRequest
from codecompanion.completion.families import Family, family_named, family_of, family_with, stops_of, without_tokens
from codecompanion.completion.forms import as_comments, build_project_prompt, line_cost
from codecompanion.completion.imports import imports_outside
from codecompanion.completion.prompt_budgets import total_chars
from codecompanion.completion.prompt_plan import plan_prompt
from codecompanion.completion.usable_reply import Place, usable
from codecompanion.completion.window import PREFIX_CHARS, SUFFIX_CHARS, Window
from codecompanion.errors import CodeCompanionError, ContextOverflow, NotServed
from codecompanion.session.complete.completion_source import CompletionSource, make_source
from codecompanion.session.complete.project_prompt import Place as ProjectPlace
from codecompanion.session.complete.project_prompt import Shown, SteadyKnowledge
from codecompanion.session.complete.project_view import ProjectReader, RecentRange
from codecompanion.session.complete.projects import Projects
from codecompanion.session.complete.suggestion_cache import SuggestionCache
from codecompanion.session.services import Services
from codecompanion.settings_sections import CompletionSettings
from codecompanion.wire.requests import CompleteCode
from codecompanion.workspace.secret_files import is_secret
from codecompanion.workspace.secret_text import hide_secrets

_log = logging.getLogger(__name__)
MAX_COUNT = 5
MAX_HEAD_CHARS = 20_000
_STEP = 0.3
"""Increase of the temperature for each further suggestion, so that it differs."""
_MAX_TEMPERATURE = 1.0
_FITS = 0.9
"""The share of the server's limit used for the prompt; the reply has to fit too."""
_LATE_STOPS = ("\n\n\n",)


class Suggestion(msgspec.Struct, frozen=True):
    """A text that can be inserted at the cursor."""

    text: str


class Suggestions(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a request. Without `items`, `why` is the reason; "" = no suggestion, or the request was cancelled.

    `failed`: the server could not be reached or refused the request. `stopped`: its model does not support
    fill-in-the-middle, so the server is asked again only on a manual request. `model`: the model that answers, or the
    configured model until that is known. `off`: this file never gets suggestions. `address`: the endpoint that would be
    asked, if no suggestion was requested.
    """

    items: tuple[Suggestion, ...] = ()
    model: str = ""
    ms: int = 0
    cached: bool = False
    why: str = ""
    failed: bool = False
    off: bool = False
    stopped: bool = False
    address: str = ""


class FindsProjects(Protocol):
    """The part of `projects.Projects` that a completer uses."""

    async def find(self, path: str, cwd: str) -> tuple[ProjectReader, str] | None:
        """Return the project of a file and the file's path in it, or None if there is no project."""
        ...

    async def aclose(self) -> None:
        """Stop background work."""
        ...


class Completer:
    """Completes code for one editor. `clock` returns seconds, `report_bug` logs a bug and returns a sentence.

    `context_window` is the model's context window in tokens, 0 = unknown.
    """

    def __init__(
        self,
        settings: CompletionSettings,
        make: Callable[[], CompletionSource],
        *,
        projects: FindsProjects,
        clock: Callable[[], float],
        report_bug: Callable[[BaseException], str],
        context_window: int = 0,
    ) -> None:
        self._settings, self._make, self._projects = settings, make, projects
        self._clock, self._report_bug = clock, report_bug
        self._source: CompletionSource | None = None
        self._cache = SuggestionCache()
        self._running: tuple[int, asyncio.Task[Suggestions]] | None = None
        self._total = total_chars(context_window, settings.max_tokens)
        self._knowledge = SteadyKnowledge()
        self._is_shrunk = False
        self._stopped = self._model = ""
        """Why the server is no longer asked, and the name of the model as reported by the server."""

    async def complete(self, request: CompleteCode) -> Suggestions:
        """Return suggestions; raise only if this call itself is cancelled."""
        began = self._clock()
        task = asyncio.ensure_future(self._find(request))
        if request.count:
            self.cancel()
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
            is_stopped = isinstance(error, NotServed)
            self._stopped = str(error) if is_stopped else ""
            found = Suggestions(why=str(error), failed=True, stopped=is_stopped)
        else:
            found = Suggestions(why=self._report_bug(error), failed=True)
        ms = round((self._clock() - began) * 1000)
        return msgspec.structs.replace(found, model=self._model or self._settings.model, ms=ms)

    def cancel(self, request_id: int = 0) -> None:
        """Cancel the request with that id (0 = the running one); its connection is closed."""
        if self._running is not None and request_id in (0, self._running[0]):
            self._running[1].cancel()
            self._running = None

    async def aclose(self) -> None:
        """Cancel the running request, and close the connections."""
        self.cancel()
        await self._projects.aclose()
        source, self._source = self._source, None
        if source is not None:
            await source.aclose()

    async def _find(self, request: CompleteCode) -> Suggestions:
        project = await self._projects.find(request.path, request.cwd)
        path = project[1] if project else _last_parts(request.path)
        if is_secret(path):
            return Suggestions(why=f"{path.rpartition('/')[2]} may contain secrets", off=True)
        source = self._source = self._source or self._make()
        settings = self._settings
        family = family_wanted(settings)
        if self._stopped and not request.manual:
            return Suggestions(why=self._stopped, failed=True, stopped=True, address=source.address)
        if not request.count:
            return Suggestions(address=source.address)
        name = project[0].root.name if project else ""
        project = project if settings.project else None

        before, after, head = (hide_secrets(text, path) for text in (request.before, request.after, request.head))
        request = msgspec.structs.replace(request, before=before, after=after, head=head)

        async def ask_for() -> CodeRequest:
            shown = await self._show(request, project, source, family)
            return self._ask_for(shown, source, family, path, name)

        wanted = await ask_for()
        known = self._cache.get(settings.model, _key(wanted))
        count = max(1, min(request.count, MAX_COUNT))
        if known is not None and (len(known) >= count or not (request.manual or request.count > 1)):
            return Suggestions(items=tuple(map(Suggestion, known[:count])), cached=True)
        texts = list(known or ())
        for attempt in range(len(texts), count):
            try:
                reply = await source.ask(self._warmer(wanted, attempt), path, settings.timeout_s)
            except ContextOverflow as error:
                if not self._shrink(error):
                    raise
                wanted = await ask_for()
                reply = await source.ask(self._warmer(wanted, attempt), path, settings.timeout_s)
            self._stopped, self._model = "", reply.model
            text = self._usable(reply, Place(request.before, request.after), family, wanted.stop)
            if text and text not in texts:
                texts.append(text)
            self._cache.put(settings.model, _key(wanted), tuple(texts))
        return Suggestions(items=tuple(map(Suggestion, texts)))

    def _warmer(self, wanted: CodeRequest, attempt: int) -> CodeRequest:
        """Return the request for another suggestion, with a higher temperature so that it differs from earlier ones."""
        own = self._settings.temperature
        return msgspec.structs.replace(wanted, temperature=min(own + _STEP * attempt, max(_MAX_TEMPERATURE, own)))

    def _shrink(self, error: ContextOverflow) -> bool:
        """Reduce further prompts to the server's reported limit, or by a third if it is unknown.

        Return False if already done.
        """
        if self._is_shrunk:
            return False
        share = (
            _FITS * error.limit_tokens / error.prompt_tokens if error.limit_tokens and error.prompt_tokens else 2 / 3
        )
        self._is_shrunk, self._total = True, int(self._total * min(share, 2 / 3))
        self._knowledge = SteadyKnowledge()
        _log.info("prompts are limited to %d characters from now on: %s", self._total, error)
        return True

    def _usable(self, reply: CodeReply, place: Place, family: Family, stop: tuple[str, ...]) -> str:
        if self._source is not None and self._source.is_chat:
            family, stop = Family(name="chat"), ()
        return usable(reply.text, place, family, stop, multi_line=self._settings.multi_line, is_cut=reply.is_cut)

    async def _show(
        self, request: CompleteCode, project: tuple[ProjectReader, str] | None, source: CompletionSource, family: Family
    ) -> Shown:
        """Return the text shown to the model: the document's window, or a smaller one plus knowledge of the project."""
        if project is not None:
            try:
                return await self._show_project(request, *project, source, family)
            except Exception:
                _log.exception("completion continues without the project")
        before, after, head = request.before, request.after, request.head[:MAX_HEAD_CHARS]
        if self._total < PREFIX_CHARS + SUFFIX_CHARS:
            plan = plan_prompt(request.path, before, after, self._total, head=head, least=0)
            return Shown(plan.imports, plan.window.prefix, plan.window.suffix)
        prefix, suffix = before[-PREFIX_CHARS:], after[:SUFFIX_CHARS]
        window = Window(head + before[:-PREFIX_CHARS], prefix, suffix, "")
        return Shown(imports_outside(request.path, window), prefix, suffix)

    async def _show_project(
        self, request: CompleteCode, reader: ProjectReader, path: str, source: CompletionSource, family: Family
    ) -> Shown:
        recent = tuple(
            RecentRange(found, one.start, one.end)
            for one in request.recent
            if (found := _inside(one.path, reader.root)) is not None
        )
        place = ProjectPlace(
            path=path,
            before=request.before,
            after=request.after,
            head=request.head[:MAX_HEAD_CHARS],
            line=request.line,
            recent=recent,
        )
        cost = 0 if source.takes_extra else line_cost(family, path)
        return await asyncio.to_thread(self._knowledge.show, reader, place, self._total, cost)

    def _ask_for(self, shown: Shown, source: CompletionSource, family: Family, path: str, project: str) -> CodeRequest:
        """Return the request for the endpoint: one prompt with the family's tokens, or separate strings."""
        settings = self._settings
        has_tokens = family.fills_in and source.reads_tokens
        suffix, extra = "", tuple[tuple[str, str], ...]()
        if source.takes_suffix and not has_tokens:
            stop = stops_of(family) if family.fills_in else _LATE_STOPS
            if source.takes_extra:
                extra, comments = tuple((one.path, one.text) for one in shown.known), ""
            else:
                comments = as_comments(shown.known, path, family)
            prompt = comments + without_tokens(shown.imports + shown.prefix, family)
            suffix = without_tokens(shown.suffix, family)
        else:
            made = build_project_prompt(
                family, shown.imports, shown.prefix, shown.suffix, path=path, project=project, known=shown.known
            )
            prompt, stop = made.prompt, made.stop
        return CodeRequest(
            model=settings.model,
            prompt=prompt,
            suffix=suffix,
            has_tokens=has_tokens,
            extra=extra,
            stop=stop if settings.multi_line else (*stop, "\n"),
            max_tokens=settings.max_tokens,
            temperature=settings.temperature,
        )


def make_completer(services: Services) -> Completer:
    """Return a completer that uses a host's services."""
    settings = services.settings
    known = settings.models.get(settings.completion.model)
    return Completer(
        settings.completion,
        lambda: make_source(settings.completion, services.adapters, settings.chat.adapter),
        projects=Projects(services, services.clock),
        clock=services.clock,
        report_bug=services.report_bug,
        context_window=known.context_window if known else 0,
    )


def family_wanted(settings: CompletionSettings) -> Family:
    """Return the model family, from the settings or the model's name; raises `ConfigError` if it is unknown."""
    if settings.tokens:
        return family_with(settings.tokens)
    return family_named(settings.family) if settings.family else family_of(settings.model)


def _inside(path: str, root: Path) -> str | None:
    """Return the path relative to the root, or None if it is outside, judged only by name.

    The reader checks the real path.
    """
    if not os.path.isabs(path):  # noqa: PTH117 - for each of them, at every request
        return path
    prefix = f"{root}/"
    return path.removeprefix(prefix) if path.startswith(prefix) else None


def _last_parts(path: str) -> str:
    """Return the name of a file outside any project: its folder and file name."""
    return "/".join(path.replace("\\", "/").split("/")[-2:])


def _key(request: CodeRequest) -> str:
    return "\0".join((request.prompt, request.suffix, *(text for _, text in request.extra)))
