"""Connects the editor and the engine; the only code that imports pynvim, apart from the rplugin file.

In: `receive(verb, json)` on pynvim's thread decodes the request and starts it on the engine's loop; nothing waits.
Requests begin in order of arrival (`request_order`).

Out: `emit(event)` from any thread. A flusher on pynvim's loop makes one `exec_lua` call per flush and learns its cost
from the response (see `outbox`). The call is a request inside a greenlet, not a notification: waiting for its response
provides the back-pressure that keeps a busy editor from being flooded.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import gc
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pynvim

from codecompanion import __version__
from codecompanion.engine import log
from codecompanion.engine.channel import keep_channel
from codecompanion.engine.listed_buffers import ListedBuffers
from codecompanion.engine.loop import EngineLoop, Guard, one_sentence
from codecompanion.engine.outbox import Outbox, Pacer
from codecompanion.engine.request_order import RequestOrder
from codecompanion.errors import Busy, CodeCompanionError, InputError
from codecompanion.formats import typed
from codecompanion.formats.outside_text import NOT_READABLE
from codecompanion.formats.regex import regex
from codecompanion.wire import requests
from codecompanion.wire.events import Event, HostReady, Notice, Reply, RequestFailed, Severity

DELIVER = "return require('codecompanion.host').on_events(...)"
GRACE_S = 0.3  # for requests that arrived just before the editor exited
CLOSE_LIMIT_S = 1.5  # Neovim kills its jobs two seconds after asking them to exit
NO_GARBAGE_S = 5.0
"""Seconds after `hello` without garbage collection: the first request imports many modules that stay in use."""


class Runtime(Protocol):
    """The methods of `engine.runtime.Runtime` that the bridge uses."""

    async def handle(self, request: requests.Request) -> object:
        """Handle one request and return the result, which is sent as its `reply`."""

    async def aclose(self) -> None:
        """Finish all writes and release everything."""


MakeRuntime = Callable[[Callable[[Event], None]], Runtime]


def default_runtime(emit: Callable[[Event], None]) -> Runtime:
    """Return the runtime used in production."""
    from codecompanion.engine.runtime import Runtime as EngineRuntime  # slow to import, so only when needed

    return EngineRuntime(emit)


def _collect_garbage() -> None:
    """Turn on garbage collection, but exempt the existing objects."""
    gc.freeze()
    gc.enable()


def _mend(text: str) -> str:
    """Return `text` as valid Unicode; bytes of a buffer that are not UTF-8 arrive as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return text


def _with_bytes(request: requests.Request, payload: str) -> requests.Request:
    """Return the request with environment variables decoded as in `os.environ`: secrets may contain invalid UTF-8."""
    match request:
        case requests.Hello():
            return msgspec.structs.replace(request, environment=json.loads(payload).get("environment", {}))
        case requests.GiveEnvironment():
            return msgspec.structs.replace(request, changed=json.loads(payload).get("changed", {}))
    return request


_NAMED_SECRET = regex(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|PAT$|PWD$")
_PLAIN_VALUE = regex(r"[A-Za-z.-]{1,19}|[\d.:]+")


def _values_to_redact(environment: Mapping[str, str]) -> list[str]:
    """Return the values to redact in the log, from the variables withheld from the host at start.

    Plain words and numbers, as in `PGHOST` and `AWS_REGION`, are left out, because e.g. `localhost` appears everywhere.
    """
    return [
        form
        for name, value in environment.items()
        for form in {value, _mend(value)}
        if _NAMED_SECRET.search(name.upper()) or not _PLAIN_VALUE.fullmatch(value)
    ]


def _keys_of(environment: Mapping[str, str]) -> list[str]:
    """Return the values of environment variables that look like keys."""
    endings = ("KEY", "TOKEN", "SECRET", "PASSWORD")
    return [value for name, value in environment.items() if name.upper().endswith(endings)]


class _Envelope(msgspec.Struct):
    """The fields that can still be read from a request that cannot be decoded."""

    id: int = 0
    chat: str = ""


class Bridge:
    """Connects one editor with one runtime."""

    def __init__(self, nvim: pynvim.Nvim, make_runtime: MakeRuntime | None = None) -> None:
        self._nvim, self._make_runtime = nvim, make_runtime or default_runtime
        self._flusher = _Flusher(nvim)
        self._guard = Guard(self.emit)
        self._engine = EngineLoop(self._guard)
        self._runtime: Runtime | None = None
        self._order = RequestOrder()
        self._listed_buffers = ListedBuffers()
        self._closed = threading.Lock()
        _live.append(self)

    def receive(self, verb: object, payload: object) -> None:
        """Start the request on the engine's loop; called by pynvim, never raises."""
        with self._guard.watch(f"request {verb}"):
            text = _mend(str(payload))
            try:
                request = requests.decode(str(verb), text)
            except InputError as error:
                self._refuse(str(verb), text, error)
                return
            if text != payload:
                request = _with_bytes(request, str(payload))
            match request:
                case requests.Hello():
                    log.register_secrets(request.secrets.values())
                    log.register_secrets([*_keys_of(os.environ), *_values_to_redact(request.environment)])
                case requests.SetModel() | requests.GiveSecrets():
                    log.register_secrets(request.secrets.values())
                case requests.GiveEnvironment():
                    log.register_secrets(_values_to_redact(request.changed))
                case requests.GiveOpenFiles():
                    self._listed_buffers.take(request.names)
                    return
            self._engine.spawn(self._serve(str(verb), self._listed_buffers.complete(request)), f"request {verb}")

    def emit(self, event: Event) -> None:
        """Queue `event` for the editor; may be called from any thread."""
        self._flusher.put(event)

    def close(self) -> None:
        """Let the runtime finish, then stop; called from pynvim's thread after the editor has exited."""
        if not self._closed.acquire(blocking=False):
            return
        self._flusher.stop()
        self._engine.close(self._close_runtime, GRACE_S, CLOSE_LIMIT_S)
        log.close_log()

    async def _close_runtime(self) -> None:
        if self._runtime is not None:
            await self._runtime.aclose()

    async def _serve(self, verb: str, request: requests.Request) -> None:
        gate = await self._order.turn_of(request)
        try:
            if isinstance(request, requests.Hello):
                self._open_log(request)
            if self._runtime is None:
                self._runtime = self._make_runtime(self.emit)
            result = await self._runtime.handle(request)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._answer_failure(verb, request, error)
        else:
            self._answer(verb, request, result)
        finally:
            self._order.is_done(request, gate)

    def _open_log(self, hello: requests.Hello) -> None:
        level = hello.settings.get("log_level", "INFO")
        try:
            log.open_log(hello.log_path, str(level))
        except OSError as error:
            self.emit(Notice(level=Severity.WARN, text=f"The log {hello.log_path} cannot be written: {error.strerror}"))

    def _answer(self, verb: str, request: requests.Request, result: object) -> None:
        if isinstance(request, requests.Hello):
            version = ".".join(str(part) for part in sys.version_info[:3])
            mistakes = tuple(map(str, result)) if isinstance(result, list) else ()
            self.emit(HostReady(version=__version__, python=version, pid=os.getpid(), mistakes=mistakes))
            if not gc.isenabled():  # `engine/__main__.py`; a host shared with other plugins is not changed
                asyncio.get_running_loop().call_later(NO_GARBAGE_S, _collect_garbage)
        if request.id > 0:
            try:
                self.emit(Reply(chat=request.chat, id=request.id, ok=True, result=result))
            except TypeError as error:
                self._answer_failure(verb, request, error)

    def _answer_failure(self, verb: str, request: requests.Request, error: BaseException) -> None:
        if isinstance(error, CodeCompanionError):
            log.logger.warning("%s: %s: %s", verb, type(error).__name__, error)
        else:
            log.logger.error("%s failed", verb, exc_info=(type(error), error, error.__traceback__))
        is_busy = isinstance(error, Busy)
        self._send_failure(verb, request.id, request.chat, one_sentence(f"request {verb}", error), busy=is_busy)

    def _refuse(self, verb: str, payload: str, error: InputError) -> None:
        log.logger.error("refused request: %s", error)
        envelope = _Envelope()
        with contextlib.suppress(*NOT_READABLE):
            envelope = typed.read_json(payload, type=_Envelope)
        self._send_failure(verb, envelope.id, envelope.chat, log.redact(str(error)))

    def _send_failure(self, verb: str, request_id: int, chat: str, text: str, *, busy: bool = False) -> None:
        if request_id > 0:
            self.emit(Reply(chat=chat, id=request_id, ok=False, error=text))
        else:
            self.emit(RequestFailed(chat=chat, verb=verb, error=text, busy=busy))


class _Flusher:
    """Sends the contents of the outbox; all methods except `put` run on pynvim's thread."""

    def __init__(self, nvim: pynvim.Nvim) -> None:
        self._nvim: Any = nvim
        self._outbox, self._pacer = Outbox(), Pacer()
        self._timer: asyncio.TimerHandle | None = None
        self._sending = self._stopped = False
        self._last_flush = self._last_text = 0.0
        self._wake_pending = threading.Event()

    def put(self, event: Event) -> None:
        self._outbox.put(event)
        if self._stopped or self._wake_pending.is_set():
            return
        self._wake_pending.set()
        with contextlib.suppress(RuntimeError):  # the loop has closed, so the editor has exited
            self._nvim.loop.call_soon_threadsafe(self._wake)

    def stop(self) -> None:
        self._stopped = True

    def _wake(self) -> None:
        self._wake_pending.clear()
        if not self._sending:
            self._arm(more=False)

    def _arm(self, *, more: bool) -> None:
        """Set the timer for the next flush; `more`: the last batch did not include everything."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._stopped or self._outbox.is_empty:
            return
        if more or self._outbox.is_pressing:
            due = self._last_flush + self._pacer.gap_s
        else:
            due = self._last_text + self._pacer.text_gap_s
        wait_s = due - self._nvim.loop.time()
        if wait_s <= 0:
            self._begin()
        else:
            self._timer = self._nvim.loop.call_later(wait_s, self._begin)

    def _begin(self) -> None:
        self._timer, self._sending = None, True
        self._nvim.async_call(self._flush)  # in a greenlet, the only place where a request may wait for its response

    def _flush(self) -> None:
        loop = self._nvim.loop
        had_text = not self._outbox.is_pressing
        batch = self._outbox.take(self._pacer.limit_bytes)
        try:
            if batch is not None:
                cost_ms = self._nvim.api.exec_lua(DELIVER, [batch])
                self._pacer.record(float(cost_ms or 0.0), len(batch))
        except pynvim.NvimError as error:  # not through `put`, because the connection to the editor is broken
            log.logger.error("the editor could not process a batch of %d bytes: %s", len(batch or ""), error)
        finally:
            self._sending = False
            self._last_flush = loop.time()
            if had_text or (batch is not None and '"type":"text"' in batch):
                self._last_text = self._last_flush
            self._arm(more=not self._outbox.is_empty)


_live: list[Bridge] = []


@atexit.register
def close_all() -> None:
    """Close every bridge of this process; also used when a host shared with other plugins exits."""
    while _live:
        _live.pop().close()


def serve(plugin: Path) -> int:
    """Run the remote plugin `plugin` on stdin/stdout until the editor exits; return the exit status."""
    sys.argv[:] = ["codecompanion.engine", str(plugin)]  # start_host() treats every argument ending in .py as a plugin
    status = 0
    keep_channel()
    try:
        pynvim.start_host()
    except (EOFError, OSError):
        pass  # the editor closed the channel, which is the normal end
    except Exception as error:  # SIGTERM arrives here as a bare Exception
        print(f"codecompanion: the Python process stopped: {error}", file=sys.stderr)
        status = 0 if "SIGTERM" in str(error) else 1
    close_all()
    return status
