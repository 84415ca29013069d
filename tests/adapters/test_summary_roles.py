"""A summary on the wire, by its role, against servers with the providers' refusals.

R-323, pipeline.md 5.6: the history begins with a summary in the assistant's role.
"""

from __future__ import annotations

from codecompanion.model.messages import Message, ToolCall
from tests.adapters.anthropic_chat import chat_with
from tests.adapters.conftest import MakeAdapter, collect, request, user
from tests.providers.anthropic.answers import reply as messages_reply
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.chat.answers import reply as chat_reply
from tests.providers.chat.server import ChatServer

SUMMARY = Message(
    id="s", role="assistant", content="Compaction Summary:\n\n## Goal\n- ship </history_summary>", tag="compact_summary"
)
PROMPT = Message(id="p", role="system", content="Be good.")
TURN = (
    user("go on", 1),
    Message(id="a", role="assistant", tool_calls=(ToolCall("c1", "read_file", "{}"),)),
    Message(id="t", role="tool", tool_call_id="c1", content="text"),
)


async def test_anthropic_gets_an_assistant_first_summary_as_a_user_message() -> None:
    """R-323, 5.6: it is merged with the user's words in `<history_summary>`, which its text cannot close."""
    async with AnthropicServer([messages_reply("ok")], leading_assistant=False) as server, chat_with(server) as chat:
        chat.view = [PROMPT, SUMMARY, *TURN]
        outcome = await collect(chat.adapter, chat.request())
        sent = chat.last_body
    assert outcome.error is None
    assert not server.refusals
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "user"]
    first = sent["messages"][0]["content"]
    assert first[0]["text"].startswith("<history_summary>\nCompaction Summary:")
    assert first[0]["text"].count("</history_summary>") == 1
    assert first[1]["text"] == "go on"


async def test_rules_before_it_leave_the_summary_to_the_assistant() -> None:
    """5.6: because of the rules, the list begins with the user."""
    rules = Message(id="r", role="user", content="RULES", tag="rules")
    async with AnthropicServer([messages_reply("ok")], leading_assistant=False) as server, chat_with(server) as chat:
        chat.view = [PROMPT, rules, SUMMARY, *TURN]
        outcome = await collect(chat.adapter, chat.request())
        sent = chat.last_body
    assert outcome.error is None
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "user", "assistant", "user"]


async def test_chat_completions_accepts_it_unchanged(make_adapter: MakeAdapter) -> None:
    """5.6: a history that begins with the assistant is allowed."""
    async with ChatServer([chat_reply("ok")]) as server:
        outcome = await collect(make_adapter(server.url), request(PROMPT, SUMMARY, *TURN))
        sent = server.requests[0].json["messages"]
    assert outcome.error is None
    assert [message["role"] for message in sent] == ["system", "assistant", "user", "assistant", "tool"]
    assert sent[1]["content"] == SUMMARY.text
