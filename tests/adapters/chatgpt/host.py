"""A minimal host that acts as another Neovim in login tests: it asks one question and prints the answer or the error.

`python -m tests.adapters.chatgpt.host FOLDER URL`
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from codecompanion.adapters.base import AdapterSettings, ChatRequest, TextDelta
from codecompanion.adapters.chatgpt.adapter import make_chatgpt
from codecompanion.errors import AdapterError
from codecompanion.model.messages import Message
from codecompanion.settings import builtin_entry


async def _ask(folder: str, url: str) -> str:
    told = {**builtin_entry("chatgpt"), "base_url": url, "options": {"issuer": url.removesuffix("/v1")}}
    adapter = make_chatgpt(msgspec.convert(told, AdapterSettings), {}.__getitem__, Path(folder))
    wanted = ChatRequest(messages=(Message(id="u", role="user", content="Hello"),), model="gpt-6-sol")
    try:
        return "".join([event.text async for event in adapter.stream(wanted) if isinstance(event, TextDelta)])
    except AdapterError as error:
        return str(error)
    finally:
        await adapter.aclose()


if __name__ == "__main__":
    print(asyncio.run(_ask(*sys.argv[1:])), flush=True)
