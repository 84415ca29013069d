"""`/cost` and `/trace` typed in a real Neovim, written by the real host from a real log (R-356, R-357, R-360)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from codecompanion.model.messages import Usage
from codecompanion.store.opening import open_store
from real_chat import KEY, RealChat, start_chat
from tests.providers.chat.answers import Call, failure, reply
from tests.providers.chat.thread import ChatServerThread
from tests.unit.reports.logs import LogWriter, worked_chat

USAGE = {
    "prompt_tokens": 900,
    "completion_tokens": 12,
    "total_tokens": 912,
    "prompt_tokens_details": {"cached_tokens": 300},
}


def title(chat: RealChat) -> str:
    """Return the first line of the current buffer."""
    return str(chat.nvim.lua("return vim.api.nvim_buf_get_lines(0, 0, 1, false)[1]"))


def wait_title(chat: RealChat, start: str) -> None:
    chat.nvim.wait_for(lambda: title(chat).startswith(start), f"a report {start!r}")


def store_chat(root: Path, log: LogWriter, chat: str = "stored") -> None:
    """Store a chat in the history that a Neovim under `root` reads."""
    store = open_store(root / "data" / "nvim" / "codecompanion")
    store.append(chat, [event.payload for event in log.events]).result()
    store.close()


def test_cost_and_trace_are_typed_read_and_closed_and_survive_a_restart(nvim_factory, tmp_path):
    """As a user does it: two turns, /cost, /trace 1, [t ]t, q; then the host is restarted (R-360)."""
    call = Call("read_file", json.dumps({"path": "a.txt"}), id="call_1")
    script = [reply("Look.", calls=[call], usage=USAGE), reply("Fine.", usage=USAGE), reply("Bye.", usage=USAGE)]
    with ChatServerThread(script, key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, files=[("a.txt", "alpha\n")], size=(100, 40))
        chat.say("Why is it red?")
        chat.send("/cost")
        wait_title(chat, "# Cost of this chat: 1,8")
        text = chat.text()
        assert "2 requests in 1 turn." in text
        assert "| prompt, read from cache |    600 |" in text
        assert not chat.nvim.lua("return vim.bo.modifiable")
        assert "No chat has this name" not in chat.nvim.messages()
        assert "Cost · Why is it red?" in chat.nvim.screen()
        chat.nvim.feed("q")
        assert chat.nvim.lua("return #vim.api.nvim_tabpage_list_wins(0)") == 1
        assert chat.draft() == ""
        chat.say("And now?")
        chat.send("/trace 1")
        wait_title(chat, "# Turn 1 of 2: Why is it red?")
        assert "| read_file | ok" in chat.text()
        chat.nvim.feed("]t")
        wait_title(chat, "# Turn 2 of 2: And now?")
        chat.nvim.feed("]t")
        chat.nvim.wait_screen("This is the last turn.")
        chat.nvim.feed("[t")
        wait_title(chat, "# Turn 1 of 2")
        before = chat.text()
        chat.nvim.feed("q")
        chat.nvim.command("CodeCompanion restart")
        chat.nvim.command("CodeCompanionTrace 1")
        wait_title(chat, "# Turn 1 of 2")
        assert chat.text() == before


def test_an_open_report_follows_the_chat_and_keeps_cursor_and_folds(nvim_factory, tmp_path):
    """R-356: the report is refreshed on events; a closed section stays closed."""
    with ChatServerThread([reply("One.", usage=USAGE), reply("Two.", usage=USAGE)], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(100, 50))
        chat.nvim.command("CodeCompanionCost")
        wait_title(chat, "# Cost of this chat")
        assert "Nothing has been sent yet" in chat.text()
        assert chat.nvim.lua("return vim.fn.expand('%')") == "Cost"
        chat.nvim.command("wincmd p")
        chat.say("first")
        chat.nvim.command("wincmd p")
        chat.nvim.wait_for(lambda: "1 request in 1 turn." in chat.text(), "the first turn")
        chat.nvim.feed("gg/## Turns<CR>zc")
        row = chat.nvim.lua("return vim.fn.line('.')")
        chat.nvim.command("wincmd p")
        chat.say("second")
        chat.nvim.command("wincmd p")
        chat.nvim.wait_for(lambda: "2 requests in 2 turns." in chat.text(), "the second turn")
        assert chat.nvim.lua("return vim.fn.foldclosed(...)", row) == row
        assert chat.nvim.lua("return vim.fn.line('.')") == row
        assert "▸ Turns" in chat.nvim.screen()
        assert chat.nvim.lua("return vim.fn.expand('%')") == "Cost · first"
        names = chat.nvim.lua("return vim.tbl_map(vim.api.nvim_buf_get_name, vim.api.nvim_list_bufs())")
        assert sum("Cost" in name for name in names) == 1


def test_an_invalid_trace_is_reported_without_a_window(nvim_factory, tmp_path):
    """R-357: this covers turn numbers out of range, text that is not a number, and a chat without turns.

    For numbers out of range, the report names the range.
    """
    with ChatServerThread([reply("One.", usage=USAGE), failure(401, "wrong key")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(100, 40))
        chat.send("/trace")
        chat.nvim.wait_screen("No turn yet: send a message first.")
        chat.nvim.feed("Gcc<Esc>")  # a refused command stays in the input
        chat.say("first")
        for typed, said in (
            ("/trace 5", "There is no turn 5: there is only turn 1."),
            ("/trace 0", "There is no turn 0"),
            ("/trace x", '"x" is not a turn number'),
        ):
            chat.send(typed)
            chat.nvim.wait_screen(said)
            chat.nvim.wait_for(lambda typed=typed: chat.draft() == typed, "what was typed")
            chat.nvim.feed("Gcc<Esc>")
        assert chat.nvim.lua("return #vim.api.nvim_tabpage_list_wins(0)") == 1
        chat.say("second")
        chat.nvim.command("CodeCompanionTrace")
        wait_title(chat, "# Turn 2 of 2: second")
        assert "failed" in chat.text()


@pytest.mark.parametrize("columns", [80, 120])
def test_a_stored_chat_is_reported_in_the_width_of_the_window(nvim_factory, tmp_path, columns):
    """The chat is resumed after a full restart; a table row links to its turn."""
    store_chat(tmp_path, worked_chat())
    with ChatServerThread([], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(columns, 40), opened=False)
        chat.nvim.command("CodeCompanionChat Resume stored")
        chat.wait_ready()
        chat.send("/cost")
        wait_title(chat, "# Cost of this chat: $0.4")
        assert max(len(line) for line in chat.nvim.lines() if line.startswith("|")) <= columns
        chat.nvim.feed("G<CR>")
        wait_title(chat, "# Turn 3 of 3: And now the docs")
        chat.nvim.feed("[t")
        wait_title(chat, "# Turn 2 of 3: Refactor the parser")
        row = next(n for n, line in enumerate(chat.nvim.lines(), 1) if line == "### Summary")
        assert chat.nvim.lua("return vim.fn.foldclosed(...)", row) == row


@pytest.mark.parametrize("command", ["CodeCompanionCost", "CodeCompanionTrace 1"])
def test_without_a_chat_the_commands_name_the_remedy(nvim_factory, tmp_path, command):
    with ChatServerThread([], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, opened=False)
        chat.nvim.command(command)
        chat.nvim.wait_screen("No chat is open; :CodeCompanionChat opens one")


def test_an_exhausted_budget_returns_the_message(nvim_factory, tmp_path):
    """R-358: nothing is sent, one sentence gives the reason, and the text is in the input again."""
    store_chat(tmp_path, worked_chat())
    options = {"interactions": {"chat": {"opts": {"budget": 0.1}}}}
    with ChatServerThread([], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=options, size=(110, 40), opened=False)
        chat.nvim.command("CodeCompanionChat Resume stored")
        chat.wait_ready()
        chat.send("one more question")
        chat.nvim.wait_for(lambda: chat.draft() == "one more question", "the draft")
        screen = chat.nvim.wait_screen("The budget of this chat is used up")
        assert screen.count("✗ The budget") == 1
        assert not [r for r in server.requests if r.path.endswith("/chat/completions")]


def managed_chat() -> LogWriter:
    """Return a chat of 30 requests that was edited and compacted."""
    log, size = LogWriter(), 20_000
    log.begin("Make the parser faster")
    for number in range(30):
        size += 5_000
        if number in (12, 20):
            log.change("compacted" if number == 20 else "edited", size, size // 2)
            size //= 2
        log.call(Usage(size, output_tokens=200), limits={"window": 128_000, "edit": 83_200})
    log.end()
    return log


@pytest.mark.parametrize(("columns", "ambiwidth"), [(40, "single"), (100, "single"), (100, "double")])
def test_the_chart_has_colours_in_any_window(nvim_factory, tmp_path, columns, ambiwidth):
    """R-356: no line wraps, the marks have their highlight groups, and without reliable Braille the chart is ASCII."""
    store_chat(tmp_path, managed_chat())
    with ChatServerThread([], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, size=(columns, 50))
        chat.nvim.command("set listchars= fillchars=")
        chat.nvim.command(f"set ambiwidth={ambiwidth}")
        chat.nvim.lua("require('codecompanion.chat.reports').cost({ id = 'stored' })")
        wait_title(chat, "# Cost of this chat: $")
        lines = chat.text().split("\n")
        first, last = [at for at, line in enumerate(lines) if line == "```"]
        drawn = lines[first + 1 : last]
        assert any("edit" in line for line in drawn)
        assert ("⣿" in "".join(drawn)) == (ambiwidth == "single")
        assert "".join(drawn).isascii() == (ambiwidth == "double")
        wide = "return vim.iter(vim.api.nvim_buf_get_lines(0, ...)):map(vim.fn.strdisplaywidth):totable()"
        assert max(chat.nvim.lua(wide, first, last, False)) <= columns
        marks = chat.nvim.lua(
            "local ns = vim.api.nvim_get_namespaces()['codecompanion.report.chart']\n"
            "return vim.iter(vim.api.nvim_buf_get_extmarks(0, ns, 0, -1, { details = true })):map(function(mark)\n"
            "  return { mark[2], mark[4].hl_group }\n"
            "end):totable()"
        )
        assert {group for _, group in marks} == {
            "CodeCompanionChartSent", "CodeCompanionChartWithout", "CodeCompanionChartLimit", "CodeCompanionCleared",
            "CodeCompanionCompacted",
        }  # fmt: skip
        assert all(first < line < last for line, _ in marks)


@pytest.mark.parametrize("key", ["q", "<Esc>"])
def test_closing_a_report_shows_a_floating_chat_again(nvim_factory, tmp_path, key):
    """A trace that was opened from `/cost` first goes back to it, on the row of its turn."""
    floats = {"display": {"chat": {"window": {"layout": "float"}}}}
    with ChatServerThread([reply("One.", usage=USAGE)], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=floats)
        chat.say("Why is it red?")
        chat.send("/cost")
        wait_title(chat, "# Cost of this chat")
        chat.nvim.feed("G<CR>")
        wait_title(chat, "# Turn 1 of 1")
        chat.nvim.feed(key)
        wait_title(chat, "# Cost of this chat")
        assert chat.nvim.request("nvim_get_current_line").startswith("|")
        chat.nvim.feed(key)
        assert chat.nvim.lua("return vim.bo.filetype") == "codecompanion"
        assert chat.nvim.lua("return #vim.api.nvim_tabpage_list_wins(0)") == 2


def test_the_block_about_an_unknown_price_works_as_it_is_written(nvim_factory, tmp_path):
    """R-359: the options that `/cost` shows also price the requests already sent."""
    with ChatServerThread([reply("One.", usage=USAGE), reply("Two.", usage=USAGE)], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.say("Why is it red?")
        chat.send("/cost")
        wait_title(chat, "# Cost of this chat: 912 tokens")
        block = re.search(r"```lua\n(.*?)```", chat.text(), re.DOTALL)
        assert block is not None
        options = chat.nvim.lua("return assert(loadstring('return {' .. ... .. '}'))().opts", block[1])
        chat.nvim.feed("q")
        chat = start_chat(nvim_factory, tmp_path, server, options=options)
        chat.say("And now?")
        chat.send("/cost")
        wait_title(chat, "# Cost of this chat: $0.0005")
        assert " All chats: $0.0009." in chat.text()


def test_only_an_entry_for_a_local_model_server_is_free(nvim_factory, tmp_path):
    """R-359: any other loopback URL may be a gateway to a paid provider; a budget reports its uncounted calls."""
    for name in ("server", "gateway", "hidden"):
        (tmp_path / name).mkdir()
    with ChatServerThread([reply("One.", usage=USAGE)], key=KEY, models=("qwen3:14b",)) as server:
        chat = start_chat(nvim_factory, tmp_path / "server", server, extends="ollama", model="qwen3:14b")
        chat.say("Why is it red?")
        chat.send("/cost")
        chat.nvim.wait_for(lambda: chat.text().splitlines()[0].endswith("ms, no charge"), "its time")
        assert "$" not in chat.text().split("## Budgets")[0]
    with ChatServerThread([reply("One.", usage=USAGE)], key=KEY) as server:
        budget = {"interactions": {"chat": {"opts": {"budget": 2}}}}
        chat = start_chat(nvim_factory, tmp_path / "gateway", server, options=budget)
        chat.say("Why is it red?")
        chat.nvim.wait_for(lambda: "Price unknown: the budget of this chat ($2.00," in chat.text())
        chat.send("/cost")
        wait_title(chat, "# Cost of this chat: 912 tokens")
        assert "This chat: a budget of $2.00. 1 request without a known price is not counted." in " ".join(
            chat.text().split()
        )
    model_list = {"/v1/models": {"object": "list", "data": [{"id": "gpt-5", "owned_by": "openai"}]}}
    with ChatServerThread([reply("One.", usage=USAGE)], key=KEY, models=("gpt-5",), pages=model_list) as server:
        chat = start_chat(nvim_factory, tmp_path / "hidden", server, extends="vllm", model="gpt-5")
        chat.say("Why is it red?")
        chat.send("/cost")
        wait_title(chat, "# Cost of this chat: 912 tokens")
        assert "Price unknown for 1 request (gpt-5)." in chat.text()
