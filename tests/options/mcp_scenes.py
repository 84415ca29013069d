"""Scenes of MCP servers: a server that reports its folder, files that list servers, and a server with a URL."""

from __future__ import annotations

import json
from typing import Any, cast

from codecompanion.wire import events, requests
from tests.options.desk import Desk, Given
from tests.options.host import Host, play, steady
from tests.providers.chat.answers import Call, reply

SERVER = {"command": "true", "args": []}


async def _shown(host: Host) -> Any:
    return cast(Any, await host.runtime.handle(requests.ShowMcp(chat="chat")))


def told(desk: Desk, given: Given) -> Any:
    """Let the model call the tool `mine` of the server `mine`."""

    async def act(host: Host) -> Any:
        if (known := host.runtime._chats["chat"].servers_known) is not None:
            await known
        begun = [(one["name"], one["state"]) for one in (await _shown(host))["servers"]]
        await host.say("Tell me")
        tools = [one["function"]["name"] for body in host.bodies() for one in body.get("tools", [])]
        asked = [event.name for event in host.of(events.ApprovalRequested)]
        results = [(event.status, steady(event.preview or event.summary)) for event in host.of(events.ToolFinished)]
        return begun, tools, asked, results, host.notices()

    return play(desk, given, act, [reply(calls=[Call("mine__mine", "{}", "call_1")]), reply("I see.")])


def listed(desk: Desk, given: Given) -> Any:
    """List the MCP servers if a project configures some."""

    def prepare(host: Host) -> None:
        (host.work / ".mcp.json").write_text(json.dumps({"mcpServers": {"ours": SERVER}}))

    async def act(host: Host) -> Any:
        found = await _shown(host)
        return steady(str(found["files"])), [one["name"] for one in found["servers"]]

    return play(desk, given, act, prepare=prepare)


def reached(desk: Desk, given: Given) -> Any:
    """Talk to a server with a URL; return the requests that it receives."""

    async def act(host: Host) -> Any:
        await host.say("Hello")
        sent = {(one.path, one.headers.get("x-mine", "")) for one in desk.filler.requests}
        return sorted(sent), host.notices()

    desk.filler.requests.clear()
    return play(desk, given, act)
