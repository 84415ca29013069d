"""Tools: parallel calls, approvals, file changes, failures, commands, user-defined tools, MCP."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.golden.desk import Desk, story
from tests.patience import PATIENCE_S
from tests.providers.chat.answers import Call, reply

HOSTILE = Path(__file__).parents[1] / "mcp" / "hostile.py"
EDITS = ("read_file", "insert_edit", "create_file", "delete_file")
TEXT = "alpha = 1\nbeta = 2\ngamma = 3\n"


def call(name: str, id: str = "c1", **arguments: Any) -> Call:
    """Return a tool call."""
    return Call(name, json.dumps(arguments), id)


def edit(old: str, new: str, id: str = "c1", path: str = "a.py") -> Call:
    """Return a call that replaces a text in a file."""
    return call("insert_edit", id, path=path, old_text=old, new_text=new)


@story(tools=("read_file", "file_search"))
async def parallel_calls(desk: Desk) -> None:
    """Three calls in one reply read two files and search; the results have the order of the calls."""
    desk.write("a.txt", "one\n")
    desk.write("b.txt", "two\n")
    calls = [call("read_file", "c1", path="a.txt"), call("read_file", "c2", path="b.txt")]
    calls.append(call("file_search", "c3", pattern="*.txt"))
    desk.model(reply("I look at all.", calls=calls), reply("One and two."))
    await desk.say("What is in the files?")
    await desk.chat("show_original", item="c2")


@story(tools=("read_file", "run_command"))
async def failing_tools(desk: Desk) -> None:
    """The calls name a missing file, a file outside the project, invalid JSON arguments and an unknown tool."""
    desk.model(
        reply(calls=[call("read_file", "c1", path="missing.txt")]),
        reply(calls=[call("read_file", "c2", path="../../etc/passwd")]),
        reply(calls=[Call("read_file", '{"path": ', "c3"), call("fly", "c4", to="Rome")]),
        reply(calls=[call("read_file", "c5", path="a.txt", lines="all")]),
        reply("I give up."),
    )
    await desk.say("Try everything")


@story(tools=EDITS)
async def edit_accepted(desk: Desk) -> None:
    """A file is changed after the user approves it once; the change can be shown, reverted and restored."""
    desk.write("a.py", TEXT)
    desk.model(reply("I change it.", calls=[edit("beta = 2", "beta = 22")]), reply("Done."))
    await desk.submit("Make beta 22")
    await desk.approve("once")
    await desk.until("turn_finished")
    desk.read("a.py")
    changes = await desk.chat("list_changes", hunks=True)
    change = changes[0]["change_id"]
    await desk.chat("show_change", change_id=change)
    await desk.chat("revert_changes", changes=[change])
    desk.read("a.py")
    await desk.chat("list_changes")


@story(tools=EDITS)
async def edit_rejected(desk: Desk) -> None:
    """The user rejects an edit with a reason; the model reads the reason, and the file is unchanged."""
    desk.write("a.py", TEXT)
    desk.model(reply(calls=[edit("beta = 2", "beta = 22")]), reply("Then not."))
    await desk.submit("Make beta 22")
    await desk.approve("reject", reason="it has to stay 2")
    await desk.until("turn_finished")
    desk.read("a.py")


@story(tools=EDITS)
async def edit_changed_by_the_user(desk: Desk) -> None:
    """The user edits a proposed change and accepts it; the model sees the difference."""
    desk.write("a.py", TEXT)
    desk.model(reply(calls=[edit("beta = 2", "beta = 22")]), reply("Fine, 23."))
    await desk.submit("Make beta larger")
    await desk.approve("once", text="alpha = 1\nbeta = 23\ngamma = 3\n")
    await desk.until("turn_finished")
    desk.read("a.py")


@story(tools=EDITS)
async def approved_always(desk: Desk) -> None:
    """After "always", the tool does not ask again in this chat until the user revokes it."""
    desk.write("a.py", TEXT)
    desk.model(
        reply(calls=[edit("beta = 2", "beta = 22")]),
        reply(calls=[edit("gamma = 3", "gamma = 33", "c2")]),
        reply("Both."),
    )
    await desk.submit("Make beta 22 and gamma 33")
    await desk.approve("always")
    await desk.until("turn_finished")
    grants = await desk.chat("list_grants")
    await desk.chat("revoke_grant", grant=grants[0]["grant"])
    desk.model(reply(calls=[edit("alpha = 1", "alpha = 11", "c3")]), reply("All three."))
    await desk.submit("And alpha 11")
    await desk.approve("once")
    await desk.until("turn_finished")
    desk.read("a.py")


@story(tools=EDITS)
async def approval_cancelled(desk: Desk) -> None:
    """The user stops the turn at a question; the calls that did not run still get their results."""
    desk.write("a.py", TEXT)
    calls = [edit("beta = 2", "beta = 22"), call("read_file", "c2", path="a.py")]
    desk.model(reply("Two calls.", calls=calls), reply("I see."))
    await desk.submit("Change and read it")
    await desk.approve("cancel")
    await desk.until("turn_finished")
    await desk.say("What now?")


@story(tools=EDITS, yolo=True)
async def files_made_and_deleted(desk: Desk) -> None:
    """Without approvals a file is created; deleting still asks; an edit that does not match fails."""
    desk.model(
        reply(calls=[call("create_file", "c1", path="new/b.py", content="b = 1\n")]),
        reply(calls=[edit("c = 1", "c = 2", "c2", "new/b.py")]),
        reply(calls=[call("delete_file", "c3", path="new/b.py")]),
        reply("Made and deleted."),
    )
    await desk.submit("Make a file, change it, delete it")
    await desk.approve("once")
    await desk.until("turn_finished")
    desk.read("new/b.py")
    await desk.chat("list_changes")


@story(tools=EDITS, yolo=True)
async def file_open_in_the_editor(desk: Desk) -> None:
    """Unsaved buffer text takes precedence: the tool reads and changes it there."""
    desk.write("a.py", TEXT)
    desk.open_in_editor("a.py", TEXT.replace("beta = 2", "beta = 7"), modified=True)
    desk.model(
        reply(calls=[call("read_file", "c1", path="a.py")]),
        reply(calls=[edit("beta = 7", "beta = 8", "c2")]),
        reply("Eight."),
    )
    await desk.say("What is beta? Add one")
    desk.read("a.py")


@story(tools=("run_command",))
async def commands(desk: Desk) -> None:
    """The user approves a command and all others with its prefix; the next one does not ask; one fails."""
    desk.model(
        reply(calls=[call("run_command", "c1", command="echo one")]),
        reply(calls=[call("run_command", "c2", command="echo two; exit 3")]),
        reply(calls=[call("run_command", "c3", command="echo one")]),
        reply("It failed once."),
    )
    await desk.submit("Run something")
    await desk.approve("always")
    await desk.approve("once")
    await desk.until("turn_finished")
    await desk.chat("set_yolo", on=True)
    desk.model(reply(calls=[call("run_command", "c4", command="rm -rf nothing")]), reply("Gone."))
    await desk.submit("Remove it")
    await desk.approve("reject")
    await desk.until("turn_finished")


@story(tools=("run_command",), yolo=True)
async def command_stopped(desk: Desk) -> None:
    """The user stops a running command."""
    desk.model(reply(calls=[call("run_command", "c1", command="echo begun; touch begun; sleep 60")]), reply("Stopped."))
    await desk.submit("Run something long")
    await desk.approve("once")
    await desk.until_file("begun")
    await desk.chat("cancel")
    await desk.until("turn_finished")
    await desk.say("Well?")


@story(
    tools=("read_file",),
    more={
        "tools": {
            "own": {
                "weather": {
                    "python": "",
                    "description": "Tell the weather of a town.",
                    "parameters": {
                        "type": "object",
                        "properties": {"town": {"type": "string"}},
                        "required": ["town"],
                    },
                    "settings": {
                        "enabled": True,
                        "require_approval_before": False,
                        "allowed_in_yolo_mode": True,
                        "timeout_s": 60,
                    },
                }
            }
        }
    },
)
async def own_tool(desk: Desk) -> None:
    """A user-defined tool runs in the editor; it answers once and fails once."""
    desk.own_tools["weather"] = lambda arguments: (
        {"text": "Rain."} if arguments["town"] == "Bergen" else {"text": "No such town.", "is_error": True}
    )
    calls = [call("weather", "c1", town="Bergen"), call("weather", "c2", town="Nowhere")]
    desk.model(reply(calls=calls), reply("It rains in Bergen."))
    await desk.submit("How is the weather?")
    await desk.approve("once")
    await desk.until("turn_finished")


@story(tools=("read_file", "file_search", "memory"))
async def chosen_tools(desk: Desk) -> None:
    """The user switches tools off and on; the next request offers the ones that are on."""
    desk.model(reply("One."), reply("Two."), reply("Three."))
    await desk.say("First")
    await desk.chat("choose_tools", names=["file_search"], how="off")
    await desk.say("Second")
    await desk.chat("choose_tools", names=["read_file"], how="only")
    await desk.chat("list_tools")
    await desk.say("Third")


@story(tools=("read_file",), more={"tools": {"max_result_chars": 700}})
async def long_result(desk: Desk) -> None:
    """An oversized result is shown to the model as head and tail, and stored completely."""
    desk.write("long.txt", "".join(f"line {number} of the file\n" for number in range(1, 61)))
    desk.model(reply(calls=[call("read_file", path="long.txt")]), reply("Sixty lines."))
    await desk.say("How long is it?")
    await desk.chat("show_original", item="c1")


@story(
    tools=("read_file",),
    more={
        "mcp": {
            "wait_s": PATIENCE_S,
            "servers": {
                "odd": {
                    "enabled": True,
                    "cmd": [sys.executable, str(HOSTILE)],
                    "timeout_s": PATIENCE_S,
                    "start_timeout_s": PATIENCE_S,
                }
            },
        }
    },
)
async def mcp_server(desk: Desk) -> None:
    """A tool of an MCP server asks for approval, runs, and is rejected."""
    desk.model(reply(calls=[call("odd__echo", "c1", text="hello")]), reply("It says hello."))
    await desk.submit("Say hello")
    await desk.approve("once")
    await desk.until("turn_finished")
    desk.model(reply(calls=[call("odd__echo", "c2", text="again")]), reply("Then not."))
    await desk.submit("Again")
    await desk.approve("reject")
    await desk.until("turn_finished")


@story(tools=("read_file",), chat={"max_provider_requests_per_turn": 2})
async def request_limit(desk: Desk) -> None:
    """A turn ends at the limit of requests; the user may continue it."""
    desk.write("a.txt", "one\n")
    for number in range(1, 4):
        desk.model(reply(calls=[call("read_file", f"c{number}", path="a.txt")]))
    await desk.say("Read it for ever")


@story(tools=("memory",))
async def memory_tool(desk: Desk) -> None:
    """The model writes to its memory and reads it in another chat."""
    desk.model(
        reply(calls=[call("memory", "c1", command="create", path="/memories/a.md", file_text="The user likes tea.\n")]),
        reply(calls=[call("memory", "c2", command="view", path="/memories")]),
        reply("I know."),
    )
    await desk.say("I like tea")
