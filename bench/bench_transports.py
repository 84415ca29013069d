"""CPU time from a process's first request to the first chunk of its reply: over httpx2, and through official clients.

Each figure is from new processes, in turn, against a loopback server, without the import of our own modules.
`python -m bench.bench_transports [RUNS]`.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
from pathlib import Path

from tests.providers.anthropic.answers import reply as messages_reply
from tests.providers.anthropic.models import SONNET
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.chat.server import ChatServer
from tests.providers.clouds import bedrock
from tests.providers.clouds.bedrock import BedrockServer

RUNS = 9
ROOT = Path(__file__).resolve().parents[1]
ONE = """
import asyncio, sys, time
from contextlib import aclosing
from codecompanion.adapters.base import AdapterSettings, ChatRequest, TextDelta
from codecompanion.adapters.http.adapter import HttpAdapter
from codecompanion.adapters.registry import make_wire
from codecompanion.model.messages import Message

kind, transport, client, url, model = sys.argv[1:]
settings = AdapterSettings(
    name="x", kind=kind, base_url=url, transport=transport, client=client, region="eu-west-1" if client else ""
)
adapter = HttpAdapter(settings, make_wire(settings, lambda _: b""), read_key=lambda _: "" if client else "sk-test")
request = ChatRequest(messages=(Message(id="u", role="user", content="Hi"),), model=model, max_output_tokens=64)

async def ask():
    before = time.process_time()
    async with aclosing(adapter.stream(request)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                return print((time.process_time() - before) * 1000)

asyncio.run(ask())
"""
CASES = (
    ("openai", "httpx2", ""),
    ("openai", "sdk", ""),
    ("anthropic", "httpx2", ""),
    ("anthropic", "sdk", ""),
    ("anthropic", "sdk", "bedrock"),
)


async def measure(*arguments: str) -> float:
    """Return the milliseconds of one process."""
    keys = {"AWS_ACCESS_KEY_ID": bedrock.KEY_ID, "AWS_SECRET_ACCESS_KEY": bedrock.SECRET}
    environment = {**os.environ, **keys, "PYTHONPATH": str(ROOT / "python")}
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ONE, *arguments, env=environment, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await started.communicate()
    return float(printed)


async def main(runs: int) -> None:
    """Print the medians."""
    taken: dict[tuple[str, str, str], list[float]] = {case: [] for case in CASES}
    async with (
        ChatServer() as chat,
        AnthropicServer(default=lambda _: messages_reply("Hello")) as messages,
        BedrockServer(default=lambda _: messages_reply("Hello")) as cloud,
    ):
        for _ in range(runs):
            for kind, transport, client in CASES:
                url, model = (chat.url, "test-model") if kind == "openai" else (messages.url, SONNET.id)
                url, model = (cloud.url, bedrock.MODEL) if client else (url, model)
                taken[kind, transport, client].append(await measure(kind, transport, client, url, model))
    for case, times in taken.items():
        name = " ".join(filter(None, case))
        print(f"{name:24} {statistics.median(times):6.0f} ms CPU (from {min(times):.0f} to {max(times):.0f})")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS))
