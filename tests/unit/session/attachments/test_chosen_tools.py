"""Tools chosen in a chat: the tools that are sent, their events in the log, and undo."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from codecompanion.engine.chats import carry_out
from codecompanion.errors import InputError
from codecompanion.model.history import ViewChanged
from codecompanion.session.session import Session
from codecompanion.settings_sections import ToolGroupSettings
from codecompanion.tools.tool_provider import GivenTools
from codecompanion.wire.events import ContextItems, Meter, Notice, SubmitFailed
from codecompanion.wire.requests import ChooseTools, Detach, ListTools, RedoChange, UndoChange
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit
from tests.unit.tools.test_toolbox import tool

READ_ONLY = ["read_file", "file_search", "grep_search", "code_search", "get_diagnostics"]


def start(tmp_path: Path, **tools: Any) -> Bench:
    return Bench(tmp_path, ScriptedAdapter("s", [says("ok")] * 20), tools=tools)


async def say(bench: Bench, session: Session, text: str) -> list[str]:
    """Send a message; return the names of the tools that the request offered."""
    session.submit(submit(text))
    await bench.idle(session)
    return [spec.name for spec in bench.adapter.requests[-1].tools]


def block(bench: Bench) -> list[tuple[str, str]]:
    """Return the lines of the context block."""
    return [(item.kind, item.label) for item in bench.of(ContextItems)[-1].items]


async def test_a_choice_applies_from_the_messages_own_request_on(tmp_path: Path) -> None:
    """All tools are offered until one is named; then only those, and further names add to them."""
    bench = start(tmp_path)
    session = await bench.open()
    everything = await say(bench, session, "hello")
    assert len(everything) == 10
    before = session.control.measured().tokens
    assert await say(bench, session, "now @{read_only} only") == READ_ONLY
    assert bench.adapter.requests[-1].messages[-1].text == "now @{read_only} only"
    assert session.control.measured().tokens < before
    assert block(bench) == [("group", "read_only")]
    assert await say(bench, session, "and @{run_command}, @{read_only}") == [*READ_ONLY, "run_command"]
    assert await say(bench, session, "still") == [*READ_ONLY, "run_command"]
    assert await say(bench, session, "@{none}") == []
    assert block(bench) == [("group", "none")]
    assert await say(bench, session, "@{full}") == everything


ESSENTIAL = ["read_file", "grep_search", "insert_edit", "run_command"]


@pytest.mark.parametrize("window", [2_048, 4_096, 8_192])
async def test_a_small_window_offers_few_tools_until_some_are_chosen(tmp_path: Path, window: int) -> None:
    """With 2,048 tokens and default options nothing could be sent: the tools alone exceeded the window."""
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("ok")] * 9), window=window)
    session = await bench.open()
    assert await say(bench, session, "hello") == ESSENTIAL
    control = session.control
    assert control.meter.counter.tools(control.specs) <= 0.2 * window
    held_back = bench.of(Meter)[-1].held_back
    assert isinstance(held_back, tuple)
    assert {"memory", *ESSENTIAL} & set(held_back) == {"memory"}
    listed = await carry_out(bench.services, session, ListTools(chat="chat-1"))
    assert listed["is_default"]
    assert {row["name"]: row["why_not"] for row in listed["tools"]}["memory"] == "held back in a small window"
    assert [row["name"] for row in listed["tools"] if row["on"]] == ESSENTIAL
    assert f"this small window ({window:,} tokens; all tools take 2,116)" in listed["note"]
    assert "memory, recall. /tools full offers all." in listed["note"]
    await carry_out(bench.services, session, ChooseTools(chat="chat-1", names=("memory",)))
    assert await say(bench, session, "with memory") == [*ESSENTIAL, "memory"]
    listed = await carry_out(bench.services, session, ListTools(chat="chat-1"))
    assert listed["note"] == ""
    assert bench.of(Meter)[-1].held_back is UNSET
    await carry_out(bench.services, session, ChooseTools(chat="chat-1", names=("full",), how="only"))
    assert len(control.specs) == 10
    await carry_out(bench.services, session, ChooseTools(chat="chat-1", names=(), how="only"))
    assert await say(bench, session, "again") == ESSENTIAL
    assert session.log.tools == ()


async def test_configured_tools_count_as_a_choice_in_a_small_window(tmp_path: Path) -> None:
    settings = {"default_tools": ("full",)}
    bench = Bench(tmp_path, ScriptedAdapter("s", [says("ok")]), window=8_192, tools=settings)
    session = await bench.open()
    assert len(await say(bench, session, "hello")) == 10
    assert session.control.tools.held_back == ()


def test_the_system_prompt_is_short_if_it_would_exceed_a_twentieth(tmp_path: Path) -> None:
    def prompt(window: int) -> str:
        bench = Bench(tmp_path, ScriptedAdapter("s", []), window=window, tools={"enabled": False})
        return asyncio.run(bench.open()).control.system_message.text

    assert len({prompt(window) for window in (3_300, 100_000)}) == 1
    assert 4 * len(prompt(3_000)) < 3 * len(prompt(3_300))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("@{read_onl} look", "there is no tool or group named read_onl; did you mean @{read_only}?"),
        (
            "@{zzz} @{files}",
            "there is no tool or group named zzz; /tools lists them; in backticks it is plain text.",
        ),
    ],
)
async def test_an_unknown_name_is_not_sent(tmp_path: Path, text: str, why: str) -> None:
    """Otherwise a mistyped restriction would be sent with all tools."""
    bench = start(tmp_path)
    session = await bench.open()
    session.submit(submit(text))
    await bench.idle(session)
    assert [(one.text, one.error) for one in bench.of(SubmitFailed)] == [
        (text, f"Not sent: {why} Your message is back in the input.")
    ]
    assert bench.adapter.requests == []
    assert session.log.tools == ()
    assert session.log.view.messages == ()
    assert await say(bench, session, "`@{read_onl}` as text, @{read_only}") == READ_ONLY


async def test_an_unknown_name_is_not_sent_in_a_running_turn(tmp_path: Path) -> None:
    """Only that queued message is returned; the others are sent."""
    bench = start(tmp_path)
    session = await bench.open()
    session.submit(submit("first", 1))
    session.submit(submit("@{fiels} second", 2))
    session.submit(submit("third", 3))
    await bench.idle(session)
    assert [one.submit_id for one in bench.of(SubmitFailed)] == [2]
    said = [message.text for message in session.log.view.messages if message.role == "user"]
    assert said == ["first", "third"]


async def test_undo_redo_resume_and_branches_restore_the_choice(tmp_path: Path) -> None:
    bench = start(tmp_path)
    session = await bench.open()
    everything = await say(bench, session, "hello")
    await say(bench, session, "@{read_only} please")
    sentence = await carry_out(bench.services, session, UndoChange(chat="chat-1"))
    assert "the tool selection (read_only) reverted" in str(sentence)
    assert await say(bench, session, "all again?") == everything
    await carry_out(bench.services, session, ChooseTools(chat="chat-1", names=("files",), how="only"))
    await carry_out(bench.services, session, UndoChange(chat="chat-1"))
    assert session.log.tools == ()
    await carry_out(bench.services, session, RedoChange(chat="chat-1"))
    assert session.log.tools == ("group:files",)
    assert block(bench) == [("group", "files")]
    await session.close()
    resumed = await bench.resume()
    assert resumed is not None
    assert resumed.log.tools == ("group:files",)
    offered = await say(bench, resumed, "go on")
    assert "insert_edit" in offered
    assert "run_command" not in offered


async def test_removing_a_line_of_the_block_removes_its_tools(tmp_path: Path) -> None:
    """`dd` removes the line and `u` restores it; if none are left, the configuration applies."""
    bench = start(tmp_path)
    session = await bench.open()
    everything = await say(bench, session, "hello")
    await say(bench, session, "@{read_only} @{run_command}")
    await carry_out(bench.services, session, Detach(chat="chat-1", items=("tools:group:read_only",)))
    assert await say(bench, session, "x") == ["run_command"]
    await carry_out(bench.services, session, Detach(chat="chat-1", items=("tools:tool:run_command",)))
    assert block(bench) == []
    assert await say(bench, session, "y") == everything
    await carry_out(bench.services, session, UndoChange(chat="chat-1"))
    assert block(bench) == [("tool", "run_command")]


async def test_the_list_toggles_tools_and_counts_tokens(tmp_path: Path) -> None:
    bench = start(tmp_path)
    bench.services.tools.add(GivenTools("the server demo", [tool("late", "Comes from elsewhere. And more.")]))
    session = await bench.open()

    async def choose(*names: str, how: Any = "toggle") -> str:
        return str(await carry_out(bench.services, session, ChooseTools(chat="chat-1", names=names, how=how)))

    listed: Any = await carry_out(bench.services, session, ListTools(chat="chat-1"))
    rows = {row["name"]: row for row in listed["tools"]}
    assert rows["late"]["source"] == "the server demo"
    assert rows["read_file"]["asks"] is False
    assert rows["run_command"]["asks"] is True
    assert sum(row["tokens"] for row in listed["tools"] if row["sent"]) == pytest.approx(listed["tokens"], rel=0.05)
    assert listed["is_default"]
    assert [group["name"] for group in listed["groups"]] == ["full", "files", "read_only", "none"]
    assert (await choose("run_command")).startswith("10 tools offered in this chat, about ")
    assert block(bench) == [("group", "full"), ("tool", "without run_command")]
    assert "run_command" not in await say(bench, session, "x")
    await choose("run_command")
    assert block(bench) == []
    assert session.log.tools == ()
    await choose("read_only", "late", how="only")
    assert await say(bench, session, "x") == [*READ_ONLY, "late"]
    await choose("read_only", how="off")
    assert await say(bench, session, "x") == ["late"]
    await choose("late")
    assert session.log.tools == ("group:none",)
    await choose(how="only")
    assert session.log.tools == ()
    with pytest.raises(InputError, match="no tool or group named raed_file; did you mean read_file"):
        await choose("raed_file")


async def test_a_chat_begins_with_the_configured_tools(tmp_path: Path) -> None:
    groups = {
        "mine": ToolGroupSettings(
            tools=("read_file", "gone"), description="Mine.", system_prompt="Read first.", collapse=True
        ),
        "files": None,
    }
    bench = start(tmp_path, groups=groups, default_tools=("mine",))
    session = await bench.open()
    assert await say(bench, session, "x") == ["read_file"]
    assert bench.adapter.requests[-1].messages[0].text.endswith("\n\nRead first.")
    assert block(bench) == [("group", "mine")]
    await say(bench, session, "@{files}")
    assert "no tool or group named files" in bench.of(SubmitFailed)[-1].error
    assert await say(bench, session, "@{run_command}") == ["read_file", "run_command"]
    items = ("tools:group:mine", "tools:tool:run_command")
    await carry_out(bench.services, session, Detach(chat="chat-1", items=items))
    assert await say(bench, session, "x") == []
    assert "Read first." not in bench.adapter.requests[-1].messages[0].text


async def test_a_chat_without_a_choice_logs_nothing_about_tools(tmp_path: Path) -> None:
    bench = start(tmp_path)
    session = await bench.open()
    await say(bench, session, "hello @you and user@{host}")
    assert not any(isinstance(event.payload, ViewChanged) for event in await session.log.events())
    assert block(bench) == [] if bench.of(ContextItems) else True


async def test_tools_cannot_be_toggled_during_a_turn(tmp_path: Path) -> None:
    import asyncio

    gate = asyncio.Event()
    bench = Bench(tmp_path, ScriptedAdapter("s", [(gate, *says("ok"))]))
    session = await bench.open()
    session.submit(submit("go"))
    await bench.until(lambda: bool(bench.adapter.requests))
    with pytest.raises(InputError, match="Wait until the reply is complete"):
        await carry_out(bench.services, session, ChooseTools(chat="chat-1", names=("files",)))
    gate.set()
    await bench.idle(session)
    assert session.log.tools == ()


async def shown(bench: Bench, session: Session) -> dict[str, dict[str, Any]]:
    """Return the rows of the list by name."""
    listed: Any = await carry_out(bench.services, session, ListTools(chat="chat-1"))
    return {row["name"]: row for row in listed["tools"]}


@pytest.mark.parametrize("choice", [(), ("files",), ("memory",), ("none",)])
@pytest.mark.parametrize("removed", [False, True])
async def test_the_list_marks_exactly_the_tools_of_the_next_request(
    tmp_path: Path, choice: tuple[str, ...], removed: bool
) -> None:
    """This includes `recall`, which no choice names: it is offered once something was removed, and not before."""
    bench = start(tmp_path)
    session = await bench.open()
    await say(bench, session, "hello")
    await carry_out(bench.services, session, ChooseTools(chat="chat-1", names=choice, how="only"))
    if removed:
        await session.context.remove("detached", (session.log.view.messages[0].id,))
    rows = await shown(bench, session)
    marked = [name for name, row in rows.items() if row["sent"]]
    assert sorted(await say(bench, session, "and?")) == sorted(marked)
    assert ("recall" in marked) == (removed and choice != ("none",))
    assert bool(rows["recall"]["why_not"]) == (not removed and choice != ("none",))


@pytest.mark.parametrize("choice", [(), ("files",), ("none",)])
async def test_recall_is_toggled_like_other_tools(tmp_path: Path, choice: tuple[str, ...]) -> None:
    bench = start(tmp_path)
    session = await bench.open()
    await say(bench, session, "hello")
    await session.context.remove("detached", (session.log.view.messages[0].id,))
    await carry_out(bench.services, session, ChooseTools(chat="chat-1", names=choice, how="only"))
    was = (await shown(bench, session))["recall"]["sent"]
    for expected in (not was, was):
        await carry_out(bench.services, session, ChooseTools(chat="chat-1", names=("recall",), how="toggle"))
        assert (await shown(bench, session))["recall"]["sent"] == expected
        assert ("recall" in await say(bench, session, "and?")) == expected


class Late:
    """A provider that loads late, with the names of its tools."""

    source = "your configuration"

    def __init__(self, *names: str) -> None:
        self.names, self.waited, self.is_settled = names, 0, False

    def tools(self, root: Path) -> tuple[Any, ...]:
        return tuple(map(tool, self.names)) if self.is_settled else ()

    def may_bring(self, name: str, root: Path) -> bool:
        return not self.is_settled and name in self.names

    async def settle(self, root: Path) -> None:
        self.waited += 1
        self.is_settled = True


@pytest.mark.parametrize(
    ("text", "waited"),
    [("hello", 1), ("@{none}", 0), ("@{files}", 0), ("@{late}", 1), ("@{own}", 1), ("@{files} @{late}", 1)],
)
async def test_a_request_waits_for_a_provider_only_if_it_would_send_its_tools(
    tmp_path: Path, text: str, waited: int
) -> None:
    """Tools that are not loaded yet can be named, and are ready when the request is sent."""
    provider = Late("late")
    group = ToolGroupSettings(tools=("late",), description="Mine.", system_prompt="", collapse=True)
    bench = start(tmp_path, groups={"own": group})
    bench.services.tools.add(provider)
    session = await bench.open()
    assert ("late" in await say(bench, session, text)) == bool(waited)
    assert provider.waited == waited
    assert not [notice.text for notice in bench.of(Notice)]
