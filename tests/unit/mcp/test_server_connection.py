"""A connection to a misbehaving server: each fault is one sentence, and nothing is left behind."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from codecompanion.mcp.server_spec import ServerSpec
from codecompanion.mcp.server_types import McpError
from tests.mcp.listener import HOSTILE, Listener, connected, connection, over_http, recorded, spec, until
from tests.patience import PATIENCE_S

PROPER = HOSTILE.with_name("proper.py")


async def test_a_tool_is_called_and_its_answer_returned() -> None:
    async with connected() as server:
        assert [tool.name for tool in server.offer.tools] == ["echo", "wait", "die", "huge", "ask"]
        assert (await server.call("echo", {"text": "ü"}, 30)).text == "echo: ü"


async def test_garbage_between_messages_is_skipped_and_kept_for_the_log() -> None:
    listener = Listener()
    async with connected("garbage", listener=listener) as server:
        assert (await server.call("echo", {"text": "a"}, 30)).text == "echo: a"
    assert any("Welcome!" in line for line in listener.logs)


async def test_endless_output_without_a_message_ends_the_start() -> None:
    with pytest.raises(McpError, match="1,000 lines that are not messages"):
        async with connected("endless"):
            pass


async def test_a_message_that_is_too_long_ends_the_connection_with_a_reason() -> None:
    listener = Listener()
    async with connected(listener=listener) as server:
        with pytest.raises(McpError, match="longer than 16 MB"):
            await server.call("huge", {}, 60)
        await until(lambda: bool(listener.ended), "the end")
    assert listener.ended == ["it sent a message longer than 16 MB"]


async def test_a_server_that_asks_without_reading_answers_ends_the_connection() -> None:
    """Each of its requests waits in memory until the answer is written."""
    async with connected("asking") as server:
        with pytest.raises(McpError, match="sent 1,000 requests without reading an answer"):
            await server.call("echo", {"text": "a"}, 60)


async def test_a_server_that_does_not_start_is_given_up_and_ended() -> None:
    with pytest.raises(McpError, match=r"did not start within 0\.5 s"):
        async with connected("hang", start_timeout_s=0.5):
            pass


async def test_starts_interrupted_at_any_moment_are_reported_and_leave_nothing_open() -> None:
    """A limit of 1 ms ends while the supervisor starts, 60 ms during the server's hello.

    `tests/leftovers.py` checks the rest.
    """
    async with connected():  # imports what the first start needs
        pass
    for moment_s in (0.001, 0.001, 0.002, 0.003, 0.004, 0.006, 0.01, 0.02, 0.06):
        with pytest.raises(McpError, match=f"did not start within {moment_s:g} s"):
            async with connected("hang", start_timeout_s=moment_s):
                pass


async def test_a_server_that_exits_at_once_is_reported_with_its_output() -> None:
    listener = Listener()
    with pytest.raises(McpError, match="it ended"):
        async with connected("die", listener=listener):
            pass
    assert "stderr: I cannot start" in listener.logs


async def test_a_missing_program_is_named() -> None:
    one = spec()
    missing = connection(type(one)(name="x", command=("no-such-program-here",)), Listener())
    with pytest.raises(McpError, match="no-such-program-here was not found on the PATH"):
        await missing.open()
    nowhere = connection(type(one)(name="x", command=("sh",), cwd="/no/such/folder"), Listener())
    with pytest.raises(McpError, match="its working folder /no/such/folder does not exist"):
        await nowhere.open()


async def test_a_call_over_its_limit_is_cancelled_at_the_server(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with connected(record=record) as server:
        with pytest.raises(McpError, match=r"did not answer within 0\.2 s"):
            await server.call("wait", {}, 0.2)
        await until(lambda: _cancelled(record), "the server to be told")
        assert (await server.call("echo", {"text": "still"}, 30)).text == "echo: still"


async def test_a_call_stopped_by_the_user_is_cancelled_at_the_server(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with connected(record=record) as server:
        call = asyncio.create_task(server.call("wait", {}, 60))
        await until(lambda: any(one.get("method") == "tools/call" for one in recorded(record)), "the call")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: _cancelled(record), "the server to be told")


def _cancelled(record: Path) -> bool:
    called = [one["id"] for one in recorded(record) if one.get("method") == "tools/call"]
    told = [one["params"]["requestId"] for one in recorded(record) if one.get("method") == "notifications/cancelled"]
    return bool(called) and told == called


async def test_a_server_that_dies_in_a_call_is_an_error_of_that_call() -> None:
    listener = Listener()
    async with connected(listener=listener) as server:
        with pytest.raises(McpError, match="it ended"):
            await server.call("die", {}, 30)
        await until(lambda: listener.ended == ["it ended"], "the end")
        assert not server.is_open
    assert "stderr: Traceback: boom" in listener.logs


async def test_duplicate_and_unrequested_answers_change_nothing() -> None:
    async with connected("twice", "wrong-ids") as server:
        for text in ("a", "b", "c"):
            assert (await server.call("echo", {"text": text}, 30)).text == f"echo: {text}"


async def test_a_changed_tool_list_is_used() -> None:
    listener = Listener()
    async with connected("rename", listener=listener) as server:
        before = server.offer.tools[0]
        await server.call("echo", {}, 30)
        await until(lambda: listener.changes > 0, "the new list")
        assert [tool.name for tool in server.offer.tools] == ["echo", "fresh"]
        assert server.offer.tools[0] != before


async def test_a_flood_of_changes_causes_only_a_few_requests(tmp_path: Path) -> None:
    record, listener = tmp_path / "record", Listener()
    async with connected("flood", record=record, listener=listener) as server:
        await until(lambda: listener.changes > 0, "the new list")
        assert (await server.call("echo", {"text": "a"}, 30)).text == "echo: a"
        assert len([one for one in recorded(record) if one.get("method") == "tools/list"]) < 100


async def test_ten_thousand_tools_are_accepted_and_more_are_reported() -> None:
    async with connected("many") as server:
        assert len(server.offer.tools) == 10_000
        assert server.offer.left_out == ("More than 10,000 tools are offered; the rest are ignored",)


async def test_an_endless_list_ends() -> None:
    async with connected("endless-pages") as server:
        assert len(server.offer.tools) == 200
        assert server.offer.left_out


async def test_a_list_that_is_none_is_one_sentence() -> None:
    with pytest.raises(McpError, match="violates the protocol: tools"):
        async with connected("no-list"):
            pass


async def test_over_http_a_tool_is_called_with_the_users_headers(tmp_path: Path) -> None:
    record = tmp_path / "record"
    async with over_http(record=record, headers={"Authorization": "Bearer abc"}) as server:
        await server.open()
        assert (await server.call("echo", {"text": "a"}, 30)).text == "echo: a"
    assert {one["headers"].get("Authorization") for one in recorded(record)} == {"Bearer abc"}


async def test_over_http_an_answer_that_is_too_long_is_an_error_of_the_call() -> None:
    async with over_http() as server:
        await server.open()
        with pytest.raises(McpError):
            await server.call("huge", {}, 60)


async def test_over_http_garbage_and_silence_are_errors_of_the_call() -> None:
    async with over_http("garbage") as server:
        await server.open()
        with pytest.raises(McpError):
            await server.call("echo", {}, 30)
        with pytest.raises(McpError, match=r"did not answer within 0\.2 s"):
            await server.call("wait", {}, 0.2)


async def test_over_http_a_refused_key_is_reported_and_not_shown() -> None:
    async with over_http("wrong-key") as server:
        with pytest.raises(McpError) as raised:
            await server.open()
    assert "sk-very-secret" not in str(raised.value)


async def test_an_address_without_an_answer_is_reported() -> None:
    one = spec()
    nobody = connection(type(one)(name="x", url="http://127.0.0.1:1/mcp"), Listener())
    with pytest.raises(McpError, match="cannot be reached"):
        await nobody.open()


async def test_a_server_of_the_2026_protocol_provides_tools_resources_and_prompts() -> None:
    one = ServerSpec(name="proper", command=(sys.executable, str(PROPER)), start_timeout_s=PATIENCE_S)
    server = connection(one, Listener())
    await server.open()
    try:
        assert (server.server_name, server.protocol) == ("proper", "2026-07-28")
        assert (await server.call("add", {"one": 1, "other": 2}, 30)).text == "3"
        assert [resource.uri for resource in server.offer.resources] == ["note://today"]
        assert (await server.read("note://today", 30)).text == "Water the plants."
        assert [(prompt.name, prompt.arguments) for prompt in server.offer.prompts] == [
            ("greet", (("name", True, ""), ("also", False, "")))
        ]
        assert (await server.prompt("greet", {"name": "Eve"}, 30)).text == "Say hello to Eve."
        failed = await server.call("add", {"one": "x", "other": 2}, 30)
        assert failed.is_error
    finally:
        await server.close()
