"""All tools of a server chosen together: `@{mcp:server}`, and `@{server}` if nothing else has that name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codecompanion.engine.chats import carry_out
from codecompanion.engine.mcp import McpHost
from codecompanion.errors import InputError
from codecompanion.session.mcp_config.server_entries import Entry
from codecompanion.session.session import Session
from codecompanion.settings_sections import McpServerSettings, ToolGroupSettings
from codecompanion.wire.events import ContextItems, Notice, PackagesMissing, SubmitFailed
from codecompanion.wire.requests import ChangeMcp, ChooseTools, ListTools, UndoChange
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit
from tests.unit.session.mcp_bench import PROPER, server, with_servers

ODD = ["odd__ask", "odd__die", "odd__echo", "odd__huge", "odd__wait"]


def adapter() -> ScriptedAdapter:
    return ScriptedAdapter("s", [says("ok")] * 9)


async def say(bench: Bench, session: Session, text: str) -> list[str]:
    """Send a message; return the names of the tools that the request offered."""
    session.submit(submit(text))
    await bench.idle(session)
    return [spec.name for spec in bench.adapter.requests[-1].tools]


def block(bench: Bench) -> list[tuple[str, str]]:
    """Return the lines of the context block, each with its text."""
    return [(item.label, item.note) for item in bench.of(ContextItems)[-1].items]


async def rows(bench: Bench, session: Session) -> dict[str, Any]:
    """Return the groups of the list by name."""
    listed: Any = await carry_out(bench.services, session, ListTools(chat=session.chat_id))
    return {row["name"]: row for row in listed["groups"]}


def told(bench: Bench) -> list[str]:
    return [event.text for event in bench.of(Notice)]


async def change(host: McpHost, session: Session, what: Any, tool: str = "") -> None:
    await host.carry_out(ChangeMcp(chat=session.chat_id, server="odd", what=what, tool=tool))


@pytest.mark.parametrize("name", ["odd", "mcp:odd", "mcp"])
async def test_a_group_starts_its_server_and_has_exactly_its_tools(tmp_path: Path, name: str) -> None:
    """The group applies from the message that names it on, and is undone and resumed like any other choice."""
    async with with_servers(tmp_path, adapter(), {"odd": server()}) as (bench, session, _):
        assert (await rows(bench, session))["mcp:odd"]["tools"] == []
        assert await say(bench, session, f"@{{{name}}} go") == ODD
        shown = "mcp" if name == "mcp" else "mcp:odd"
        assert block(bench) == [(shown, "5 tools")]
        assert session.log.tools == (f"group:{shown}",)
        assert await say(bench, session, "and @{run_command}") == ["run_command", *ODD]
        await carry_out(bench.services, session, UndoChange(chat="chat-1"))
        await carry_out(bench.services, session, UndoChange(chat="chat-1"))
        assert "read_file" in await say(bench, session, "all again?")
        await say(bench, session, f"@{{{name}}}")
        await session.close()
        resumed = await bench.resume()
        assert resumed is not None
        assert await say(bench, resumed, "go on") == ODD
        assert told(bench) == []


async def test_a_group_follows_its_servers_tools(tmp_path: Path) -> None:
    """It changes after `list_changed` or a toggled tool, is gone and reported after a stop, and returns on restart."""
    replies = [calls(("c1", "odd__echo", "{}")), *[says("ok")] * 9]
    servers = {"odd": server("rename", require_approval_before=False)}
    async with with_servers(tmp_path, ScriptedAdapter("s", replies), servers) as (bench, session, host):
        await say(bench, session, "@{odd} go")
        odd = host.servers.named(tmp_path, "odd")
        await bench.until(lambda: len(odd.tools) == 2)
        assert await say(bench, session, "and now?") == ["odd__echo", "odd__fresh"]
        await change(host, session, "withhold", "fresh")
        assert await say(bench, session, "and now?") == ["odd__echo"]
        assert block(bench) == [("mcp:odd", "1 tool")]
        assert (await rows(bench, session))["mcp:odd"]["tools"] == ["odd__echo"]
        await change(host, session, "stop")
        assert block(bench) == [("mcp:odd", "off")]  # at once
        assert await say(bench, session, "and now?") == []
        assert block(bench) == [("mcp:odd", "off")]
        assert (await rows(bench, session))["mcp:odd"]["state"] == "off"
        await change(host, session, "restart")
        await bench.until(lambda: odd.state.value == "ready")
        assert "odd__echo" in await say(bench, session, "and now?")


@pytest.mark.parametrize("name", ["odd", "mcp:odd"])
async def test_choosing_a_disabled_server_is_reported(tmp_path: Path, name: str) -> None:
    """The server is not in the list either; the message returns to the input with a remedy."""
    async with with_servers(tmp_path, adapter(), {"odd": server(enabled=False)}) as (bench, session, host):
        assert "mcp:odd" not in await rows(bench, session)
        session.submit(submit(f"@{{{name}}} go"))
        await bench.idle(session)
        why = "the MCP server odd is off; start it with `r` in :CodeCompanion mcp."
        assert [one.error for one in bench.of(SubmitFailed)] == [f"Not sent: {why} Your message is back in the input."]
        assert session.log.tools == ()
        for how in ("only", "toggle", "on"):
            with pytest.raises(InputError, match="The MCP server odd is off"):
                await carry_out(bench.services, session, ChooseTools(chat="chat-1", names=(name,), how=how))  # type: ignore[arg-type]
        assert not [row for row in host.servers.status(tmp_path) if row["state"] != "off"]


async def test_a_message_that_names_a_server_waits_for_the_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message waits in the input; each attempt installs the packages if that failed before."""
    async with with_servers(tmp_path, adapter(), {"odd": server()}) as (bench, session, _):
        with monkeypatch.context() as patched:
            patched.setattr("importlib.util.find_spec", lambda name: None)
            for number, text in enumerate(("@{odd} go", "@{mcp:odd} go", "@{odd__echo} go"), 1):
                session.submit(submit(text))
                await bench.idle(session)
                why = "the MCP server odd needs packages that are not installed (:CodeCompanion install mcp); "
                failed = bench.of(SubmitFailed)[-1]
                assert (failed.text, len(bench.of(PackagesMissing))) == (text, number)
                assert failed.error == f"Not sent: {why}try again once they are. Your message is back in the input."
            assert session.log.view.messages == ()
            assert (await rows(bench, session))["mcp:odd"]["state"] == "starts with the next message"
        assert await say(bench, session, "@{odd} go") == ODD


async def test_a_failing_server_is_reported_by_its_group(tmp_path: Path) -> None:
    async with with_servers(tmp_path, adapter(), {"odd": server("die")}) as (bench, session, _):
        assert await say(bench, session, "@{odd} go") == []
        assert block(bench) == [("mcp:odd", "failed")]
        assert (await rows(bench, session))["mcp:odd"]["state"].startswith("failed: it ended; it printed: ")
        assert [text for text in told(bench) if "odd is not running: it ended" in text]


@pytest.mark.parametrize(
    ("name", "said", "offered"),
    [
        ("files", "@{files} is the group of that name; @{mcp:files} chooses the MCP server files.", "read_file"),
        ("memory", "@{memory} is the tool of that name; @{mcp:memory} chooses the MCP server memory.", "memory"),
        ("mine", "@{mine} is the group of that name; @{mcp:mine} chooses the MCP server mine.", "run_command"),
    ],
)
async def test_an_ambiguous_name_is_reported(tmp_path: Path, name: str, said: str, offered: str) -> None:
    """A group, then a tool, takes precedence over the server, which is always available with `mcp:`."""
    async with with_servers(tmp_path, adapter(), {name: server()}) as (bench, session, _):
        own = {"mine": ToolGroupSettings(tools=("run_command",), description="Mine.", system_prompt="", collapse=True)}
        tools = msgspec.structs.replace(bench.services.settings.tools, groups=own)
        bench.services.settings = msgspec.structs.replace(bench.services.settings, tools=tools)
        assert offered in await say(bench, session, f"@{{{name}}} go")
        assert told(bench) == [said]
        await say(bench, session, f"@{{{name}}} again")
        assert told(bench) == [said]
        names = await say(bench, session, f"@{{mcp:{name}}} now")
        assert f"{name}__echo" in names
        assert told(bench) == [said]


async def test_a_users_group_may_have_the_name_of_a_server(tmp_path: Path) -> None:
    """It takes precedence, starts only its own servers, and the overridden server is reported."""
    async with with_servers(tmp_path, adapter(), {"odd": server()}) as (bench, session, host):
        group = ToolGroupSettings(tools=("read_file",), description="Mine.", system_prompt="", collapse=True)
        tools = msgspec.structs.replace(bench.services.settings.tools, groups={"mcp:odd": group})
        bench.services.settings = msgspec.structs.replace(bench.services.settings, tools=tools)
        assert await say(bench, session, "@{mcp:odd} go") == ["read_file"]
        assert told(bench) == ["@{mcp:odd} is your own group of that name, not all tools of the MCP server odd."]
        assert host.servers.status(tmp_path)[0]["state"] == "not started"


async def test_names_a_message_cannot_contain_are_written_with_underscores(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Underscores are used as in the tools' names; of two clashing servers the first gets the group, as reported."""
    servers = {"my server": server(), "my_server": server(), "x" * 100: server()}
    async with with_servers(tmp_path, adapter(), servers) as (bench, session, _):
        groups = await rows(bench, session)
        assert {name for name in groups if name.startswith("mcp:")} == {"mcp:my_server", f"mcp:{'x' * 64}"}
        assert "my_server__echo" in await say(bench, session, "@{my_server} go")
        sentence = "@{mcp:my_server} chooses the tools of the MCP server my server; those of the MCP server my_server"
        assert f"{sentence} have no group." in caplog.messages


async def test_a_chat_can_begin_with_the_tools_of_a_server(tmp_path: Path) -> None:
    """`default_tools` may name a server; one that no project names is reported once the chat has looked for it."""
    async with with_servers(tmp_path, adapter(), {"odd": server()}) as (bench, session, _):
        tools = msgspec.structs.replace(bench.services.settings.tools, default_tools=("mcp:odd", "mcp:gone"))
        bench.services.settings = msgspec.structs.replace(bench.services.settings, tools=tools)
        assert await say(bench, session, "go") == ODD
        key = "interactions.chat.tools.opts.default_tools"
        assert [one for one in bench.services.mistakes if one == f"{key}: there is no tool mcp:gone here."]


async def test_a_server_of_a_file_appears_and_disappears_with_its_group(tmp_path: Path) -> None:
    async with with_servers(tmp_path, adapter(), {}) as (bench, session, host):
        table = server(cmd=[sys.executable, str(PROPER)])
        entry = Entry(name="proper", settings=msgspec.convert(table, McpServerSettings), source="f")
        host.servers.use_of_files(tmp_path, [entry])
        assert await say(bench, session, "@{proper} go") == ["proper__add"]
        host.servers.use_of_files(tmp_path, [])
        assert await say(bench, session, "and now?") == []
        assert block(bench) == [("mcp:proper", "unavailable")]
        session.submit(submit("@{mcp:proper} again"))
        await bench.idle(session)
        assert "There is no tool or group named mcp:proper".lower() in bench.of(SubmitFailed)[-1].error.lower()
