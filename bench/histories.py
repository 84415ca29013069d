"""Message histories for measurements, and stored chats built from them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from codecompanion.counting.tokens import MessageCounter
from codecompanion.model.history import ChatCreated, MessageAdded, TitleSet, TurnEnded, TurnStarted
from codecompanion.model.messages import Message, ToolCall
from codecompanion.store.opening import open_store


def messages(number: int, chars: int = 600) -> list[Message]:
    """Return a history of `number` messages in turns of question, tool call, tool result and answer."""
    counter, made = MessageCounter(), list[Message]()
    for index in range(number):
        cycle, kind = index // 4 + 1, index % 4
        text = f"{index} " + "the quick brown fox edits lua/foo.lua:12 and runs make test; " * (chars // 60)
        fields: dict[str, Any] = {"id": f"m{index}", "cycle": cycle, "turn_id": f"t{cycle}"}
        if kind == 0:
            message = Message(role="user", content=text, **fields)
        elif kind == 1:
            call = ToolCall(f"c{index}", "read_file", json.dumps({"path": "lua/foo.lua"}))
            message = Message(role="assistant", content="", tool_calls=(call,), **fields)
        elif kind == 2:
            message = Message(role="tool", tool_call_id=f"c{index - 1}", content=text, **fields)
        else:
            message = Message(role="assistant", content=text, **fields)
        made.append(
            Message(
                **{**{f: getattr(message, f) for f in message.__struct_fields__}, "tokens": counter.message(message)}
            )
        )
    return made


def store_chat(root: Path, history: list[Message], chat: str = "be0c4000be0c4000be0c4000") -> str:
    """Write a chat into the data folder that Neovim will use below `root`; return its id."""
    return store_messages(root / "data" / "nvim" / "codecompanion", history, chat)


def store_messages(folder: Path, history: list[Message], chat: str, *then: Any) -> str:
    """Write a chat, followed by the payloads in `then`, into a data folder; return its id."""
    store = open_store(folder)
    payloads: list[Any] = [
        ChatCreated(adapter="bench", model="test-model", policy="codecompanion", cwd=""),
        TitleSet(title="bench"),
    ]
    for message in history:
        if message.role == "user":
            payloads.append(TurnStarted(turn_id=message.turn_id, cycle=message.cycle or 1))
        payloads.append(MessageAdded(message=message))
    if history:
        payloads.append(TurnEnded(turn_id=history[-1].turn_id, reason="done"))
    store.append(chat, [*payloads, *then]).result()
    store.close()
    return chat
