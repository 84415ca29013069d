"""Reads the context windows of a server's models, and all `ServerFacts` if it is on the user's machine or network.

A server that runs models itself (`local_server`) can be restarted with other settings at any time. It is therefore
queried on first use, and on the next use after a lost connection, a refusal, or a minute. On loopback it is queried
after `NEAR_FRESH_S`: an answer takes a few milliseconds, and a client that reconnects by itself does not notice a
restart. Any other endpoint, including such a server at a public address, is queried once for each model, if its entry
says that it can report the window (lesson 30).

A server that does not answer never disturbs the user: its facts stay unknown, and other code handles an unknown window
(R-506). A request waits for an answer on loopback only: at most `CONNECT_WAIT_S` if no earlier fact is still valid,
else `NEAR_WAIT_S`. A server that loads a model with the first request (Ollama, LM Studio) can report its window only
after that: it is queried when a reply begins.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from codecompanion.adapters.base import AdapterSettings
from codecompanion.adapters.model_list import ANY_MODEL
from codecompanion.adapters.server_facts import (
    NO_FACTS,
    RUNNING_PATH,
    ServerFacts,
    Told,
    filled,
    find_facts,
    read_capabilities,
    read_listed,
    read_props,
    tool_refusal,
)
from codecompanion.adapters.speed import NO_SPEED, Speed, Timings, mean_speed
from codecompanion.adapters.transport.time_limits import is_loopback, is_own_server
from codecompanion.errors import AdapterError, NetworkFailed, RequestRejected, StreamCut

if TYPE_CHECKING:
    from codecompanion.adapters.prompt_slots import Loss, PromptSlots

_log = logging.getLogger(__name__)

MAX_WAIT_S = 3.0
CONNECT_WAIT_S = 1.0
FRESH_S, NEAR_FRESH_S, NEAR_WAIT_S = 60.0, 5.0, 0.05
JUST_ASKED_S = 1.0
MAX_MODELS = 50
"""Maximum number of models whose answers are stored per server."""
_LOADING = 503
"""Status code of llama.cpp's responses until its model is loaded."""
_REFUSALS = (400, 404, 422)
_FAILED = 500
"""Status code of llama.cpp's response to a request with tools if it was started without `--jinja`."""
_SHOW_PATH = "/api/show"

Get = Callable[[str], Awaitable[bytes]]
Post = Callable[[str, bytes], Awaitable[bytes]]


class _Answer(msgspec.Struct, frozen=True):
    """The report about one model, and when it was requested."""

    asked_at: float
    told: Told


class ServerReader:
    """The known facts about one server. `get` and `post` send a request to a path of the server and return the body.

    `take_listing` passes a list of models to the wire format; `has_window` returns whether the model's window is known.
    `forget_listing` is called when another server answers at the URL, `on_change` when facts have changed.
    """

    def __init__(
        self,
        settings: AdapterSettings,
        get: Get,
        post: Post,
        *,
        take_model_list: Callable[[bytes], object],
        has_window: Callable[[str], bool],
        forget_model_list: Callable[[], None],
        on_change: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._get, self._post, self._clock = settings, get, post, clock
        self._take_model_list, self._has_window = take_model_list, has_window
        self._forget_model_list, self._on_change = forget_model_list, on_change
        self._is_local = is_own_server(settings) and bool(settings.limits_path)
        self._is_near = is_loopback(settings.base_url)
        self._asks = self._is_local or (bool(settings.limits_path) and not settings.context_window)
        self._answers: dict[str, _Answer] = {}
        self._distrusted_at = self._lost_at = -1.0
        self._asked: set[str] = set()
        self._toolless: dict[str, str] = {}
        self._speeds: dict[str, tuple[float, Speed]] = {}
        self._slots: dict[str, PromptSlots] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    # ---- what is known

    def facts(self, model: str) -> ServerFacts:
        """Return the newest facts that the server has reported about a model."""
        facts = self._known_facts(model)
        why = self._toolless.get(model, "")
        return msgspec.structs.replace(facts, tools=False, refuses_tools=why) if why else facts

    def learn_toolless(self, error: AdapterError, model: str) -> bool:
        """Record the reason if the user's own server refused a request because of its tools; return whether it did."""
        is_refusal = isinstance(error, RequestRejected) and error.status in _REFUSALS
        why = tool_refusal(str(error)) if self._is_local and (is_refusal or error.status == _FAILED) else ""
        if why:
            self._toolless[model] = why
        return bool(why)

    def forget_tool_refusal(self, model: str) -> None:
        """Discard the record that the server refused tools, because the user wants them sent again."""
        self._toolless.pop(model, None)

    def speed(self, model: str) -> Speed:
        """Return the model's speed, measured since the connection was last lost."""
        timed_at, speed = self._speeds.get(model, (-1.0, NO_SPEED))
        return speed if timed_at > self._lost_at else NO_SPEED

    def learn_speed(self, timings: Timings, model: str) -> None:
        """Update the model's speed from the timings of a reply."""
        if not self._is_local:
            return
        speed = mean_speed(self.speed(model), timings.speed)
        self._speeds.pop(model, None)
        for oldest in list(self._speeds)[: max(0, len(self._speeds) - MAX_MODELS + 1)]:
            del self._speeds[oldest]
        self._speeds[model] = self._clock(), speed

    def slots_of(self, model: str) -> PromptSlots:
        """Return the record of the prompts that the model has read most recently."""
        from codecompanion.adapters.prompt_slots import PromptSlots  # not needed at startup

        slots = self._slots.setdefault(model, PromptSlots())
        if len(self._slots) > MAX_MODELS:
            del self._slots[next(iter(self._slots))]
        return slots

    def read_prompt(self, owner: str, model: str) -> None:
        """Record that the server is processing a prompt from this owner."""
        self.slots_of(model).read(owner, self._clock())

    def prompt_loss(self, model: str, owner: str) -> Loss:
        """Return why the owner's newest prompt is no longer cached, or "" if it may still be cached."""
        if model not in self._slots:
            return ""
        facts, lost_at = self._known_facts(model), self._lost_at
        if facts.state:  # the model was not loaded at the last query
            lost_at = max(lost_at, *(answer.asked_at for answer in self._answers.values()))
        return self._slots[model].loss(owner, facts.slots, lost_at)

    def _known_facts(self, model: str) -> ServerFacts:
        newest = max(tuple(self._answers.values()), key=lambda answer: answer.asked_at, default=None)
        own = self._answers.get(model, newest)
        if newest is None or own is None:
            return NO_FACTS
        if own is newest or own.asked_at < self._lost_at:
            return find_facts(newest.told, model)
        return filled(find_facts(newest.told, model), find_facts(own.told, model))

    def note_failure(self, error: AdapterError) -> None:
        """Handle a failed request: after a lost connection or a refusal, another server may be running."""
        self._distrusted_at = self._clock()
        if isinstance(error, NetworkFailed | StreamCut) or error.status == _LOADING:
            self._lost_at = self._distrusted_at
            self._toolless.clear()

    # ---- asking

    async def ask(self, model: str = "") -> None:
        """Query the server unless the last answer is recent; failures are only logged."""
        answer = self._answers.get(model)
        if self._asks and (answer is None or self._clock() - answer.asked_at > JUST_ASKED_S):
            await asyncio.wait([self._asking(model)])

    async def is_awake(self, model: str) -> bool:
        """Query the server; return whether it answers with the model loaded. Only a chat message may load a model."""
        await self.ask(model)
        answer = self._answers.get(model)
        return answer is not None and answer.asked_at > self._lost_at and not self.facts(model).state

    async def refresh_if_stale(self, model: str) -> None:
        """Query the server if its facts may be out of date; wait briefly if it is on this machine."""
        if not self._is_local or self._is_fresh(model):
            return
        task = self._asking(model)
        answer = self._answers.get(model)
        is_worthless = answer is None or answer.asked_at <= self._lost_at
        if self._is_near:
            await asyncio.wait([task], timeout=CONNECT_WAIT_S if is_worthless else NEAR_WAIT_S)

    def reply_began(self, model: str) -> None:
        """Query in the background while a reply arrives, unless this server's context window is known."""
        answer = self._answers.get(model)
        is_old = self._is_local and answer is not None and answer.asked_at <= self._lost_at
        is_known = self._has_window(model) and not is_old
        if not self._asks or is_known or (not self._is_local and model in self._asked):
            return
        self._asked.add(model)
        self._asking(model)

    async def aclose(self) -> None:
        """Cancel running queries."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _is_fresh(self, model: str) -> bool:
        answer = self._answers.get(model)
        limit = NEAR_FRESH_S if self._is_near else FRESH_S
        return answer is not None and answer.asked_at > max(self._distrusted_at, self._clock() - limit)

    def _asking(self, model: str) -> asyncio.Task[None]:
        """Return the task that queries a model; start one if none is running."""
        task = self._tasks.get(model)
        if task is None or task.done():
            self._tasks = {name: one for name, one in self._tasks.items() if not one.done()}
            task = self._tasks[model] = asyncio.get_running_loop().create_task(self._ask(model))
        return task

    async def _ask(self, model: str) -> None:
        asked_at = self._clock()
        try:
            async with asyncio.timeout(MAX_WAIT_S):
                told = await (self._read(model) if self._is_local else self._read_windows())
        except (AdapterError, TimeoutError) as error:
            _log.info("the server did not report its models: %s", error or f"no answer in {MAX_WAIT_S:g} s")
            if isinstance(error, AdapterError):
                self._take_failure(error)
            if not isinstance(error, AdapterError) or error.status != _LOADING:
                return
            told = {ANY_MODEL: msgspec.structs.replace(self._known_facts(model), state="loading")}
            asked_at = self._distrusted_at  # it is queried again when next needed
        before = {name: self.facts(name) for name in (*self._answers, *self._toolless, model)}
        refusing = {name: self._known_facts(name) for name in self._toolless}
        old = self._answers.pop(model, None)
        if old is not None and old.asked_at > self._lost_at:
            told = _with_window(told, model, find_facts(old.told, model).window)
        for oldest in list(self._answers)[: max(0, len(self._answers) - MAX_MODELS + 1)]:
            del self._answers[oldest]
        self._answers[model] = _Answer(asked_at, told)
        for name, facts in refusing.items():
            if _is_another(facts, self._known_facts(name)):
                self.forget_tool_refusal(name)
        if any(self.facts(name) != facts for name, facts in before.items()):
            self._on_change()

    def _take_failure(self, error: AdapterError) -> None:
        """Handle a failed query: either no server answered, or one answered differently than before."""
        if not self._is_local:
            return
        if isinstance(error, NetworkFailed) or error.status == _LOADING:
            self.note_failure(error)
        elif self._answers and not error.retryable:
            self._answers.clear()
            self._toolless.clear()
            self._forget_model_list()
            self._on_change()

    async def _read_windows(self) -> Told:
        self._take_model_list(await self._get(self._settings.limits_path))
        return {}

    async def _read(self, model: str) -> Told:
        """Return the report of a server that runs models; the response shows which server software it is."""
        path = self._settings.limits_path
        body = await self._get(path)
        props = read_props(body)
        if props is None:
            told = dict(read_listed(body))
            if path.endswith(RUNNING_PATH) and model:
                told[model] = filled(find_facts(told, model), await self._shown(path, model))
            return told
        if not props.is_router:
            return {ANY_MODEL: props}
        model_list = await self._get(self._settings.models_path)
        self._take_model_list(model_list)
        told = {ANY_MODEL: props, **read_listed(model_list)}
        if model in told and told[model].state in ("", "sleeping"):
            told[model] = filled(await self._of_router(path, model), told[model])
        return told

    async def _of_router(self, path: str, model: str) -> ServerFacts:
        """Return the report of the server that a router runs for a model; a query does not start that server."""
        try:
            own = read_props(await self._get(f"{path}?model={quote(model, safe='')}&autoload=false"))
        except NetworkFailed:
            raise
        except AdapterError as error:
            _log.info("the router reports nothing about %s: %s", model, error)
            own = None
        return msgspec.structs.replace(own, model="") if own else NO_FACTS

    async def _shown(self, path: str, model: str) -> ServerFacts:
        """Return a model's capabilities as reported by Ollama, without its window, which is not the loaded one."""
        try:
            body = await self._post(path.removesuffix(RUNNING_PATH) + _SHOW_PATH, msgspec.json.encode({"model": model}))
        except AdapterError as error:
            _log.info("the capabilities of %s are unknown: %s", model, error)
            return NO_FACTS
        return read_capabilities(body) or NO_FACTS


def _is_another(old: ServerFacts, new: ServerFacts) -> bool:
    """Return whether new facts contradict the old: the server was restarted, or another model was loaded."""
    names = set(ServerFacts.__struct_fields__) - {"state"}
    known = {name for name in names if getattr(old, name) != getattr(NO_FACTS, name)}
    return any(getattr(new, name) not in (getattr(NO_FACTS, name), getattr(old, name)) for name in known)


def _with_window(told: Told, model: str, window: int) -> Told:
    """Add a model's last known window to the report if the model is not loaded now."""
    facts = find_facts(told, model)
    if facts.window or not window:
        return told
    return {**told, model: msgspec.structs.replace(facts, window=window)}
