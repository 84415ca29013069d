"""Summaries in the system role, for endpoints that accept a single system message (R-146)."""

from __future__ import annotations

import msgspec
import pytest

from codecompanion import settings
from codecompanion.adapters.base import AdapterSettings, ChatRequest
from codecompanion.adapters.openai_chat.render import ChatRenderer, RenderOptions
from codecompanion.model.messages import Message

PROMPT = Message("p", "system", "Prompt.")
SUMMARY = Message(
    "s", "system", "[Conversation Summary \u2014 9 earlier messages compacted]\n\nS", tag="compact_summary"
)
USER, REPLY = Message("u", "user", "hi"), Message("a", "assistant", "hello")


def sent(*messages: Message, one: bool = True, renderer: ChatRenderer | None = None) -> list[tuple[str, str]]:
    made = renderer or new_renderer(one)
    body = b"".join(made.render(ChatRequest(messages=messages, model="m", chat_id="c")))
    return [(message["role"], message["content"]) for message in msgspec.json.decode(body)["messages"]]


def new_renderer(one: bool = True) -> ChatRenderer:
    entry = AdapterSettings(name="t", kind="openai_compatible")
    return ChatRenderer(entry, RenderOptions(one_system_message=one), lambda _: b"")


def test_the_summary_is_its_own_turn() -> None:
    """R-146: the turn is `[System context]`, a newline and the summary, answered by `Understood.`, both verbatim."""
    assert sent(PROMPT, SUMMARY, USER) == [
        ("system", "Prompt."),
        ("user", f"[System context]\n{SUMMARY.text}"),
        ("assistant", "Understood."),
        ("user", "hi"),
    ]


def test_the_roles_alternate_even_if_the_model_spoke_next() -> None:
    """Strict templates refuse two replies in a row."""
    assert [role for role, _ in sent(PROMPT, SUMMARY, REPLY, USER)] == ["system", "user", "assistant", "user"]


def test_other_endpoints_get_it_in_place() -> None:
    """Pipeline 5.6: OpenAI accepts system messages at any position."""
    assert sent(PROMPT, SUMMARY, USER, one=False)[1] == ("system", SUMMARY.text)


def test_messages_of_the_user_and_the_system_are_unchanged() -> None:
    """Only summaries, and only those in the system role, are converted."""
    own = Message("x", "user", "Below is a summary", tag="compact_summary")
    assert sent(PROMPT, own, USER) == [("system", "Prompt."), ("user", "Below is a summary"), ("user", "hi")]


def test_a_growing_chat_is_rendered_like_a_new_one() -> None:
    """The cached pieces do not depend on the extra turn."""
    kept = new_renderer()
    messages = [PROMPT, SUMMARY, USER]
    for more in (REPLY, Message("u2", "user", "more"), Message("a2", "assistant", "yes")):
        assert sent(*messages, renderer=kept) == sent(*messages)
        messages.append(more)
    assert sent(*messages, renderer=kept) == sent(*messages)


@pytest.mark.parametrize(
    ("name", "one"),
    [("gemini", True), ("mistral", True), ("ollama", True), ("llama_cpp", True), ("vllm", True), ("lmstudio", True),
     ("openai_compatible", True), ("openai", False), ("deepseek", False), ("openrouter", False), ("xai", False)],
)  # fmt: skip
def test_the_endpoints_that_need_it_are_known(name: str, one: bool) -> None:
    """The endpoints are Gemini's compatible endpoint, Mistral, and servers that use a chat template."""
    options = settings.defaults()["adapters"][name]["options"]
    assert options.get("one_system_message", False) is one
