"""The Chat Completions adapter beside the plain SDK: time to the first token, and a burst of 5,000 chunks.

    python -m bench.chat_adapter [--rounds 9]

A loopback server in a separate process (`tests/providers/chat/server.py`); both sides are warm, each figure is the
median of the rounds. A round appends one message, as a tool loop does.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.openai_chat.wire import OpenAIChat
from codecompanion.model.messages import Message

ROOT = Path(__file__).parent.parent
CASES = (
    ("1 message", 1, 60, 0),
    ("1,000 messages", 1_000, 60, 0),
    ("10,000 messages", 10_000, 60, 0),
    ("10,000 messages, 10 MB", 10_000, 1_000, 0),
    ("burst of 5,000 chunks", 1, 60, 5_000),
)
Ask = Callable[[list[Message]], AsyncIterator[str]]


@contextmanager
def server(chunks: int) -> Any:
    """Run the loopback server; yield its URL."""
    command = [sys.executable, "-m", "tests.providers.chat.server", "--no-check", "--chunks", str(chunks)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "python")])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=environment) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        finally:
            process.kill()


def ours(url: str) -> Ask:
    """Return a call of our adapter."""
    settings = AdapterSettings(name="bench", kind="openai_compatible", base_url=url)
    adapter = HttpAdapter(settings, OpenAIChat(settings, lambda _: b""), read_key=lambda _: "sk-test")

    async def ask(messages: list[Message]) -> AsyncIterator[str]:
        async for event in adapter.stream(ChatRequest(messages=messages, model="test-model", chat_id="bench")):
            yield getattr(event, "text", "")

    return ask


def plain_sdk(url: str) -> Ask:
    """Return a call of the SDK as in its documentation."""
    import openai

    client = openai.AsyncOpenAI(api_key="sk-test", base_url=url, max_retries=0)

    async def ask(messages: list[Message]) -> AsyncIterator[str]:
        bodies: Any = [{"role": message.role, "content": message.content} for message in messages]
        stream: Any = await client.chat.completions.create(
            model="test-model", messages=bodies, stream=True, stream_options={"include_usage": True}
        )
        async for chunk in stream:
            yield chunk.choices[0].delta.content or "" if chunk.choices else ""

    return ask


async def measure(ask: Ask, count: int, chars: int, rounds: int) -> tuple[float, float]:
    """Return (first token, whole reply) in milliseconds: medians, without the first round."""
    messages = [
        Message(id=f"m{number}", role="assistant" if number % 2 else "user", content=f"{number} " + "x" * chars)
        for number in range(count)
    ]
    firsts: list[float] = []
    wholes: list[float] = []
    for number in range(rounds + 1):
        messages = [*messages, Message(id=f"n{number}", role="user", content="go on")]
        start, first = time.perf_counter(), 0.0
        async for text in ask(messages):
            if text and not first:
                first = time.perf_counter() - start
        firsts.append(first * 1000)
        wholes.append((time.perf_counter() - start) * 1000)
    return statistics.median(firsts[1:]), statistics.median(wholes[1:])


async def run(rounds: int) -> None:
    """Print one line per case."""
    print(f"{'ms, median':26}{'first: ours':>12}{'SDK':>10}{'ratio':>8}{'all: ours':>12}{'SDK':>10}{'ratio':>8}")
    for name, count, chars, chunks in CASES:
        with server(chunks) as url:
            first, whole = await measure(ours(url), count, chars, rounds)
            sdk_first, sdk_whole = await measure(plain_sdk(url), count, chars, max(2, rounds // 3))
        print(
            f"{name:26}{first:12.1f}{sdk_first:10.1f}{sdk_first / first:8.1f}"
            f"{whole:12.1f}{sdk_whole:10.1f}{sdk_whole / whole:8.1f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    asyncio.run(run(parser.parse_args().rounds))
