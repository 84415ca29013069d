"""The fake Messages server recognises its own thinking blocks and the conversation on which they were based."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.anthropic.answers import Call, Redacted, Reply, Text, Thinking, reply
from tests.providers.anthropic.models import OPUS, SONNET
from tests.providers.anthropic.rules.thinking import BINDING_BETA
from tests.providers.anthropic.server import AnthropicServer
from tests.providers.tests.anthropic.bodies import (
    COMPACT,
    DEMAND,
    LONG,
    THRESHOLD,
    TOOL,
    Body,
    ask,
    body,
    demand,
    edits,
    text,
    user,
)

ADAPTIVE: Body = {"thinking": {"type": "adaptive"}, "tools": [TOOL]}
BOUND = "Invalid `signature` in `thinking` block. The block is bound to a different conversation."


class Conversation:
    """A conversation with a server, from a client that sends back everything it received."""

    def __init__(self, *script: Any, model: str = OPUS.id, betas: tuple[str, ...] = (), **fields: Any) -> None:
        self.server = AnthropicServer(script)
        self.messages: list[Body] = []
        self._fields, self._betas = {**ADAPTIVE, "model": model, **fields}, betas

    def request(self, *messages: Body, **fields: Any) -> Body:
        return body(*(messages or self.messages), **{**self._fields, **fields})

    def say(self, *blocks: Body) -> Body:
        """Send the conversation with one more user message, add the reply to it and return the reply."""
        self.messages.append(user(*blocks))
        status, message = ask(self.request(), *self._betas, server=self.server)
        assert status == 200, message
        self.messages.append({"role": "assistant", "content": message["content"]})
        return dict(message)

    def refusal(self, *messages: Body, betas: tuple[str, ...] = (), **fields: Any) -> str | None:
        """Return why these messages are refused, or None."""
        request = self.request(*messages, **fields)
        status, answer = ask(request, *self._betas, *betas, server=self.server)
        return None if status == 200 else str(answer["error"]["message"])


def two_turns(**options: Any) -> Conversation:
    chat = Conversation(reply("One", thinking="first"), reply("Two", thinking="second"), **options)
    chat.say()
    chat.say()
    chat.messages.append(user())
    return chat


def result(message: Body) -> Body:
    call = next(block for block in message["content"] if block["type"] == "tool_use")
    return {"type": "tool_result", "tool_use_id": call["id"], "content": "noon"}


def without(message: Body, *kinds: str) -> Body:
    return {**message, "content": [block for block in message["content"] if block["type"] not in kinds]}


def test_unchanged_thinking_is_accepted_and_appended_messages_do_not_matter() -> None:
    """Other parameters, moved cache breakpoints, and a string in place of a block do not matter either."""
    chat = two_turns()
    assert chat.refusal(*chat.messages) is None
    assert chat.refusal(*chat.messages, max_tokens=9, tool_choice={"type": "none"}) is None
    marked = {"role": "user", "content": [text(cache_control={"type": "ephemeral"})]}
    assert chat.refusal(marked, *chat.messages[1:]) is None
    assert chat.refusal({"role": "user", "content": "hi"}, *chat.messages[1:]) is None


@pytest.mark.parametrize("changed", ["system", "tools", "text", "gap", "order"])
def test_thinking_is_refused_if_anything_before_it_has_changed(changed: str) -> None:
    """This applies to models that preserve thinking; on others, only the block itself counts."""
    chat = two_turns()
    first, one, second, two, third = chat.messages
    fields: Body = {}
    match changed:
        case "system":
            fields = {"system": "be brief"}
        case "tools":
            fields = {"tools": [{**TOOL, "description": "d"}]}
        case "text":
            first = user(text("ho"))
        case "order":
            one, two = two, one
        case "gap":
            chat = Conversation(*(reply(name, thinking=name) for name in ("One", "Two", "Three")))
            for _ in range(3):
                chat.say()
            first, one, second, two, *_ = chat.messages
            middle = [first, one, second, without(two, "thinking"), *chat.messages[4:], user()]
            assert BOUND in str(chat.refusal(*middle))
            return
    seen = chat.refusal(first, one, second, two, third, **fields)
    assert seen is not None
    assert seen.startswith("messages.1.content.0: " + BOUND)
    assert seen.endswith("value in the `anthropic-beta` header.")
    stripped = [without(message, "thinking") for message in (first, one, second, two, third)]
    assert chat.refusal(*stripped, **fields) is None
    old = two_turns(model=SONNET.id)
    assert old.refusal(user(text("ho")), *old.messages[1:]) is None


def test_thinking_may_be_dropped_from_the_start_but_not_restored() -> None:
    """Oldest first."""
    chat = two_turns()
    first, one, second, two, third = chat.messages
    assert chat.refusal(first, without(one, "thinking"), second, two, third) is None
    chat.messages = [first, without(one, "thinking"), second, without(two, "thinking")]
    chat.server.script = [reply("Three", thinking="third")]
    chat.say()
    assert chat.refusal(*chat.messages, user()) is None
    assert BOUND in str(chat.refusal(first, one, second, two, *chat.messages[4:], user()))


def test_bound_thinking_is_dropped_if_the_request_allows_it() -> None:
    """Every later block is dropped too; the response lists them."""
    chat = two_turns()
    changed = [user(text("ho")), *chat.messages[1:]]
    binding = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    request = chat.request(*changed, thinking=binding)
    _, message = ask(request, BINDING_BETA, server=chat.server)
    paths = [entry["path"] for entry in message["input_transformations"]]
    assert paths == ["messages.1.content.0", "messages.3.content.0"]
    _, fine = ask(chat.request(thinking=binding), BINDING_BETA, server=chat.server)
    assert fine["input_transformations"] == []


def test_a_running_tool_turn_keeps_all_of_its_thinking_or_none() -> None:
    """With only part of its thinking, the reply counts as modified."""
    pieces = (Thinking("a"), Redacted(), Text("So"), Call("now"))
    chat = Conversation(Reply(pieces), model=SONNET.id)
    first = chat.say()
    assert [block["type"] for block in first["content"]] == ["thinking", "redacted_thinking", "text", "tool_use"]
    question, turn = chat.messages
    answer = user(result(first))
    assert chat.refusal(question, turn, answer) is None
    assert chat.refusal(question, without(turn, "thinking", "redacted_thinking"), answer) is None
    for kind in ("thinking", "redacted_thinking"):
        seen = chat.refusal(question, without(turn, kind), answer)
        assert "blocks in the latest assistant message cannot be modified" in str(seen)
        assert (
            chat.refusal(question, without(turn, kind), answer, {"role": "assistant", "content": "x"}, user()) is None
        )


def test_thinking_after_a_threshold_compaction_stays_valid_with_and_without_the_compacted_part() -> None:
    """The conversation counts as beginning with the block."""
    chat = Conversation(reply("Hello", thinking="hm"), betas=(THRESHOLD,), **edits(COMPACT))
    chat.say(text(LONG))
    question, turn = chat.messages
    assert [block["type"] for block in turn["content"]] == ["compaction", "thinking", "text"]
    assert chat.refusal(question, turn, user()) is None
    assert chat.refusal(turn, user()) is None
    assert chat.refusal(user(text("else")), turn, user()) is None
    compaction, *rest = turn["content"]
    assert BOUND in str(chat.refusal(question, {**turn, "content": rest}, user()))
    assert chat.refusal(question, {**turn, "content": [compaction, rest[1]]}, user()) is None


def test_thinking_of_turns_kept_after_a_signed_compaction_stays_valid() -> None:
    """This requires that exactly the older turns were summarised, with the same system prompt and tools."""
    chat = two_turns(betas=(DEMAND,))
    older, kept = chat.messages[:2], chat.messages[2:]
    summarising = demand(*older, **ADAPTIVE, model=OPUS.id)
    _, compacted = ask(summarising, DEMAND, server=chat.server)
    summary = {"role": "assistant", "content": compacted["content"]}
    assert chat.refusal(summary, *kept) is None
    assert BOUND in str(chat.refusal(summary, *kept, system="s"))
    assert BOUND in str(chat.refusal(summary, user(text("ho")), *kept[1:]))
    chat.messages = [summary, *kept[:-1]]
    chat.server.script = [reply("Three", thinking="third")]
    chat.say()
    assert chat.refusal(*chat.messages, user()) is None


def test_a_paused_turn_may_be_sent_back_as_the_last_message() -> None:
    """This applies only to that turn: any other final assistant message would be a prefill."""
    chat = Conversation(reply("Searching", stop="pause_turn"))
    assert chat.say()["stop_reason"] == "pause_turn"
    assert chat.refusal(*chat.messages) is None
    changed = {"role": "assistant", "content": [text("Searching on")]}
    assert "prefill" in str(chat.refusal(chat.messages[0], changed))


def test_signatures_are_valid_on_the_next_server() -> None:
    """A session continues after a restart."""
    chat = two_turns()
    chat.server = AnthropicServer()
    assert chat.refusal(*chat.messages) is None
