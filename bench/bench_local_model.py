"""24 turns with a real local model in a small window: which chats stay alive, tokens read again, facts that survive.

`make test-local-model` first: it puts llama.cpp's server and SmolLM2 below .cache/local-model. Then

    python -m bench.bench_local_model [--windows 2048 4096] [--policies adaptive cowork] [--peer CHECKOUT]

In every turn the user states one short fact and asks a small question. A turn counts as failed when it ends without a
reply. Tokens are those that the server reports as processed, without those in its cache. A fact is kept if its value is
in the last request. "new text" is the error of the meter's estimates after five reports, as a share of the tokens added
since the request before.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import REPO
from bench.plugins import Driven, Peer
from codecompanion.counting.calibration import Calibration
from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.history import CompactionFailed, EventPayload, LogEvent, UsageReported, ViewChanged
from codecompanion.model.view import with_messages
from codecompanion.session.accounts.meter import ContextMeter
from codecompanion.session.accounts.reported_steps import ReportedStep, reported_steps
from harness import Nvim, NvimError
from real_chat import RealChat, start_chat
from tests.local_model.llama_server import LlamaServer
from tests.peers.tap import Tap

FOLDER = REPO / ".cache" / "local-model"
POLICIES = ("codecompanion", "adaptive", "codebuddy", "kodacode", "cowork", "cowork_chat")
WINDOWS = (2048, 4096, 8192)
MAX_REPLY_TOKENS = 64
REPORTS = 5
"""The number of reports after which estimates of new text are measured."""
TURN_S = 240.0
THINGS = (
    *("deploy code", "database name", "staging host", "release branch", "queue name", "bucket", "admin port"),
    *("licence id", "build number", "ticket", "cache prefix", "log folder", "metrics port", "cluster", "region"),
    *("backup hour", "image tag", "cron name", "feature flag", "schema version", "team channel", "vault path"),
    *("service account", "test user"),
)
VALUES = tuple(
    f"{'KLMNPQRSTVWXZ'[number % 13]}{chr(97 + number)}-{4711 + 137 * number}" for number in range(len(THINGS))
)
QUESTIONS = (
    *("Explain in a paragraph what a queue is.", "Describe the colour blue in a paragraph."),
    *("Explain in a paragraph what a port does.", "Write a paragraph about tests."),
)


@dataclass(frozen=True)
class Played:
    """The result of the 24 turns. `read` and `written` are tokens; `alive`: the last turn was answered."""

    who: str
    window: int
    requests: int
    failed: int
    alive: bool
    read: int
    written: int
    seconds: float
    facts: int
    compactions: str = "–"
    new_text: str = "–"

    def row(self) -> tuple[str, ...]:
        """Return the cells of the table."""
        end = "alive" if self.alive else "dead"
        counts = (self.requests, self.failed, self.read, self.written)
        kept = f"{self.facts}/{len(THINGS)}"
        figures = (*(f"{count:,}" for count in counts), f"{self.seconds:.0f}")
        return (f"{self.window:,}", self.who, *figures, kept, self.compactions, self.new_text, end)


HEAD = (
    *("window", "policy", "requests", "failed turns", "tokens read", "written", "s", "facts", "compactions"),
    *("new text", "end"),
)


def turns() -> Iterator[str]:
    """Yield the user's messages."""
    for number, (thing, value) in enumerate(zip(THINGS, VALUES, strict=True)):
        yield f"Note: the {thing} is {value}. {QUESTIONS[number % len(QUESTIONS)]}"


def play(who: str, server: LlamaServer, tap: Tap, say: Callable[[str], bool]) -> dict[str, Any]:
    """Send all messages; `say` returns whether a reply arrived."""
    began, before = time.monotonic(), server.metrics()
    answered = [say(text) for text in turns()]
    after = server.metrics()
    body = next((one.body.decode() for one in reversed(tap.exchanges) if one.path.endswith("completions")), "")
    return {
        "who": who,
        "requests": len(tap.exchanges),
        "failed": answered.count(False),
        "alive": answered[-1],
        "read": round(after["prompt_tokens_total"] - before["prompt_tokens_total"]),
        "written": round(after["tokens_predicted_total"] - before["tokens_predicted_total"]),
        "seconds": time.monotonic() - began,
        "facts": sum(value in body for value in VALUES),
    }


def ours(policy: str, window: int, server: LlamaServer, root: Path) -> Played:
    """Play in a chat of this plugin with its default options except the policy."""
    with Tap(server.url) as tap, _chats() as start:
        chat = start_chat(
            start,
            root,
            server,
            extends="llama_cpp",
            options={
                "adapters": {"http": {"local": _entry(tap.url)}},
                "interactions": {"chat": {"adapter": "local", "opts": {"policy": policy}}},
            },
        )
        told = play(policy, server, tap, lambda text: _say(chat, text))
        payloads = [event.payload for event in chat.log()]
        return Played(window=window, compactions=compactions(payloads), new_text=new_text_error(chat.log()), **told)


def compactions(payloads: Sequence[EventPayload]) -> str:
    """Return the number of compactions by the writer of the summary, with their longest time, failures and edits."""
    changes = [payload for payload in payloads if isinstance(payload, ViewChanged)]
    done = [change.report for change in changes if change.kind == "compacted"]
    by = Counter(report.summariser or "code" for report in done)
    written = ", ".join(f"{number} by {name}" for name, number in by.items()) or "0"
    longest = max((report.duration_ms for report in done), default=0) / 1000
    failed = sum(isinstance(payload, CompactionFailed) for payload in payloads)
    edits = sum(change.kind == "edited" for change in changes)
    return f"{written}, ≤ {longest:.1f} s; {failed} failed; {edits} edits"


def new_text_error(events: Sequence[LogEvent]) -> str:
    """Return the mean error of the estimates after the fifth report, as a share of the added tokens, with its sign.

    The meter starts without any report, as in the first chat with a model; requests with an edited history are left
    out, because their added tokens are not reported.
    """
    reports = [event.payload for event in events if isinstance(event.payload, UsageReported)]
    if not reports:
        return "–"
    meter = ContextMeter(MessageCounter(), Calibration.for_model(reports[0].model))
    before: ReportedStep | None = None
    off, surplus, added, learned = 0.0, 0.0, 0, 0
    for step in reported_steps(events, reports[0].adapter, reports[0].model):
        prompt = with_messages(step.view, step.view.messages[:-1])
        if before is not None and prompt.messages[: len(before.view.messages)] == before.view.messages:
            new = step.report.usage.prompt_tokens - before.report.usage.prompt_tokens
            new -= before.report.usage.output_tokens
            if learned >= REPORTS and new > 0:
                error = meter.count(prompt).tokens - step.report.usage.prompt_tokens
                off, surplus, added = off + abs(error), surplus + error, added + new
        meter.learn(step.report.usage, meter.estimated_prompt(prompt), step.view)
        before, learned = step, learned + 1
    return f"{off / added:.1%} ({surplus / added:+.1%}) of {added}" if added else "–"


def peer(checkout: Path, window: int, server: LlamaServer, root: Path) -> Played:
    """Play in codecompanion.nvim with its context management on."""
    with Tap(server.url) as tap:
        side = Peer(checkout)
        with side.start(root, tap.url, {"context_management": {"enabled": True}}) as driven:
            driven.open()
            blocked: list[NvimError] = []

            def ask(text: str) -> bool:
                """Send a message; after an error that waits for a key, this turn and all that follow have failed."""
                try:
                    return not blocked and _ask(driven, tap, text)
                except NvimError as error:
                    blocked.append(error)
                    return False

            return Played(window=window, **play(side.name, server, tap, ask))


def _entry(url: str) -> dict[str, Any]:
    return {
        "extends": "llama_cpp",
        "env": {"url": url},
        "schema": {"max_tokens": {"default": MAX_REPLY_TOKENS}, "temperature": {"default": 0}},
    }


def _say(chat: RealChat, text: str) -> bool:
    before = chat.finished()
    chat.send(text)
    deadline = time.monotonic() + TURN_S
    while chat.finished() == before and not chat.draft():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    if chat.draft():  # an unsent message was returned to the input
        chat.nvim.feed("Gdip")
        return False
    messages = chat.view().messages
    return bool(messages) and messages[-1].role == "assistant" and bool(messages[-1].text.strip())


def _ask(driven: Driven, tap: Tap, text: str) -> bool:
    """Send a message and wait for the end of the turn; a message of several lines waits for <CR>, as for a user."""
    before, deadline = len(tap.exchanges), time.monotonic() + TURN_S
    driven.nvim.notify_lua("bench.type(...) bench.submit()", text)
    while time.monotonic() < deadline:
        time.sleep(0.2)
        if driven.nvim.blocked():
            driven.nvim.feed("<CR>")
        elif len(tap.exchanges) > before and driven.nvim.lua("return bench.idle()", timeout=TURN_S):
            break
    return any(one.status == 200 for one in tap.exchanges[before:])


@contextmanager
def _chats() -> Iterator[Callable[..., Nvim]]:
    started: list[Nvim] = []

    def start(root: Path, **options: Any) -> Nvim:
        nvim = Nvim(root, **options).__enter__()
        started.append(nvim)
        return nvim

    try:
        yield start
    finally:
        for nvim in started:
            nvim.__exit__()


def main(argv: Sequence[str] | None = None) -> None:
    """Play each policy in each window and print the table."""
    parser = argparse.ArgumentParser(prog="bench.bench_local_model")
    parser.add_argument("--windows", type=int, nargs="+", default=list(WINDOWS))
    parser.add_argument("--policies", nargs="*", default=list(POLICIES))
    parser.add_argument("--peer", type=Path, help="a checkout of codecompanion.nvim, plenary.nvim beside it")
    chosen = parser.parse_args(argv)
    print("| " + " | ".join(HEAD) + " |\n|" + "---|" * len(HEAD), flush=True)
    for window in chosen.windows:
        names = [*chosen.policies, *(["the peer"] if chosen.peer else [])]
        for name in names:
            with tempfile.TemporaryDirectory() as folder:
                server = LlamaServer(FOLDER / "bin" / "llama-server", FOLDER / "smollm2.gguf", Path(folder))
                # The peer has no option for the length of a reply, so the server limits it.
                server.start(window, *(("--predict", str(MAX_REPLY_TOKENS)) if name == "the peer" else ()))
                try:
                    root = Path(folder)
                    played = (
                        peer(chosen.peer, window, server, root)
                        if name == "the peer"
                        else ours(name, window, server, root)
                    )
                finally:
                    server.stop()
                print("| " + " | ".join(played.row()) + " |", flush=True)


if __name__ == "__main__":
    main()
