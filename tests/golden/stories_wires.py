"""The same chat in each wire format: text, reasoning, a tool call, a picture, a compaction."""

from __future__ import annotations

from typing import Any

from tests.golden.desk import Desk, story
from tests.golden.stories_compaction import summary
from tests.golden.stories_editing import DOT
from tests.providers.anthropic import answers as anthropic
from tests.providers.chat import answers as chat
from tests.providers.responses import answers as responses

ARGUMENTS = '{"path": "a.txt"}'


async def same_chat(desk: Desk, *answers: Any) -> None:
    """Ask with a picture, read a file, ask again, compact, and ask once more."""
    desk.write("a.txt", "one\n")
    (desk.work / "dot.png").write_bytes(DOT)
    await desk.chat("attach", kind="image", path="dot.png")
    desk.model(*answers)
    await desk.say("Look at the picture and read a.txt")
    await desk.say("Sure?")
    await desk.chat("compact")
    await desk.until("compacted")
    await desk.until("state", state="idle")
    await desk.say("Go on")


@story(wire="openai", whole_tools=True)
async def wire_openai_chat(desk: Desk) -> None:
    """Chat Completions."""
    await same_chat(
        desk,
        chat.reply("I look.", reasoning="Hm.", calls=[chat.Call("read_file", ARGUMENTS, "c1")]),
        chat.reply("One line."),
        chat.reply("Yes."),
        chat.reply(summary(), one_chunk=True),
        chat.reply("On."),
    )


@story(wire="openai_compatible", window=9_000, whole_tools=True)
async def wire_openai_compatible(desk: Desk) -> None:
    """An endpoint that speaks Chat Completions in its own way."""
    await same_chat(
        desk,
        chat.reply("I look.", reasoning="Hm.", calls=[chat.Call("read_file", ARGUMENTS)]),
        chat.reply("One line."),
        chat.reply("Yes."),
        chat.reply(summary(), one_chunk=True),
        chat.reply("On."),
    )


@story(wire="openai_responses", whole_tools=True)
async def wire_openai_responses(desk: Desk) -> None:
    """Responses."""
    await same_chat(
        desk,
        responses.reply("I look.", reasoning=["Hm."], calls=[responses.Call("read_file", ARGUMENTS, "c1")]),
        responses.reply("One line."),
        responses.reply("Yes."),
        responses.reply(summary()),
        responses.reply("On."),
    )


@story(wire="anthropic", whole_tools=True)
async def wire_anthropic(desk: Desk) -> None:
    """Messages."""
    await same_chat(
        desk,
        anthropic.reply("I look.", thinking="Hm.", calls=[anthropic.Call("read_file", ARGUMENTS, "toolu_1")]),
        anthropic.reply("One line."),
        anthropic.reply("Yes."),
        anthropic.reply(summary()),
        anthropic.reply("On."),
    )
