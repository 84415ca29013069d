"""Tool calls and approvals in the buffer (lessons 34, 47)."""

from __future__ import annotations

import pytest

from approvals import ask
from chat_driver import ChatDriver
from codecompanion.wire import events


def run_tool(
    chat: ChatDriver,
    call_id: str = "c1",
    status: str = "ok",
    preview: str = "local a\n## b\nreturn a",
    start: bool = True,
) -> None:
    """Start and finish one tool call."""
    if start:
        chat.push(events.ToolStarted(call_id=call_id, name="read_file", title="read_file lua/foo.lua 1-120"))
    chat.push(
        events.ToolFinished(
            call_id=call_id,
            message_id=f"m-{call_id}",
            name="read_file",
            title="read_file lua/foo.lua 1-120",
            summary="120 lines · 1.4k tokens",
            preview=preview,
            status=status,  # type: ignore[arg-type]
        )
    )


def test_a_tool_is_one_line_and_its_output_is_folded(chat_everywhere: ChatDriver) -> None:
    """The line shows the call, the size and the result; the output is in a closed fold."""
    chat = chat_everywhere
    chat.accept("go")
    chat.push(events.ToolStarted(call_id="c1", name="read_file", title="read_file lua/foo.lua 1-120"))
    chat.nvim.wait_screen(r"▸ … read_file lua/foo.lua 1-120$")
    run_tool(chat, start=False)
    screen = chat.nvim.wait_screen(r"▸ ✓ read_file lua/foo.lua 1-120 · 120 lines · 1\.4k tokens$")
    assert "return a" not in screen
    assert chat.text().count("read_file lua/foo.lua") == 1
    chat.toggle_fold("read_file")
    screen = chat.nvim.wait_screen("return a")
    assert "▾ ✓ read_file" in screen


def test_parallel_calls_are_listed_in_order_and_finish_in_any_order(chat: ChatDriver) -> None:
    """Each fold stays on its own lines."""
    chat.accept("go")
    for name in "abc":
        chat.push(events.ToolStarted(call_id=name, name="t", title=f"tool {name}"))
    for name in "cab":
        chat.push(
            events.ToolFinished(
                call_id=name,
                message_id=name,
                name="t",
                title=f"tool {name}",
                summary="1 line",
                preview=f"output of {name}",
                status="error" if name == "b" else "ok",
            )
        )
    rows = [line for line in chat.nvim.screen().split("\n") if "tool " in line]
    assert rows == ["▸ ✓ tool a · 1 line", "▸ ✗ tool b · failed: 1 line", "▸ ✓ tool c · 1 line"]


NO_FILE = "There is no file lua/nothing.lua. file_search finds files by name.\nsecond line"
WHY = "not now, the test server is busy with something else"


@pytest.mark.parametrize(
    ("status", "title", "summary", "preview", "lines"),
    [
        (
            "error",
            "read_file lua/nothing.lua",
            "failed",
            NO_FILE,
            {
                200: "▸ ✗ read_file lua/nothing.lua · failed: There is no file. file_search finds files by name",
                60: "▸ ✗ read_file lua/nothing.lua · failed: There is no file",
                40: "▸ ✗ read_file …ng.lua · There is no file",
            },
        ),
        (
            "rejected",
            "run_command npm test",
            f"rejected: {WHY}",
            f"The user rejected this call. Reason: {WHY}",
            {
                200: f"▸ ⊘ run_command npm test · rejected: {WHY}",
                80: "▸ ⊘ run_command npm test · not now, the test server is busy with something else",
                40: "▸ ⊘ run_command npm test · rejected",
            },
        ),
        (
            "error",
            "run_command npm test",
            "exit 1 · 42 lines",
            "exit code 1\n…",
            {
                80: "▸ ✗ run_command npm test · failed: exit 1 · 42 lines",
                40: "▸ ✗ run_command npm test · exit 1",
            },
        ),
        (
            "ok",
            "read_file a/b/long_name_of_a_file.lua",
            "9 lines",
            "1",
            {40: "▸ ✓ read_file …e_of_a_file.lua · 9 lines"},
        ),
        ("error", "demo ", "failed", "", {80: "▸ ✗ demo · failed"}),
        ("rejected", "demo", "rejected", "The user rejected this call.", {80: "▸ ⊘ demo · rejected"}),
        ("error", "demo", "failed", "漢字" * 60, {40: "▸ ✗ demo · 漢字漢字漢字漢字漢字漢字漢字…"}),
        (
            "error",
            "insert_edit lua/a.lua",
            "failed",
            "lua/a.lua does not contain the old text.",
            {80: "▸ ✗ insert_edit lua/a.lua · failed: does not contain the old text"},
        ),
        ("error", "demo", "failed", "a\x1b[31mb\x00c", {80: "▸ ✗ demo · failed: a^[[31mb^@c"}),
    ],
)
def test_a_failed_or_rejected_call_shows_the_reason_in_one_line(
    chat: ChatDriver, status: str, title: str, summary: str, preview: str, lines: dict[int, str]
) -> None:
    """`· failed` alone would send the reader into the fold; the reason is cut between words, and K shows it in full."""
    chat.accept("go")
    chat.push(
        events.ToolFinished(
            call_id="c",
            message_id="m",
            name="t",
            title=title,
            summary=summary,
            preview=preview,
            status=status,  # type: ignore[arg-type]
        )
    )
    for width, wanted in lines.items():
        chat.nvim.request("nvim_ui_try_resize", width, 24)
        shown = [line for line in chat.nvim.screen().split("\n") if line.startswith("▸ ")]
        assert shown == [wanted], width


def test_a_cancelled_call_is_marked_in_words(chat: ChatDriver) -> None:
    """Colour is never the only sign."""
    chat.accept("go")
    run_tool(chat, status="cancelled", preview="")
    chat.nvim.wait_screen(r"▸ ⊘ read_file lua/foo.lua 1-120 · cancelled · 120 lines")


def test_a_huge_result_shows_head_and_tail(chat: ChatDriver) -> None:
    """Lesson 47: the buffer never receives megabytes, however long the result is."""
    chat.accept("go")
    run_tool(chat, preview="".join(f"row {number}\n" for number in range(200_000)))
    text = chat.text()
    assert len(text) < 100_000
    assert "row 0\n" in text
    assert "row 199999\n" in text
    assert "K shows all" in text


def test_output_cannot_close_its_fence(chat: ChatDriver) -> None:
    """Markdown in a result stays in its block."""
    chat.accept("go")
    run_tool(chat, preview="```\n````\n## Me")
    assert "`````\n```\n````\n## Me\n`````\n" in chat.text()


def test_a_cleared_result_is_marked_and_its_text_stays(chat: ChatDriver) -> None:
    """R-516: only virtual text changes, the buffer's text is unchanged, and `K` requests the original."""
    chat.accept("go")
    run_tool(chat)
    chat.push(events.TurnFinished(reason="done"))
    before = chat.text()
    chat.push(events.ContextEdited(cleared=12, tokens_before=48200, tokens_after=21700, call_ids=("c1",)))
    screen = chat.nvim.wait_screen(r"✂ 12 tool results cleared · 48\.2k → 21\.7k tokens")
    assert "▸ ✓ read_file lua/foo.lua 1-120 · cleared" in screen
    assert chat.text() == before
    shown = {"title": "read_file", "text": "the original\ntext", "filetype": "", "state": "cleared"}
    chat.answer("show_original", {**shown, "summary": "exit 0 · 1 line"})
    chat.nvim.feed("gg/read_file<CR>K")
    screen = chat.nvim.wait_screen("the original")
    assert chat.sent("show_original")[0]["item"] == "c1"
    assert "read_file · cleared" in screen
    assert "exit 0 · 1 line · q close" in screen
    chat.nvim.feed("q")
    chat.nvim.wait_for(lambda: "the original" not in chat.nvim.screen(), "the float to close")


def test_an_edit_that_clears_no_result_describes_its_effect(chat: ChatDriver) -> None:
    """Some policies shorten the arguments of edit calls instead."""
    chat.accept("go")
    chat.push(events.ContextEdited(cleared=0, tokens_before=48200, tokens_after=21700, call_ids=()))
    chat.nvim.wait_screen(r"✂ text of old edits shortened · 48\.2k → 21\.7k tokens")


def test_folds_keep_their_state_over_toggling_and_layout_changes(chat_everywhere: ChatDriver) -> None:
    """Folds belong to the chat; windows only follow."""
    chat = chat_everywhere
    chat.accept("go")
    run_tool(chat, "c1", preview="first output")
    run_tool(chat, "c2", preview="second output")
    chat.toggle_fold("read_file")
    chat.nvim.wait_screen("first output")
    for layout in ("float", "vertical", "horizontal", "tab"):
        chat.nvim.lua("require('codecompanion.chat').toggle()")
        chat.nvim.settle()
        assert "first output" not in chat.nvim.screen()
        chat.nvim.lua("require('codecompanion.chat').toggle(...)", {"layout": layout})
        chat.nvim.settle()
        screen = chat.nvim.wait_screen("first output")
        assert "second output" not in screen
        assert "▸ ✓ read_file" in screen


def test_the_result_of_an_approved_call_appears_on_its_line(chat: ChatDriver) -> None:
    """After the block has disappeared, the next tool is added to the list."""
    chat.accept("go")
    ask(chat, "c1")
    chat.push(events.ApprovalClosed(call_id="c1", decision="once"))
    run_tool(chat, "c1", start=False)
    run_tool(chat, "c2")
    rows = [line for line in chat.nvim.screen().split("\n") if line.startswith("▸")]
    assert rows == ["▸ ✓ read_file lua/foo.lua 1-120 · 120 lines · 1.4k tokens"] * 2
