"""Every request body of a recorded session, played through a real `Session` under a policy, as a short digest.

Refactoring must not change the view, the summaries, or the order and the bytes that are sent in all three wire formats.
`python tests/external/same_requests.py` rewrites `same_requests.json` from the current code; `--dump FOLDER RECORDING
POLICY` writes the bodies themselves, to compare two checkouts with `diff -r`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from operator import itemgetter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from codecompanion.adapters.base import Adapter, AdapterSettings, ChatRequest, StreamEvent
from codecompanion.adapters.offline.adapter import OfflineAdapter, OfflineOptions
from codecompanion.adapters.offline.playback import Playback
from codecompanion.adapters.registry import AdapterRegistry, read_settings
from codecompanion.context.ledger.ledger import summarise
from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.policy.strict import SUFFIX
from codecompanion.counting import tokens
from codecompanion.model.messages import Message
from codecompanion.session.state import State
from tests.unit.session.fakes import Bench, submit
from tests.unit.session.stored.story import YOUNGER_TOOLS

TRANSCRIPTS = Path(__file__).resolve().parents[3] / "shared" / "data" / "transcripts"
DIGESTS = Path(__file__).with_name("same_requests.json")
POLICIES = (*policy_names(), *(f"{name}{SUFFIX}" for name in policy_names() if not load_policy(name).ours))
"""Every policy, plus the strict form of each policy that follows a document.

If one of our additions is not marked as such, it changes the requests of a strict policy, which is detected here.
"""
MODELS = {"openai": "gpt-4.1", "openai_responses": "gpt-5.4", "anthropic": "claude-sonnet-4-5"}
"""One model for each wire format."""


def recordings() -> list[Path]:
    """Return the recorded sessions, sorted."""
    return sorted(TRANSCRIPTS.rglob("*.jsonl"))


def name_of(path: Path) -> str:
    """Return the recording's name in the table of digests."""
    return path.relative_to(TRANSCRIPTS).as_posix()


class Recorder(OfflineAdapter):
    """An adapter that replays the recording as the model; keeps the bodies that each wire format would have sent."""

    def __init__(self, playback: Playback, wires: Sequence[Adapter]) -> None:
        super().__init__(
            AdapterSettings(name="recorded", kind="offline"),
            summarise=lambda messages, limit: summarise(messages, limit, tokens.estimate_text),
            options=OfflineOptions(chunk_chars=1_000_000),
            playback=playback,
        )
        self._wires = wires
        self._asked: list[tuple[str, tuple[bytes, ...]]] = []

    @property
    def bodies(self) -> list[bytes]:
        """Return all bodies in order.

        Partial summaries are requested concurrently in no fixed order, and sorted here.
        """
        runs = (
            sorted(bodies for _, bodies in run) if purpose == "summary" else [bodies for _, bodies in run]
            for purpose, run in groupby(self._asked, key=itemgetter(0))
        )
        return [body for run in runs for bodies in run for body in bodies]

    async def stream(self, request: ChatRequest) -> AsyncGenerator[StreamEvent, None]:
        bodies = tuple(wire.render(_with_model(request, wire.default_model)) for wire in self._wires)
        self._asked.append((request.purpose, bodies))
        async for event in super().stream(request):
            yield event


def _with_model(request: ChatRequest, model: str) -> ChatRequest:
    values = {name: getattr(request, name) for name in request.__struct_fields__}
    return ChatRequest(**{**values, "model": model})


def _wires() -> list[Adapter]:
    tables = {kind: {"kind": kind, "base_url": "http://127.0.0.1:9", "model": model} for kind, model in MODELS.items()}
    registry = AdapterRegistry(read_settings(tables), read_blob=lambda sha: b"", summarise=lambda messages, limit: "")
    return [registry.get(kind) for kind in MODELS]


async def play(path: Path, policy: str) -> list[bytes]:
    """Return the bodies of all requests in order, each in the wire formats of `MODELS`.

    The window is half the size of the recording, so that every policy has to edit and to compact.
    """
    playback = Playback.read(str(path))
    size = sum(tokens.estimate_text(message.text) for message in playback.messages)
    adapter = Recorder(playback, _wires())
    with tempfile.TemporaryDirectory() as root:
        window, tools = max(8_000, size // 2), {"entries": {name: {"enabled": False} for name in YOUNGER_TOOLS}}
        bench = Bench(Path(root), adapter, window=window, tools=tools, settings={"policy": policy})  # type: ignore[arg-type]
        session = await bench.open()
        for number, message in enumerate(_typed(playback), 1):
            session.submit(submit(message.text, number))
            await bench.until(lambda: session.state is State.IDLE and session.task is None, 120)
        await session.close()
        assert not bench.bugs, bench.bugs
        return [body.replace(root.encode(), b"ROOT") for body in adapter.bodies]


def _typed(playback: Playback) -> list[Message]:
    return [message for message in playback.user_messages if message.tag is None and message.text.strip()]


def digest(path: Path, policy: str) -> str:
    """Return the number of bodies and a prefix of their common hash."""
    bodies = asyncio.run(play(path, policy))
    sums = hashlib.sha256(b"".join(hashlib.sha256(body).digest() for body in bodies))
    return f"{len(bodies)} {sums.hexdigest()[:16]}"


def _cell(cell: tuple[Path, str]) -> tuple[str, str, str]:
    path, policy = cell
    return name_of(path), policy, digest(path, policy)


def write() -> None:
    """Write the table of digests."""
    table: dict[str, dict[str, str]] = {}
    cells = [(path, policy) for path in recordings() for policy in POLICIES]
    with ProcessPoolExecutor() as pool:
        for name, policy, found in pool.map(_cell, cells):
            table.setdefault(name, {})[policy] = found
    DIGESTS.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def dump(folder: Path, path: Path, policy: str) -> None:
    """Write each body as an indented JSON file."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, body in enumerate(asyncio.run(play(path, policy))):
        text = json.dumps(json.loads(body), indent=1, ensure_ascii=False)
        (folder / f"{number:04}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--dump"]:
        dump(Path(sys.argv[2]), TRANSCRIPTS / sys.argv[3], sys.argv[4])
    else:
        write()
