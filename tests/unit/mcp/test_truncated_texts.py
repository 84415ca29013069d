"""A server's text is limited, and truncation is marked."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace as Said
from typing import Any

from codecompanion.mcp import content
from codecompanion.mcp.list_offer import list_offer
from codecompanion.mcp.stdio import _read_stderr


def texts(*given: str) -> Any:
    return Said(content=[Said(type="text", text=text) for text in given], structured_content=None, is_error=False)


def test_a_result_reports_once_how_much_was_dropped() -> None:
    """This is true even if the room ends exactly between two texts."""
    most = content.MAX_TEXT_CHARS
    for given in (["x" * most, "y" * 7], ["x" * (most - 2), "yy", "z" * 3, "z" * 4], ["x" * (most + 7)]):
        text = content.result_given(texts(*given)).text
        assert text.endswith("\n[… 7 more characters were not kept …]")
        assert len(text) < most + 60
    assert content.result_given(texts("one", "", "two")).text == "one\n\ntwo"


def test_a_truncated_log_line_ends_in_an_ellipsis() -> None:
    assert content.log_text("x" * 3_000) == "x" * 1_999 + "…"
    assert content.log_text(" " * 200_000 + "hidden") == "…"
    assert content.log_text("a\n b") == "a b"


async def test_a_truncated_line_of_standard_error_ends_in_an_ellipsis() -> None:
    """The beginning of the line is kept, even if the line never ends."""
    for end in (b"\n", b""):
        stream = asyncio.StreamReader()
        stream.feed_data(b"first" + b"x" * 300_000 + end)
        stream.feed_eof()
        lines: list[str] = []
        await _read_stderr(stream, lines.append)
        assert [(line[:5], line[-1], len(line)) for line in lines] == [("first", "…", 4_000)]


async def test_truncated_descriptions_end_in_an_ellipsis() -> None:
    class Client:
        server_capabilities = Said(tools=None, prompts=Said(), resources=None)

        async def list_prompts(self, cursor: str | None) -> Any:
            argument = Said(name="a", required=True, description="y" * 2_000)
            one = Said(name="p", title="", description="x" * 2_000, arguments=[argument])
            return Said(prompts=[one], next_cursor=None)

    (prompt,) = (await list_offer(Client())).prompts
    assert prompt.description == "x" * 999 + "…"
    assert prompt.arguments == (("a", True, "y" * 999 + "…"),)
