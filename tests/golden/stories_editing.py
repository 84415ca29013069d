"""The context besides the conversation: attachments, rules, pins, code, branches, inline edits, prompts."""

from __future__ import annotations

import base64
from typing import Any

from tests.golden.desk import CHAT, Desk, story
from tests.providers.chat.answers import reply

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""A picture of one pixel."""
RULES = {
    "rules": {
        "enabled": True,
        "autoload": ["ours"],
        "groups": {
            "ours": {"description": "Ours", "files": [{"path": "RULES.md", "parser": "none"}]},
            "more": {"description": "More", "files": [{"path": "docs/more.md", "parser": "claude"}]},
        },
    },
}


@story()
async def attachments(desk: Desk) -> None:
    """A file, a text, an unsaved buffer and a picture are sent with the next message; one is removed again."""
    desk.write("a.py", "x = 1\n")
    (desk.work / "dot.png").write_bytes(DOT)
    desk.open_in_editor("b.py", "y = 2\n", modified=True)
    await desk.chat("attach", kind="file", path="a.py")
    await desk.chat("attach", kind="buffer", path="b.py", text="y = 2\n")
    await desk.chat("attach", kind="text", path="note", text="Remember the milk.")
    await desk.chat("attach", kind="image", path="dot.png")
    await desk.chat("attach", kind="file", path="missing.py")
    desk.model(reply("I see them."), reply("One less."))
    await desk.say("What do you see?")
    items = [event for event in desk.happened if event.get("type") == "context_items"][-1]["items"]
    await desk.chat("detach", items=[items[0]["id"]])
    await desk.say("And now?")


@story()
async def live_attachment(desk: Desk) -> None:
    """An attached file changes between questions; while it is live, the model is shown the difference."""
    desk.write("a.py", "x = 1\ny = 2\nz = 3\n")
    await desk.chat("attach", kind="file", path="a.py", live=True)
    desk.model(reply("x is 1."), reply("Now 7."), reply("I do not know."))
    await desk.say("What is x?")
    desk.write("a.py", "x = 7\ny = 2\nz = 3\n")
    await desk.say("And now?")
    items = [event for event in desk.happened if event.get("type") == "context_items"][-1]["items"]
    await desk.chat("set_live", items=[items[0]["id"]], live=False)
    desk.write("a.py", "x = 9\ny = 2\nz = 3\n")
    await desk.say("And now?")


@story()
async def editor_context(desk: Desk) -> None:
    """A message has editor context: immediate, delayed, from the host, empty, and invalid."""
    desk.write("a.py", "x = 1\n")
    text = {"text": "x = 1\n", "title": "the buffer", "path": str(desk.work / "a.py"), "first": 1, "whole": True}
    items: list[dict[str, Any]] = [
        {"written": "#{buffer}", "name": "buffer", "texts": [text]},
        {"written": "#{quickfix}", "name": "quickfix", "nothing": "the list is empty"},
        {"written": "#{lsp}", "name": "lsp", "comes": "later"},
        {"written": "#{file:a.py:1-1}", "name": "file", "argument": "a.py:1-1", "comes": "by_host"},
    ]
    desk.model(reply("I see."))
    await desk.submit("Look at #{buffer} #{quickfix} #{lsp} #{file:a.py:1-1}", items=items)
    later = {"written": "#{lsp}", "name": "lsp", "texts": [{"text": "def f(): ...", "title": "definition"}]}
    await desk.chat("editor_context", submit_id=1, items=[later])
    await desk.until("turn_finished")
    await desk.submit("And #{nope}", items=[{"written": "#{nope}", "name": "nope", "error": "there is no nope"}])
    await desk.until("submit_failed")
    await desk.until("turn_finished")


@story(more=RULES, chat={"tell_environment": True})
async def rules_and_environment(desk: Desk) -> None:
    """Project rules are loaded automatically and on request; the system prompt describes the environment."""
    desk.write("RULES.md", "Always be kind.\n")
    desk.write("docs/more.md", "See @other.md\n")
    desk.write("docs/other.md", "Never shout.\n")
    await desk.send("list_rules", snapshot=desk.snapshot())
    await desk.chat("close_chat")
    await desk.chat("open_chat", snapshot=desk.snapshot())
    await desk.send("show_trust", cwd=str(desk.work))
    await desk.send("change_trust", what="folder", cwd=str(desk.work))
    await desk.chat("add_rules", group="more")
    await desk.chat("add_rules", group="nobody")
    desk.model(reply("Kindly."))
    await desk.say("How will you answer?")


@story()
async def pins(desk: Desk) -> None:
    """Messages and instructions are pinned, listed, unpinned; they stay when the chat is cleared."""
    desk.model(reply("A fact."), reply("Fine."), reply("Yes."))
    await desk.say("Tell me a fact")
    await desk.chat("pin")
    await desk.chat("pin", text="Answer in English.")
    await desk.chat("list_pins")
    await desk.say("Go on")
    await desk.chat("clear")
    await desk.say("Still there?")
    await desk.chat("unpin", number=1)
    await desk.chat("undo_change")
    await desk.chat("list_pins")
    await desk.chat("unpin", number=7)


@story()
async def branches(desk: Desk) -> None:
    """A chat is branched from the second question and continues differently; the tree shows both branches."""
    desk.model(reply("One."), reply("Two."))
    await desk.say("First")
    await desk.say("Second")
    second = [event for event in desk.happened if event.get("type") == "message_sent"][-1]["message_id"]
    await desk.chat("fork_chat", fork="chat-2", at=second, title="The other way", draft="Second, differently")
    await desk.send("open_chat", chat="chat-2", resume="chat-2", snapshot=desk.snapshot())
    desk.model(reply("Three."))
    await desk.send("submit", chat="chat-2", submit_id=1, text="Third", snapshot=desk.snapshot())
    await desk.until("turn_finished", chat="chat-2")
    await desk.chat("list_branches")
    await desk.send("list_sessions", cwd=str(desk.work))


@story(policy="cowork", chat={"checkpoint_every_messages": 2})
async def checkpoints_restored(desk: Desk) -> None:
    """Checkpoints are written automatically; a chat is created from one."""
    desk.model(reply("One."), reply("Two."))
    await desk.say("First")
    await desk.say("Second")
    await desk.chat("close_chat")
    found = await desk.send("list_checkpoints", of=CHAT)
    await desk.send("restore_chat", checkpoint=found[0].id, snapshot=desk.snapshot())
    await desk.send("list_missing")


@story(more={"context": {"enabled": True, "classify": False}})
async def code_gathered(desk: Desk) -> None:
    """Code of the project is found for a question, shown, and excluded from the next one."""
    for name in ("bake", "fry", "boil"):
        desk.write(f"src/{name}.py", f'"""How to {name}."""\n\n\ndef {name}_bread(heat):\n    return heat * 2\n')
    await desk.send("index_project", cwd=str(desk.work), start=True)
    await desk.until("index_progress", phase="ready")
    desk.model(reply("It doubles the heat."), reply("It fries."))
    await desk.say("What does bake_bread in this project do?")
    gathered = [event for event in desk.happened if event.get("type") == "code_gathered"]
    await desk.chat("show_gathered", item=gathered[-1]["message_id"])
    await desk.chat("preview_code", question="What does fry_bread do?", snapshot=desk.snapshot())
    await desk.chat("choose_code", path="src/fry.py", start=4, end=5, choice="left_out")
    await desk.say("What does fry_bread in this project do?")


@story()
async def edit_in_place(desk: Desk) -> None:
    """Lines of a file are edited by an instruction, followed by a second, an answer in prose, and a failing reply."""
    target = {
        "path": str(desk.write("a.py", "import os\n\nx = 1\ny = 2\n")),
        "first": 3,
        "region": ["x = 1", "y = 2"],
        "before": ["import os", ""],
        "filetype": "python",
    }
    await desk.chat("close_chat")
    await desk.chat("open_chat", snapshot=desk.snapshot(), purpose="edit_in_place")
    desk.model(
        reply("placement: replace\n```python\nx = 3\ny = 2\n```\n", one_chunk=True),
        reply("placement: after\n```python\nz = 4\n```\n", one_chunk=True),
        reply("placement: chat\nIt cannot be five.", one_chunk=True),
        reply("placement: replace\n```python\nx = ", finish="length", one_chunk=True),
    )
    for text, region in (("make it three", ["x = 1", "y = 2"]), ("add z", ["x = 3", "y = 2"]), ("five", ["x = 3"])):
        await desk.submit(text, edit={**target, "region": region, "is_follow_up": text != "make it three"})
        await desk.until("edit_ended")
    await desk.submit("six", edit={**target, "region": ["x = 3"]})
    await desk.until("edit_ended")


@story()
async def command_line_purpose(desk: Desk) -> None:
    """A chat without a window, for one kind of request, has its own system prompt and no tools."""
    await desk.chat("close_chat")
    await desk.chat("open_chat", snapshot=desk.snapshot(), purpose="commit_message")
    desk.model(reply("fix: the thing"))
    await desk.say("diff --git a/a b/a")


@story()
async def prompts(desk: Desk) -> None:
    """Prompt files of the user and the project are read, with their properties and mentions outside the project."""
    desk.write(
        "own/explain.md",
        "---\nname: Explain\ndescription: Explain it\nopts:\n  alias: explain\n---\n\n## user\n\nExplain #{buffer}.\n",
    )
    desk.write("own/broken.md", "---\nname: [\n---\n\n## user\n\nHello\n")
    desk.write(".codecompanion/prompts/ours.md", "---\nname: Ours\n---\n\n## user\n\nOf the project.\n")
    await desk.send("list_prompts", cwd=str(desk.work), own_folder=str(desk.work / "own"))
    await desk.send("check_mentions", cwd=str(desk.work), text="Look at #{file:../other.txt} and #{file:.env}")


@story()
async def exported_and_priced(desk: Desk) -> None:
    """A chat is exported to a file for sharing, and its price is shown."""
    usage = {"prompt_tokens": 440, "completion_tokens": 9, "total_tokens": 449}
    desk.model(reply("A heap.", usage=usage))
    await desk.say("What is a priority queue made of?")
    await desk.chat("export_chat", cwd=str(desk.work), path=str(desk.work / "chat.md"), form="md")
    desk.read("chat.md")
    await desk.chat("show_cost", ascii=True)


@story(chat={"budget": 0.01, "budget_warn": 0.005})
async def unknown_requests(desk: Desk) -> None:
    """Requests about a chat that is not open, a missing tool, an unknown item."""
    await desk.send("submit", chat="nobody", submit_id=1, text="Hello", snapshot=desk.snapshot())
    await desk.chat("unpin", item="nothing")
    await desk.chat("show_original", item="nothing")
    await desk.chat("choose_tools", names=["nothing"])
    await desk.chat("undo_change")
    await desk.chat("go_on", snapshot=desk.snapshot())
    await desk.chat("regenerate", snapshot=desk.snapshot())
    await desk.chat("compact")
    await desk.until("state", state="idle")
    await desk.send("show_mcp", cwd=str(desk.work))
