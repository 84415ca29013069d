"""A recorded session replayed by keys in a real Neovim: the driver, and the observations of both sides.

`Replay` types the user's messages in order and waits for the end of each turn. The editor's side is the list of events
received by Lua (`trace`), the provider's side the server's counts (`session_player.Seen`); `requests` joins the two,
request by request.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from codecompanion.model.history import RequestSent
from harness import Nvim
from real_chat import KEY, start_chat
from recorded_session import RecordedSession, RecordedTurn
from session_player import MAX_OUTPUT, Player, Seen, Voice
from tests.patience import PATIENCE_S

Event = dict[str, Any]
TURN_S = 2 * PATIENCE_S
SHOWN = "reply_started reply_finished meter context_edited compaction_started compacted compaction_failed notice"
TRACE = f"""
_G.cc_trace, _G.cc_shown = {{}}, {{}}
for name in ("{SHOWN}"):gmatch("%S+") do _G.cc_shown[name] = true end
require("codecompanion.host").subscribe(function(event)
  if _G.cc_shown[event.type] then table.insert(_G.cc_trace, event) end
  if event.type == "turn_finished" then _G.cc_end = event.reason end
end)
"""


@dataclass(frozen=True)
class Asked:
    """One request for a reply. `before`: the events since the last reply; `during`: from its start to its end.

    meter: as shown by the editor before the request. meter_after: right after the reply, before any tool ran; None if
    the reply never ended.
    """

    number: int
    seen: Seen
    meter: int
    meter_after: int | None
    before: tuple[Event, ...]
    during: tuple[Event, ...]

    @property
    def error(self) -> float:
        """Return the meter's error as a fraction of the server's count."""
        return abs(self.meter - self.seen.tokens) / self.seen.tokens

    def told(self, kind: str) -> list[Event]:
        """Return the events of this type before the request."""
        return [event for event in self.before if event["type"] == kind]

    @property
    def compactions(self) -> list[Event]:
        """Return the provider's compactions during the reply."""
        return [event for event in self.during if event["type"] == "compacted"]


class Replay:
    """One session in one chat. Use as a context manager."""

    def __init__(
        self,
        nvim_factory: Callable[..., Nvim],
        root: Path,
        session: RecordedSession,
        voice: type[Voice],
        *,
        window: int,
        native: bool = True,
        opts: dict[str, Any] | None = None,
        settings: dict[str, Any] | None = None,
        savings: int = 10_000,
        **voice_options: Any,
    ) -> None:
        self.session, self.window, self.native = session, window, native and voice.can_compact
        self.player = Player()
        self.voice = voice(self.player, **voice_options)
        self._factory, self._root = nvim_factory, root
        self._opts, self._settings, self._savings = dict(opts or {}), dict(settings or {}), savings
        self._stack = ExitStack()
        self._told: list[Event] = []

    def __enter__(self) -> Self:
        """Start the server and Neovim, and open the chat."""
        self.server = self._stack.enter_context(self.voice.server(self.window, KEY))
        work = self._root / "work"
        self.session.write_workspace(work)
        if self.voice.can_compact:
            self._opts["compaction"] = self.native
        self._start()
        return self

    def _start(self, *, opened: bool = True) -> None:
        self.chat = start_chat(
            self._factory,
            self._root,
            self.server,
            extends=self.voice.adapter,
            model=self.voice.model,
            options=self.options(),
            opts={"context_window": self.window, **self._opts},
            size=(110, 44),
            opened=opened,
            trusted=True,
        )
        self.chat.nvim.lua(TRACE)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the server; Neovim ends with its factory."""
        self._stack.close()

    def options(self) -> dict[str, Any]:
        """Return the configuration besides the adapter's URL."""
        model = {"context_window": self.window, "max_output_tokens": MAX_OUTPUT}
        chat = {
            "tools": {"opts": {"yolo": True, "max_result_chars": 60_000}, "run_command": _UNASKED},
            "opts": {
                "max_provider_requests_per_turn": -1,
                "context_management": {"compaction": {"min_token_savings": self._savings}},
            },
        }
        return {
            "adapters": {"http": {"loop": {"schema": self.voice.parameters()}}},
            "models": {self.voice.model: model},
            "interactions": {"chat": chat},
            **self._settings,
        }

    def play(self, *, kill_host_at: int = -1, kill_editor_at: int = -1) -> None:
        """Play all turns; the host is killed during turn `kill_host_at`, the editor before turn `kill_editor_at`."""
        for number, turn in enumerate(self.session.turns):
            if number == kill_editor_at:
                self.kill_editor()
            if number == kill_host_at:
                self.kill_host_in(turn)
            else:
                self.play_turn(turn)

    def play_turn(self, turn: RecordedTurn) -> None:
        """Paste the user's message, send it, and wait until control is back."""
        self.player.begin(turn)
        nvim, before = self.chat.nvim, self.chat.finished()
        self.submit(turn.text)
        nvim.wait_for(lambda: self.chat.finished() > before, f"the end of {turn.text[:60]!r}", timeout=TURN_S)
        assert (nvim.lua("return _G.cc_end"), nvim.blocked()) == ("done", False), self.chat.text()[-2_000:]

    def submit(self, text: str) -> None:
        """Paste a text into the input region like a terminal, and press <CR>."""
        nvim = self.chat.nvim
        nvim.feed("<Esc>Gi")
        nvim.request("nvim_paste", text, False, -1)
        nvim.feed("<Esc><CR>")

    def kill_host_in(self, turn: RecordedTurn) -> None:
        """Begin a turn and kill the host (SIGKILL) during its next reply."""
        self.player.hangs = True
        self.player.begin(turn)
        asked, logged = len(self.player.seen), self._logged_requests()
        self.submit(turn.text)
        nvim = self.chat.nvim
        nvim.wait_for(lambda: len(self.player.seen) > asked, "the request")
        self.chat.wait_state("streaming")
        # It is logged beside the request, which does not wait for the disk.
        nvim.wait_for(lambda: self._logged_requests() > logged, "the request in the log")
        os.kill(self.chat.host_pid(), signal.SIGKILL)
        nvim.wait_lua("return require('codecompanion.host').status() ~= 'ready'")
        nvim.wait_for(lambda: self.chat.state() != "streaming", "the end of the turn")

    def _logged_requests(self) -> int:
        return sum(isinstance(event.payload, RequestSent) for event in self.chat.log())

    def kill_editor(self) -> None:
        """Kill Neovim (SIGKILL), start another one and continue the chat in it."""
        self._told, chat = self.trace(), self.chat.id
        self.chat.nvim.kill9()
        self._start(opened=False)
        self.chat.nvim.lua("require('codecompanion').resume(...)", chat)
        self.chat.wait_ready()

    def trace(self) -> list[Event]:
        """Return the events received by Lua, in order."""
        told: list[Event] = json.loads(self.chat.nvim.lua("return vim.json.encode(_G.cc_trace)"))
        return [*self._told, *told]

    def chat_requests(self) -> list[Seen]:
        """Return the server's records of the requests for replies."""
        return [seen for seen in self.player.seen if seen.purpose == "chat"]

    def requests(self) -> list[Asked]:
        """Return both sides of each request for a reply."""
        seen, trace = self.chat_requests(), self.trace()
        starts = [k for k, event in enumerate(trace) if event["type"] == "reply_started"]
        assert len(starts) == len(seen), f"{len(starts)} replies began, {len(seen)} requests came"
        asked, ended = list[Asked](), 0
        for number, (start, following) in enumerate(pairwise([*starts, len(trace)])):
            before, after = trace[ended:start], trace[start:following]
            ends = [k for k, event in enumerate(after) if event["type"] == "reply_finished"]
            ended = start + (ends[0] if ends else 0)
            meters = [event["tokens"] for event in trace[ended:following] if event["type"] == "meter"]
            shown = [event["tokens"] for event in trace[:start] if event["type"] == "meter"]
            during, after = tuple(trace[start:ended]), meters[0] if ends and meters else None
            asked.append(Asked(number, seen[number], shown[-1], after, tuple(before), during))
        return asked


_UNASKED = {"opts": {"require_approval_before": False}}


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return the distribution of values, in per cent; all 0 if there are none."""
    ordered = sorted(values) or [0.0]
    at = {name: ordered[min(len(ordered) - 1, int(len(ordered) * share))] for name, share in _SHARES}
    return {"n": len(values), **{name: round(100 * value, 3) for name, value in at.items()}}


_SHARES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0))
