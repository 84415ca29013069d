"""Streaming: text is inserted above the input, and the visible text does not move (lessons 31, 46, 50)."""

from __future__ import annotations

import re

import pytest

from chat_driver import ChatDriver
from codecompanion.wire import events


def start(chat: ChatDriver) -> None:
    """Send a message and begin the reply."""
    chat.accept("go")
    chat.push(events.State(state="streaming", label="streaming"), events.ReplyStarted(adapter="openai", model="gpt-4o"))


def highlight(chat: ChatDriver, text: str) -> dict[str, object]:
    """Return the attributes of the first cell of `text` on the screen."""
    row = chat.nvim.row(text)
    return chat.nvim.highlight_at(row, chat.nvim.screen().split("\n")[row].index(text))


def test_chunks_form_the_original_text(chat_everywhere: ChatDriver) -> None:
    """This works wherever the text is split: between lines, within a line or within a fence."""
    chat = chat_everywhere
    text = "First line\n\n```lua\nlocal x = 1\n```\n\n- one\n- two ✓ 😀\n\nlast"
    start(chat)
    for number in range(0, len(text), 3):
        chat.push_soon(events.Text(text=text[number : number + 3]))
    chat.drain()
    chat.push(events.ReplyFinished(message_id="r", stop="stop"), events.TurnFinished(reason="done"))
    assert chat.text() == f"## Me\ngo\n\n## CodeCompanion (openai · gpt-4o)\n{text}\n\n## Me\n"


def test_blank_lines_around_a_reply_are_not_shown(chat: ChatDriver) -> None:
    """Models often begin and end with newlines."""
    start(chat)
    chat.push(
        events.Text(text="\n\n"), events.Text(text="body\n\n\n"), events.ReplyFinished(message_id="r", stop="stop")
    )
    assert chat.text() == "## Me\ngo\n\n## CodeCompanion (openai · gpt-4o)\nbody\n\n## Me\n"


def test_the_state_is_shown_above_the_input_and_in_the_status_line(chat: ChatDriver) -> None:
    """The state is in words, with the key that stops it."""
    start(chat)
    screen = chat.nvim.wait_screen("⋯ streaming · q to stop")
    assert screen.split("\n")[-2].startswith(" streaming · gpt-4o")
    chat.push(events.TurnFinished(reason="done"))
    assert "streaming" not in chat.nvim.screen()


def test_a_heading_in_a_reply_does_not_look_like_a_header(chat_everywhere: ChatDriver) -> None:
    """A model that writes `## Me` does not seem to speak for the user: headers are lines with their own background."""
    chat = chat_everywhere
    start(chat)
    chat.push(events.Text(text="## Me\n\nI am not you.\n"), events.ReplyFinished(message_id="r", stop="stop"))
    chat.push(events.TurnFinished(reason="done"))
    rows = chat.nvim.wait_screen("I am not you").split("\n")
    said = [row for row, line in enumerate(rows) if line.startswith("## ")]
    assert [rows[row].split("  ")[0].strip() for row in said] == [
        "## Me", "## CodeCompanion (openai · gpt-4o)", "## Me", "## Me",
    ]  # fmt: skip
    grounds = [chat.nvim.highlight_at(row, 60).get("background") for row in said]
    assert grounds[0] is not None
    assert grounds == [grounds[0], grounds[0], None, grounds[0]]


def test_a_paragraph_taller_than_the_window_stays_visible(chat_everywhere: ChatDriver) -> None:
    """Models write paragraphs without line breaks: the end stays above the input while they grow and after `G`."""
    chat = chat_everywhere
    start(chat)
    for number in range(400):
        chat.push_soon(events.Text(text=f"word{number} and some more, "))
    chat.drain()
    above_input = r"word399 and some more,\s*\n(?:[^\n]*\n){1,3}## Me"
    chat.nvim.wait_screen(above_input)
    assert "<<<" in chat.nvim.screen()
    chat.push(events.ReplyFinished(message_id="r", stop="stop"), events.TurnFinished(reason="done"))
    chat.nvim.feed("gg")
    chat.nvim.wait_screen("^## Me")
    chat.nvim.feed("G")
    chat.nvim.wait_screen(above_input)


def test_a_window_at_the_input_follows_the_reply(chat_everywhere: ChatDriver) -> None:
    """The input stays at the bottom, the newest text above it."""
    chat = chat_everywhere
    start(chat)
    for number in range(100):
        chat.push(events.Text(text=f"line {number}\n"))
    chat.nvim.settle()
    rows = chat.nvim.screen().split("\n")
    assert "line 99" in rows[-8:-4]
    assert rows[-4].startswith("## Me")


def test_a_window_scrolled_up_does_not_move(chat_everywhere: ChatDriver) -> None:
    """Nothing moves under the cursor: not text, tools or the context block."""
    chat = chat_everywhere
    start(chat)
    chat.push(events.Text(text="".join(f"line {number}\n" for number in range(200))))
    chat.nvim.feed("gg60Gzt")
    chat.nvim.settle()
    before = chat.nvim.screen().split("\n")[:20]
    cursor = chat.nvim.lua("return vim.api.nvim_get_current_line()")
    for number in range(30):
        chat.push(events.Text(text=f"more {number}\n"))
    chat.push(events.ToolStarted(call_id="1", name="t", title="t"))
    chat.push(events.ContextItems(items=(events.ContextItem(id="a", kind="file", label="x.lua"),)))
    chat.push(events.Meter(tokens=1, window=10, ratio=0.1, exact=True))
    chat.nvim.settle()
    assert chat.nvim.screen().split("\n")[:20] == before
    assert chat.nvim.lua("return vim.api.nvim_get_current_line()") == cursor


def test_an_endless_line_is_shown_in_parts(chat: ChatDriver) -> None:
    """A line that never ends must not cost more with every chunk."""
    start(chat)
    text = "0123456789" * 3000
    for number in range(0, len(text), 1000):
        chat.push_soon(events.Text(text=text[number : number + 1000]))
    chat.drain()
    lines = [line for line in chat.text().split("\n") if line.startswith("0123") or line[:1].isdigit()]
    assert "".join(lines) == text
    assert max(map(len, lines)) <= 4100


def test_a_long_burst_arrives_complete_and_in_order(chat: ChatDriver) -> None:
    """Thousands of chunks with a tool call among them keep their order."""
    start(chat)
    first = [events.Text(text=f"a{number}\n") for number in range(3000)]
    second = [events.Text(text=f"b{number}\n") for number in range(3000)]
    chat.push(*first, events.ToolStarted(call_id="1", name="t", title="the tool"), *second)
    lines = [line for line in chat.text().split("\n") if line[:1] in "ab▸" and line]
    assert lines == [f"a{n}" for n in range(3000)] + ["▸ the tool"] + [f"b{n}" for n in range(3000)]


def test_finished_markdown_has_treesitter_colours(chat_everywhere: ChatDriver) -> None:
    """Bold text, code of an injected language and headings are highlighted individually."""
    chat = chat_everywhere
    start(chat)
    chat.push(
        events.Text(text="some **strong** text\n\n```lua\nlocal value = 1\n```\n\n# Heading\nend"),
        events.ReplyFinished(message_id="r", stop="stop"),
        events.TurnFinished(reason="done"),
    )
    chat.nvim.wait_for(lambda: highlight(chat, "local value").get("bold"), "a bold Lua keyword")
    chat.nvim.wait_for(lambda: highlight(chat, "strong").get("bold"), "bold text")
    assert highlight(chat, "# Heading").get("bold")
    assert not highlight(chat, "end").get("bold")


def test_streaming_text_has_colours(chat: ChatDriver) -> None:
    """Headings and code are highlighted before the reply ends."""
    start(chat)
    chat.push(events.Text(text="# Heading\nuse `code` now"))
    chat.nvim.wait_for(lambda: highlight(chat, "# Heading").get("bold"), "a bold heading")
    assert highlight(chat, "`code`") != highlight(chat, "now")


def test_a_long_chat_has_no_highlighter_on_the_whole_buffer(nvim_factory: object, chat: ChatDriver) -> None:
    """Lesson 46: a treesitter highlighter started by the user's autocmds is detached from a long chat."""
    chat.nvim.lua("vim.treesitter.start(0, 'markdown')")
    start(chat)
    chat.push(events.Text(text="x\n" * 2500), events.ReplyFinished(message_id="r", stop="stop"))
    chat.push(events.Text(text="again"))
    assert not chat.nvim.lua("return vim.treesitter.highlighter.active[vim.api.nvim_get_current_buf()] ~= nil")


def test_reasoning_is_folded_while_it_grows(chat_everywhere: ChatDriver) -> None:
    """The fold shows its length; opening it shows the text."""
    chat = chat_everywhere
    start(chat)
    chat.push(events.Reasoning(text="first thought\n"))
    for number in range(10):
        chat.push(events.Reasoning(text=f"thought {number}\n"))
    chat.nvim.wait_screen(r"▸ reasoning · 1\d lines")
    assert "thought 3" not in chat.nvim.screen()
    chat.push(events.Text(text="So: 42"), events.ReplyFinished(message_id="r", stop="stop"))
    screen = chat.nvim.wait_screen("So: 42")
    assert "thought 3" not in screen
    assert "▸ reasoning · 11 lines" in screen
    chat.toggle_fold("reasoning")
    chat.nvim.wait_screen("thought 3")


def test_an_incomplete_reply_is_marked(chat: ChatDriver) -> None:
    """Lesson 39: a truncated reply never looks complete."""
    start(chat)
    chat.push(events.Text(text="half an ans"), events.ReplyFinished(message_id="r", stop="cut"))
    chat.push(events.TurnFinished(reason="failed", error="openai: the connection was lost."))
    assert "half an ans\n\n✗ openai: the connection was lost.\n\n## Me" in chat.text()
    assert "the connection was lost. · gr retries" in chat.nvim.screen()


def test_a_header_shows_the_configured_name_of_an_adapter(chat: ChatDriver) -> None:
    """`formatted_name` works in a table and in the result of a function."""
    for entry in ("{ formatted_name = 'Loop' }", "function() return { formatted_name = 'Loop' } end"):
        chat.nvim.lua(f"require('codecompanion.config').options.adapters.http.openai = {entry}")
        start(chat)
        chat.reply("an answer")
        assert chat.text().rsplit("## CodeCompanion", 1)[1].startswith(" (Loop · gpt-4o)\n")


def test_the_mark_of_a_truncated_reply_fits_after_a_full_row(chat_everywhere: ChatDriver) -> None:
    """Virtual text after a line is cut at the window's edge, so the mark continues in the next row."""
    chat = chat_everywhere
    for text in ("y" * 100, "y" * 95, "word " * 19 + "ended", "x" * 200):
        start(chat)
        chat.push(events.Text(text=text), events.ReplyFinished(message_id="r", stop="cut"))
        chat.push(events.TurnFinished(reason="failed", error="openai: the connection was lost."))
        chat.nvim.wait_for(lambda text=text: text in chat.text(), text)
        chat.nvim.feed("Gzb")
        shown = chat.nvim.screen().rsplit("## CodeCompanion", 1)[1]
        assert "✗cutoff" in "".join(shown.split()), shown


def test_a_stopped_reply_is_not_called_incomplete(chat: ChatDriver) -> None:
    """The sentence "Stopped." is enough."""
    start(chat)
    chat.push(events.Text(text="half"), events.ReplyFinished(message_id="r", stop="cut"))
    chat.push(events.TurnFinished(reason="stopped"))
    assert "half\n\n· Stopped.\n\n## Me" in chat.text()


def test_the_wait_for_a_starting_server_is_shown(chat: ChatDriver) -> None:
    """The seconds continue from poll to poll.

    Two seconds without a poll mean that the server has accepted the request.
    """
    start(chat)
    look = {"reason": "x", "attempt": 1, "wait_ms": 1000}
    waiting = {"brief": "loading the model", "waiting": "llama.cpp is loading the model"}
    chat.push(events.Retrying(**look, **waiting))
    chat.nvim.wait_screen(r"⋯ llama\.cpp is loading the model · 1 s · q to stop")
    chat.push(events.Retrying(**look, **waiting))
    chat.nvim.wait_screen(r"⋯ llama\.cpp is loading the model · [23] s · q to stop")
    assert chat.nvim.lua("return vim.b.codecompanion_chat.label").startswith("loading the model · ")
    chat.nvim.wait_for(lambda: "loading" not in chat.nvim.screen(), "the end of the wait")


def test_a_retry_is_visible_and_counts_down(chat: ChatDriver) -> None:
    """Lesson 38: the retry and its wait are shown once, without a blocking message."""
    start(chat)
    chat.push(events.Retrying(reason="rate limited: " + "words " * 30, brief="rate limited", attempt=1, wait_ms=3000))
    chat.nvim.wait_screen(r"⋯ rate limited · trying again in 3 s · q to stop")
    chat.nvim.wait_screen(r"⋯ rate limited · trying again in 2 s · q to stop")
    assert chat.nvim.lua("return vim.b.codecompanion_chat.label").startswith("trying again in")
    assert "rate limited" not in chat.nvim.lua("return require('codecompanion').statusline()")
    chat.push(events.Text(text="at last"))
    assert "trying again" not in chat.nvim.screen()
    assert not chat.nvim.blocked()
    assert chat.nvim.messages() == ""


def test_a_failure_is_one_sentence_in_the_buffer(chat: ChatDriver) -> None:
    """Lesson 38: no JSON, no hit-enter prompt, no second copy."""
    start(chat)
    error = "openai: the server answered 500 three times; press gr to try again."
    chat.push(events.RequestFailed(verb="submit", error=error), events.TurnFinished(reason="failed", error=error))
    chat.nvim.settle()
    assert chat.text().count(error) == 1
    assert f"✗ {error}" in chat.nvim.screen().replace("\n", "")
    assert chat.nvim.messages() == ""
    assert not chat.nvim.blocked()


def test_the_stop_key_cancels_only_a_running_turn(chat: ChatDriver) -> None:
    """`q` is harmless in an idle chat."""
    chat.nvim.feed("q")
    chat.nvim.settle()
    assert chat.sent("cancel") == []
    start(chat)
    chat.nvim.feed("q")
    chat.nvim.wait_for(lambda: chat.sent("cancel"), "cancel")
    chat.push(events.TurnFinished(reason="stopped"))
    assert "· Stopped." in chat.nvim.screen()


CONTROL = "a\x00b\x1b[31mc\x07"


def test_control_bytes_are_drawn_and_break_nothing(chat: ChatDriver) -> None:
    """In any text from the model or the user, they cause no E976 and are not shown as `0z…`.

    The request is unchanged.
    """
    fields = {"call_id": "c1", "name": f"t{CONTROL}", "title": f"tool {CONTROL}"}
    sent = chat.submit(f"mine {CONTROL}")
    assert chat.sent("submit")[-1]["text"] == f"mine {CONTROL}"
    chat.push(
        events.State(state="streaming", label=f"label {CONTROL}"),
        events.MessageSent(submit_id=sent, message_id="m", text=f"mine {CONTROL}", cycle=1),
        events.ReplyStarted(adapter="openai", model="gpt-4o"),
        events.Text(text=f"text {CONTROL}\nmore {CONTROL}"),
        events.ReplyFinished(message_id="r", stop="tool_calls"),
        events.ToolStarted(**fields),
        events.ToolFinished(message_id="t", summary=CONTROL, preview=f"{CONTROL}\n{CONTROL}", status="ok", **fields),
        events.ApprovalRequested(call_id="c2", name=CONTROL, title=CONTROL, body=f"{CONTROL}\n{CONTROL}"),
        events.ContextItems(items=(events.ContextItem(id="a", kind="file", label=CONTROL),)),
        events.Notice(level="WARN", text=CONTROL),
    )
    screen = chat.nvim.wait_screen("tool a.@b")
    assert "0z" not in screen
    assert "text a^@b" in screen
    chat.answer(
        "preview", {"title": CONTROL, "text": f"# {CONTROL}\n- {CONTROL * 30}", "filetype": "diff", "state": ""}
    )
    chat.nvim.feed("gp")
    chat.nvim.wait_screen("Preview|q close")
    chat.nvim.feed("q")
    chat.nvim.settle()
    assert "E976" not in chat.nvim.messages()
    assert "could not draw" not in chat.nvim.messages()


def seconds(chat: ChatDriver, what: str) -> int:
    """Return the seconds shown for the wait named `what`, or 0 if it is not shown."""
    found = re.search(rf"⋯ {what}(?: ·)? (\d+) s · q to (cancel|stop)", chat.nvim.screen())
    return int(found[1]) if found else 0


def counts_on(chat: ChatDriver, what: str) -> int:
    """Wait until the seconds for `what` appear and increase, and return them; a slow machine may skip some."""
    chat.nvim.wait_for(lambda: seconds(chat, what) > 0, f"the seconds of {what!r}")
    first = seconds(chat, what)
    chat.nvim.wait_for(lambda: seconds(chat, what) > first, "the next second")
    return seconds(chat, what)


def test_waiting_for_the_model_shows_the_seconds(chat: ChatDriver) -> None:
    """Lesson 38: a long prompt or silent reasoning may take minutes, so the stop key is shown."""
    start(chat)
    chat.push(events.State(state="streaming", label="waiting for the model"))
    chat.nvim.wait_screen(r"⋯ waiting for the model · q to stop")
    counts_on(chat, "waiting for the model")
    assert chat.nvim.lua("return vim.b.codecompanion_chat.label").startswith("waiting for the model · ")
    chat.push(events.State(state="streaming", label="streaming"))
    chat.nvim.wait_screen(r"⋯ streaming · q to stop")
    assert chat.nvim.lua("return vim.b.codecompanion_chat.label") == "streaming"


def test_a_starting_mcp_server_is_named_once_on_the_screen(chat: ChatDriver) -> None:
    """The bar names it, so the line at the input shows only the stop key."""
    chat.nvim.command("set laststatus=2")
    start(chat)
    chat.push(events.State(state="preparing", label="starting clock (MCP)"))
    assert chat.nvim.wait_screen("⋯ q to stop").count("clock") == 1


def test_a_stalled_reply_shows_for_how_long(chat: ChatDriver) -> None:
    """A stalled stream looks like a running one, so the seconds are shown; they disappear with the next text."""
    start(chat)
    chat.push(events.State(state="streaming", label="streaming"), events.Text(text="eight words"))
    chat.nvim.wait_screen(r"⋯ streaming · q to stop")
    counts_on(chat, "streaming · nothing for")
    assert chat.nvim.lua("return vim.b.codecompanion_chat.label").startswith("streaming · nothing for ")
    chat.push(events.Text(text=" and more"))
    chat.nvim.wait_screen(r"⋯ streaming · q to stop")
    chat.push(events.State(state="streaming", label="preparing insert_edit"))
    assert chat.nvim.lua("return require('codecompanion.chat').current().wait") is None


@pytest.mark.slow("watches a clock of the chat for seconds")
@pytest.mark.parametrize("state", ["compacting", "preparing"])
def test_waiting_for_a_summary_shows_the_seconds_too(chat: ChatDriver, state: str) -> None:
    """Lessons 18, 41: a summary may take a minute, so the stop key is shown."""
    chat.accept("go")
    what = "compacting the chat" if state == "compacting" else "preparing"
    chat.push(events.State(state=state, label="compacting the chat" if state == "compacting" else ""))
    if state == "compacting":
        chat.push(events.CompactionStarted(compaction_id="k", trigger="manual", summariser="x", label=what))
    before = counts_on(chat, what)
    chat.push(events.State(state=state, label="compacting the chat" if state == "compacting" else ""))
    assert seconds(chat, what) >= before
    chat.push(events.State(state="idle"))
    assert chat.nvim.lua("return require('codecompanion.chat').current().wait") is None


def test_a_retry_is_no_longer_shown_after_a_failed_compaction(chat: ChatDriver) -> None:
    """Lesson 38: `trying again` used to stay in the header of an idle chat."""
    chat.push(
        events.State(state="compacting", label="compacting the chat"),
        events.CompactionStarted(compaction_id="k", trigger="manual", summariser="x", label="compacting the chat"),
        events.Retrying(reason="too many requests", attempt=1, wait_ms=100),
    )
    chat.nvim.wait_screen("trying again")
    chat.push(
        events.CompactionFailed(compaction_id="k", reason="Compaction failed: x did not answer."),
        events.State(state="idle"),
    )
    assert "trying again" not in chat.nvim.screen()
    assert chat.nvim.lua("return require('codecompanion.chat').current().retry") is None
