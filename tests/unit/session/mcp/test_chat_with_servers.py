"""Tools of MCP servers in a chat: approved, run, logged and undone like all others."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codecompanion.engine.chats import carry_out
from codecompanion.engine.mcp import McpHost
from codecompanion.errors import MissingKey
from codecompanion.session.mcp_config.server_entries import Entry
from codecompanion.settings_sections import McpServerSettings
from codecompanion.wire.events import ApprovalRequested, Notice, PackagesMissing, ToolFinished, TurnFinished
from codecompanion.wire.events import State as StateEvent
from codecompanion.wire.requests import Approve, ListTools, ReadMcp
from tests.mcp.listener import recorded
from tests.unit.session.fakes import ScriptedAdapter, calls, says, submit
from tests.unit.session.mcp_bench import PROPER, server, with_servers

ECHO = ("c1", "odd__echo", '{"text": "hello"}')


async def test_no_server_starts_before_the_first_message(tmp_path: Path) -> None:
    async with with_servers(tmp_path, ScriptedAdapter("s", [says("ok")]), {"odd": server()}) as (bench, session, host):
        assert [row["state"] for row in host.servers.status(tmp_path)] == ["not started"]
        session.submit(submit("go"))
        await bench.idle(session)
        assert [row["state"] for row in host.servers.status(tmp_path)] == ["ready"]
        names = [spec.name for spec in bench.adapter.requests[0].tools]
        assert names[-5:] == ["odd__ask", "odd__die", "odd__echo", "odd__huge", "odd__wait"]


async def test_a_call_asks_and_its_result_is_an_ordinary_message(tmp_path: Path) -> None:
    adapter = ScriptedAdapter("s", [calls(ECHO), says("done")])
    async with with_servers(tmp_path, adapter, {"odd": server()}) as (bench, session, _):
        session.submit(submit("go"))
        await bench.until(lambda: bool(bench.of(ApprovalRequested)))
        asked = bench.of(ApprovalRequested)[0]
        assert asked.title == "echo of the MCP server odd"
        assert '"text": "hello"' in asked.body
        session.desk.answer(Approve(call_id="c1", decision="once"))
        await bench.idle(session)
        result = session.log.view.messages[-2]
        assert (result.role, result.text) == ("tool", "echo: hello")
        assert bench.of(ToolFinished)[0].status == "ok"


async def test_a_rejected_call_reaches_no_server(tmp_path: Path) -> None:
    record = tmp_path / "record"
    adapter = ScriptedAdapter("s", [calls(ECHO), says("done")])
    servers = {"odd": server(env={"RECORD": str(record)})}
    async with with_servers(tmp_path, adapter, servers) as (bench, session, _):
        session.submit(submit("go"))
        await bench.until(lambda: bool(bench.of(ApprovalRequested)))
        session.desk.answer(Approve(call_id="c1", decision="reject"))
        await bench.idle(session)
    assert not any(one.get("method") == "tools/call" for one in recorded(record))


async def test_a_servers_hints_about_its_tools_approve_nothing(tmp_path: Path) -> None:
    """`readOnlyHint` and orders in the description are ignored: the tool asks even in YOLO mode; text is truncated."""
    adapter = ScriptedAdapter("s", [calls(("c1", "odd__innocent", "{}")), says("done")])
    async with with_servers(tmp_path, adapter, {"odd": server("inject")}) as (bench, session, host):
        session.desk.approvals = session.desk.approvals.with_yolo(True)
        session.submit(submit("go"))
        await bench.until(lambda: bool(bench.of(ApprovalRequested)))
        assert "read-only, according to the server" in bench.of(ApprovalRequested)[0].body
        session.desk.answer(Approve(call_id="c1", decision="reject"))
        await bench.idle(session)
        request = bench.adapter.requests[0]
        spec = next(one for one in request.tools if one.name == "odd__innocent")
        assert len(spec.description) <= 2_000
        assert "IGNORE ALL" not in "".join(message.text for message in request.messages)
        names = [row["name"] for row in host.servers.status(tmp_path)[0]["tools"]]
        assert all(len(name) <= 64 and name.replace("_", "").replace("-", "").isalnum() for name in names)
        assert len(set(names)) == 3


async def test_the_configuration_decides_which_tools_ask_and_exist(tmp_path: Path) -> None:
    adapter = ScriptedAdapter("s", [calls(ECHO), says("done")])
    tools = {"echo": {"require_approval_before": False}, "die": {"enabled": False}}
    async with with_servers(tmp_path, adapter, {"odd": server(tools=tools)}) as (bench, session, host):
        session.submit(submit("go"))
        await bench.idle(session)
        assert not bench.of(ApprovalRequested)
        assert bench.of(ToolFinished)[0].status == "ok"
        assert "odd__die" not in [spec.name for spec in bench.adapter.requests[0].tools]
        host.servers.named(tmp_path, "odd").switch("wait", False)
        session.submit(submit("again"))


async def test_a_changed_tool_is_asked_about_again(tmp_path: Path) -> None:
    """A rug pull: "always" applied to the tool as it was described."""
    adapter = ScriptedAdapter("s", [calls(ECHO), calls(("c2", "odd__echo", "{}")), says("done")])
    async with with_servers(tmp_path, adapter, {"odd": server("rename")}) as (bench, session, _):
        session.submit(submit("go"))
        await bench.until(lambda: bool(bench.of(ApprovalRequested)))
        session.desk.answer(Approve(call_id="c1", decision="always"))
        told = "The description of odd__echo (MCP server odd) has changed since you chose “always”. It will ask again."
        await bench.until(lambda: len(bench.of(ApprovalRequested)) == 2)
        await bench.until(lambda: told in [event.text for event in bench.of(Notice)])
        assert not session.desk.approvals.always
        session.desk.answer(Approve(call_id="c2", decision="once"))
        await bench.idle(session)


async def test_a_server_that_dies_in_a_call_yields_a_result_and_is_restarted(tmp_path: Path) -> None:
    adapter = ScriptedAdapter("s", [calls(("c1", "odd__die", "{}")), says("done")])
    servers = {"odd": server(require_approval_before=False)}
    async with with_servers(tmp_path, adapter, servers) as (bench, session, host):
        session.submit(submit("go"))
        await bench.idle(session)
        assert bench.of(ToolFinished)[0].status == "error"
        assert "The MCP server odd: it ended." in session.log.view.messages[-2].text
        odd = host.servers.named(tmp_path, "odd")
        await bench.until(lambda: odd.state.value == "ready")
        assert "Traceback: boom" in "\n".join(odd.log)


async def test_a_stopped_call_is_cancelled_at_the_server(tmp_path: Path) -> None:
    record = tmp_path / "record"
    adapter = ScriptedAdapter("s", [calls(("c1", "odd__wait", "{}"))])
    servers = {"odd": server(require_approval_before=False, env={"RECORD": str(record)})}
    async with with_servers(tmp_path, adapter, servers) as (bench, session, _):
        session.submit(submit("go"))
        await bench.until(lambda: any(one.get("method") == "tools/call" for one in recorded(record)))
        session.cancel()
        await bench.idle(session)
        await bench.until(lambda: any(one.get("method") == "notifications/cancelled" for one in recorded(record)))
        assert session.log.view.messages[-1].role == "tool"


async def test_a_call_that_times_out_yields_a_result(tmp_path: Path) -> None:
    adapter = ScriptedAdapter("s", [calls(("c1", "odd__wait", "{}")), says("done")])
    servers = {"odd": server(require_approval_before=False, timeout_s=0.3)}
    async with with_servers(tmp_path, adapter, servers) as (bench, session, _):
        session.submit(submit("go"))
        await bench.idle(session)
        assert "did not answer within 0.3 s" in session.log.view.messages[-2].text


async def test_a_message_waits_only_so_long_for_a_server(tmp_path: Path) -> None:
    async with with_servers(tmp_path, ScriptedAdapter("s", [says("ok")]), {"odd": server("hang")}, wait_s=0.2) as parts:
        bench, session, _ = parts
        session.submit(submit("go"))
        await bench.idle(session)
        assert "starting odd (MCP)" in [event.label for event in bench.of(StateEvent)]
        told = "The MCP server odd is still starting; its tools will be in a later request."
        assert told in [event.text for event in bench.of(Notice)]


async def test_a_server_that_fails_to_start_is_reported_once_with_its_last_output(tmp_path: Path) -> None:
    adapter = ScriptedAdapter("s", [says("ok"), says("ok")])
    async with with_servers(tmp_path, adapter, {"odd": server("die")}) as (bench, session, _):
        for text in ("go", "again"):
            session.submit(submit(text))
            await bench.idle(session)
        told = [event.text for event in bench.of(Notice) if "MCP" in event.text]
        assert told == [
            "The MCP server odd is not running: it ended; it printed: I cannot start. :CodeCompanion mcp shows more."
        ]


async def test_schemas_no_provider_accepts_are_fixed_or_the_tool_is_left_out(tmp_path: Path) -> None:
    async with with_servers(tmp_path, ScriptedAdapter("s", [says("ok")]), {"odd": server("odd-schemas")}) as parts:
        bench, session, host = parts
        session.submit(submit("go"))
        await bench.idle(session)
        offered = {spec.name: spec.parameters for spec in bench.adapter.requests[0].tools if "__" in spec.name}
        assert set(offered) == {"odd__endless", "odd__fine", "odd__one_of"}
        assert "$ref" not in json.dumps(offered)
        assert offered["odd__one_of"]["properties"] == {"a": {"type": "string"}}
        problems = {row["own_name"]: row["problem"] for row in host.servers.status(tmp_path)[0]["tools"]}
        assert problems["huge"] == "its schema is too large"
        assert "http://127.0.0.1:1/schema" in problems["far"]


async def test_of_ten_thousand_tools_only_as_many_as_providers_accept_are_offered(tmp_path: Path) -> None:
    async with with_servers(tmp_path, ScriptedAdapter("s", [says("ok")]), {"odd": server("many")}) as parts:
        bench, session, host = parts
        session.submit(submit("go"))
        await bench.idle(session)
        assert len([spec for spec in bench.adapter.requests[0].tools if "__" in spec.name]) == 128
        assert "more than 128 tools" in host.servers.status(tmp_path)[0]["tools"][-1]["problem"]


async def test_a_servers_keys_are_shown_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "kq7-planted-4f1c9d20e8b7"
    monkeypatch.setenv("ODD_KEY", key)
    adapter = ScriptedAdapter("s", [calls(("c1", "odd__echo", json.dumps({"text": f"it is {key}"}))), says("done")])
    servers = {"odd": server(require_approval_before=False, env={"TOKEN": "${ODD_KEY}", "PLAIN": key})}
    async with with_servers(tmp_path, adapter, servers) as (bench, session, host):
        session.submit(submit("go"))
        await bench.idle(session)
        assert key not in session.log.view.messages[-2].text
        assert key not in json.dumps(host.servers.status(tmp_path))
        assert key not in repr(bench.services.settings)


async def test_an_unset_variable_is_named(tmp_path: Path) -> None:
    servers = {"odd": server(env={"TOKEN": "${NOT_SET_ANYWHERE}"})}
    async with with_servers(tmp_path, ScriptedAdapter("s", [says("ok")]), servers) as (bench, session, host):
        session.submit(submit("go"))
        await bench.idle(session)
        problem = host.servers.status(tmp_path)[0]["problem"]
        assert problem == "mcp.servers.odd.env.TOKEN: the environment variable NOT_SET_ANYWHERE is not set"


async def test_missing_packages_are_reported_and_the_editor_is_asked_to_install_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    """Once for all servers and chats, by the editor, which knows how; the page shows it for each server."""
    servers = {"odd": server(), "two": server()}
    async with with_servers(tmp_path, ScriptedAdapter("s", [says("ok")] * 2), servers) as (bench, session, host):
        session.submit(submit("go"))
        await bench.idle(session)
        other = await bench.open("chat-2")
        other.submit(msgspec.structs.replace(submit("go"), chat="chat-2"))
        await bench.idle(other)
        assert [event.extra for event in bench.of(PackagesMissing)] == ["mcp"]
        without = "Sent without the tools of odd, two: the packages for MCP servers are not installed yet."
        assert [(event.chat, event.text) for event in bench.of(Notice)] == [("chat-1", without), ("chat-2", without)]
        rows = host.servers.status(tmp_path)
        assert {row["problem"] for row in rows} == {"the packages for MCP servers are not installed"}
        assert all(row["lacks_packages"] for row in rows)


async def test_a_server_that_is_not_running_is_reported_in_one_chat(tmp_path: Path) -> None:
    """The same problem is not reported again in each chat, but a different one is."""
    replies = [says("ok")] * 3
    async with with_servers(tmp_path, ScriptedAdapter("s", replies), {"odd": server("die")}) as (bench, session, _):
        chats = [session, await bench.open("chat-2"), await bench.open("chat-3")]
        for chat in chats:
            chat.submit(msgspec.structs.replace(submit("go"), chat=chat.chat_id))
            await bench.idle(chat)
        assert len([event for event in bench.of(Notice) if "is not running" in event.text]) == 1


async def test_resources_and_prompts_are_read_and_attached(tmp_path: Path) -> None:
    servers = {"proper": server(cmd=[sys.executable, str(PROPER)])}
    async with with_servers(tmp_path, ScriptedAdapter("s", [says("ok")]), servers) as (bench, session, host):
        chat = session.chat_id
        read = ReadMcp(chat=chat, server="proper", uri="note://today")
        assert await host.carry_out(read) == {"text": "Water the plants.", "images": 0}
        prompt = ReadMcp(chat=chat, server="proper", prompt="greet", arguments={"name": "Eve"})
        assert await host.carry_out(prompt) == {"text": "Say hello to Eve.", "images": 0}
        await host.carry_out(ReadMcp(chat=chat, server="proper", uri="note://today", attach=True))
        session.submit(submit("go"))
        await bench.idle(session)
        assert any("Water the plants." in message.text for message in bench.adapter.requests[0].messages)


async def test_a_server_named_again_keeps_running_and_a_changed_entry_replaces_it(tmp_path: Path) -> None:
    """Each chat of a project names its servers; they are replaced only if the file has changed."""
    async with with_servers(tmp_path, ScriptedAdapter("s", [says("ok")]), {}) as (bench, session, host):
        entry = Entry(name="odd", settings=msgspec.convert(server(), McpServerSettings), source="f")
        host.servers.use_of_files(tmp_path, [entry])
        session.submit(submit("go"))
        await bench.idle(session)
        first = host.servers.named(tmp_path, "odd")
        assert host.servers.use_of_files(tmp_path, [msgspec.structs.replace(entry)]) == []
        assert host.servers.named(tmp_path, "odd") is first
        other = msgspec.structs.replace(entry, settings=msgspec.convert(server("garbage"), McpServerSettings))
        assert host.servers.use_of_files(tmp_path, [other]) == []
        assert host.servers.named(tmp_path, "odd") is not first
        await bench.until(lambda: first.state.value == "off")
        assert not [spec for spec in session.control.tools.offered().specs() if spec.name.startswith("odd__")]


def states(host: McpHost, root: Path) -> dict[str, str]:
    return {row["name"]: row["state"] for row in host.servers.status(root)}


@pytest.mark.parametrize(
    ("text", "started"),
    [
        ("@{none} go", set()),
        ("@{files} go", set()),
        ("@{odd__echo} go", {"odd"}),
        ("@{files} and @{two__echo}", {"two"}),
        ("@{full} go", {"odd", "two"}),
        ("@{odd} go", {"odd"}),
        ("@{files} and @{mcp:two}", {"two"}),
        ("@{mcp} go", {"odd", "two"}),
    ],
)
async def test_only_servers_whose_tools_may_be_sent_are_started(tmp_path: Path, text: str, started: set[str]) -> None:
    """A message waits for no other server; a tool of a server that is not started yet can be named."""
    servers = {"odd": server(), "two": server()}
    async with with_servers(tmp_path, ScriptedAdapter("s", [says("ok")]), servers) as (bench, session, host):
        session.submit(submit(text))
        await bench.idle(session)
        assert {name for name, state in states(host, tmp_path).items() if state == "ready"} == started
        assert set(states(host, tmp_path).values()) <= {"ready", "not started"}
        assert not bench.of(Notice)
        waits = [event.label for event in bench.of(StateEvent) if "MCP" in event.label]
        assert bool(waits) == bool(started)
        sent = {spec.name.partition("__")[0] for spec in bench.adapter.requests[0].tools if "__" in spec.name}
        assert sent == started


async def test_a_configured_tool_of_a_server_starts_it(tmp_path: Path) -> None:
    """The tool's name is known before the server starts, so the choice is not mistaken for an empty one."""
    servers = {"odd": server(), "two": server()}
    async with with_servers(tmp_path, ScriptedAdapter("s", [says("ok")]), servers) as (bench, session, host):
        settings = bench.services.settings
        chosen = msgspec.structs.replace(settings.tools, default_tools=("odd__echo",))
        bench.services.settings = msgspec.structs.replace(settings, tools=chosen)
        session.submit(submit("go"))
        await bench.idle(session)
        assert [spec.name for spec in bench.adapter.requests[0].tools] == ["odd__echo"]
        assert states(host, tmp_path) == {"odd": "ready", "two": "not started"}


class Keyless(ScriptedAdapter):
    """An adapter whose key is not set."""

    async def require_key(self) -> None:
        raise MissingKey("s: no key.")


async def test_no_server_starts_for_a_request_that_cannot_be_sent(tmp_path: Path) -> None:
    """Without a key the request fails immediately."""
    adapter = Keyless("s", [[MissingKey("s: no key.")]])
    async with with_servers(tmp_path, adapter, {"odd": server()}) as (bench, session, host):
        session.submit(submit("go"))
        await bench.idle(session)
        assert states(host, tmp_path) == {"odd": "not started"}
        assert [event.error for event in bench.of(TurnFinished)] == ["s: no key."]


async def test_the_page_and_the_tool_list_show_the_same_token_count(tmp_path: Path) -> None:
    """A tool's tokens are counted once; servers that have not started yet are in the list."""
    async with with_servers(tmp_path, ScriptedAdapter("s", [says("ok")]), {"odd": server()}) as parts:
        bench, session, host = parts

        async def listed() -> Any:
            return await carry_out(bench.services, session, ListTools(chat="chat-1"))

        def group(rows: Any) -> Any:
            return next(row for row in rows["groups"] if row["name"] == "mcp:odd")

        assert group(await listed())["state"] == "starts with the next message"
        session.submit(submit("go"))
        await bench.idle(session)
        now = await listed()
        ours = {row["name"]: row["tokens"] for row in now["tools"] if row["source"] == "MCP server odd"}
        (page,) = host.servers.status(tmp_path)
        assert {tool["name"]: tool["tokens"] for tool in page["tools"]} == ours
        assert page["tokens"] == sum(ours.values()) > 0
        assert group(now)["state"] == ""
        assert group(now)["tools"] == list(ours)
        assert group(now)["tokens"] == page["tokens"]
        assert {spec.name for spec in bench.adapter.requests[-1].tools} >= set(ours)


async def test_a_server_does_not_see_the_editors_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a server could ask the editor for its keys."""
    for name in ("NVIM", "NVIM_LISTEN_ADDRESS", "HARMLESS"):
        monkeypatch.setenv(name, "/run/user/1000/nvim.1.0")
    shown = tmp_path / "shown"
    servers = {"odd": {"enabled": True, "cmd": ["/bin/sh", "-c", f"env > {shown}"]}}
    async with with_servers(tmp_path, ScriptedAdapter("s", [says("done")]), servers) as (bench, session, _):
        session.submit(submit("go"))
        await bench.idle(session)
    names = {line.partition("=")[0] for line in shown.read_text().splitlines()}
    assert "HARMLESS" in names
    assert not {"NVIM", "NVIM_LISTEN_ADDRESS"} & names
