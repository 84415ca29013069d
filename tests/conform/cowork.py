"""Chats under the policy `cowork`: nine sections as in a model's reply, and exact token counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codecompanion.model.messages import SUMMARY_TAG, Message
from codecompanion.summary_frame import HANDOFF, bare_summary
from tests.conform.chat import Chat, Given, Summariser, chat_with

TITLES = (
    "Primary Request and Intent", "User Messages", "Work Completed", "Errors and Fixes", "Key Technical Details",
    "Decisions Made", "Pending/Incomplete Work", "Current State", "Recommended Next Step",
)  # fmt: skip
OPEN, CLOSE = "<cowork_compaction_summary>\n", "\n</cowork_compaction_summary>"
FRAME = OPEN + HANDOFF


def nine(text: str = "told") -> str:
    """Return a summary in the form requested from the model."""
    return "\n\n".join(f"{number}. **{title}**\n{text} {number}" for number, title in enumerate(TITLES, 1))


def say(role: str, tokens: int, text: str = "", **meta: Any) -> Given:
    """Return a message of `tokens` tokens that begins with the text."""
    said = {"role": role, "content": f"{text:<{tokens * 4}}"}
    return {**said, "meta": meta} if meta else said


def talk(number: int, tokens: int) -> list[Given]:
    """Return alternating messages of `tokens` tokens each, beginning with the user; each begins with `m<index> `."""
    return [say("assistant" if i % 2 else "user", tokens, f"m{i} ") for i in range(number)]


async def cowork(
    root: Path, messages: list[Given], window: int, summary: str | Summariser | None = None, **settings: Any
) -> Chat:
    """Return a chat with tools under `cowork`; the note for the memory (R-446) is tested elsewhere."""
    management = {"flush": {"trigger": False}, **settings.pop("management", {})}
    told = nine() if summary is None else summary
    policy = settings.pop("policy", "cowork")
    return await chat_with(
        root, policy, messages, window, summary=told, tools=True, context_management=management, **settings
    )


async def handed_on(root: Path, messages: list[Given], window: int, text: str = "now", **more: Any) -> Chat:
    """Return the chat after the next message was sent."""
    chat = await cowork(root, messages, window, **more)
    await chat.say(text)
    return chat


async def measures(chat: Chat, tokens: int) -> None:
    """Type a message that gives the request exactly `tokens` tokens."""
    await chat.say("x" * 4 * (tokens - chat.tokens()))


def handoffs(chat: Chat) -> list[Message]:
    """Return the summaries in the view."""
    return [message for message in chat.view if message.tag == SUMMARY_TAG]


def body(chat: Chat) -> str:
    """Return the text of the one summary, without its frame."""
    (message,) = handoffs(chat)
    return bare_summary(message.text)


def conversation(chat: Chat) -> str:
    """Return the transcript that the summariser received first."""
    return chat.prompts[0].split("<conversation>\n")[1].split("\n</conversation>")[0]


def starts(chat: Chat) -> list[str]:
    """Return the first word of each message of the newest request."""
    return [text.split()[0] if text.split() else "" for text in chat.texts]


def chars4(text: str) -> int:
    return -(-len(text) // 4)
