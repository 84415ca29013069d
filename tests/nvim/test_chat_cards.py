"""Compaction cards of a policy: title, fold, tier, superseded cards and context usage (R-327, R-333, R-137)."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from chat_driver import ChatDriver, make_chat
from codecompanion.session.history.card_sections import card_sections
from codecompanion.summary_frame import HANDOFF
from codecompanion.wire import events
from harness import Nvim

SUMMARY = "\n\n".join(
    f"{number}. **{title}**\n- one\n- two"
    for number, title in enumerate(("Request", "Messages", "Work", "Errors", "Details", "Decisions", "Pending"), 1)
)


def card(number: int, **fields: object) -> events.Compacted:
    """Return the compaction event with this number."""
    given = {
        "compaction_id": f"k{number}", "trigger": "proactive", "summariser": "claude-haiku", "summary": SUMMARY,
        "messages": 42, "cycles": (1, number), "tokens_before": 108400, "tokens_after": 14900, "duration_ms": 6100,
        "summary_ids": (f"s{number}",),
    }  # fmt: skip
    given |= fields
    return events.Compacted(**given, sections=card_sections(str(given["summary"])))  # type: ignore[arg-type]


def turn(chat: ChatDriver, number: int) -> None:
    chat.accept(f"question {number}", cycle=number)
    chat.reply(f"answer {number}")


def highlights(chat: ChatDriver, text: str) -> list[str]:
    """Return the highlight groups on the first line with the text."""
    row = next(number for number, line in enumerate(chat.text().split("\n")) if text in line)
    return list(
        chat.nvim.lua(
            """local row = ...
               local bufnr = require('codecompanion.chat').last_chat().bufnr
               local found = {}
               for _, mark in ipairs(vim.inspect_pos(bufnr, row, 6).extmarks) do
                 found[#found + 1] = mark.opts.hl_group
               end
               return found""",
            row,
        )
    )


def test_a_card_has_the_title_of_its_policy_and_may_be_folded(chat: ChatDriver) -> None:
    """R-327: the durable summary is a closed card with only its title visible."""
    turn(chat, 1)
    chat.push(card(1, title="History Summary", folded=True))
    screen = chat.nvim.wait_screen("History Summary")
    assert "▸ History Summary · 42 messages · 108.4k → 14.9k    " in screen
    assert "u undo · K details" in screen, "a closed card has its keys, too"
    assert "1. Request" not in screen
    chat.toggle_fold("History Summary")
    assert "1. **Request**" in chat.nvim.wait_screen("1. \\*\\*Request")


TITLE = "▎ Summary · 42 messages · 108.4k → 14.9k"


@pytest.mark.parametrize("width", [40, 60, 200])
def test_the_title_of_a_card_shows_the_amount_and_k_the_details(nvim_factory: Callable[..., Nvim], width: int) -> None:
    """The model, trigger and duration are under K; the keys are on the right if there is room, otherwise below."""
    keys = "u undo · K details"
    chat = make_chat(nvim_factory, size=(200, 40))
    turn(chat, 1)
    chat.push(card(1))
    chat.nvim.request("nvim_ui_try_resize", width, 40)
    chat.nvim.wait_screen("^▎ Summary · 42 messages.*" + ("" if width < 60 else f" {keys}$"))
    lines = chat.nvim.screen().split("\n")
    at = next(number for number, line in enumerate(lines) if line.startswith("▎ Summary"))
    shown = " ".join("".join(lines[at : at + 2] if width < 60 else lines[at]).split())
    assert shown == f"{TITLE} {keys}".replace("  ", " ")
    assert not re.search("claude-haiku|automatic|6.1 s", chat.nvim.screen())
    chat.nvim.lua("vim.fn.search('Summary', 'bw')")
    chat.nvim.feed("K")
    screen = chat.nvim.wait_screen("written by claude-haiku in 6.1 s")
    for fact in ("trigger: automatic", "replaces 42 messages (cycles 1 to 1)", "108.4k → 14.9k tokens, 93.5k saved"):
        assert fact in " ".join(re.sub("[│╭╮╰╯─]", " ", screen).split()), fact
    assert "**Request**" in screen or "Request" in screen, "the whole summary"


NINE = HANDOFF + "\n\n".join(
    f"{number}. **Section {number}**\n" + "\n".join(f"- line {number}.{line}" for line in range(1, 6))
    for number in range(1, 10)
)


@pytest.mark.parametrize(("columns", "rows"), [(40, 24), (80, 12), (200, 60)])
def test_the_card_of_cowork_matches_its_document(nvim_factory: Callable[..., Nvim], columns: int, rows: int) -> None:
    """R-432, R-452 … R-454: the title, the sentence and the open sections are right in a window of any size."""
    chat = make_chat(nvim_factory, size=(200, 60))
    turn(chat, 1)
    chat.push(card(1, title="Session context compacted", summary=NINE))
    chat.nvim.request("nvim_ui_try_resize", columns, rows)
    chat.nvim.wait_for(lambda: "Session context compacted" in chat.text(), "the card")
    lines = chat.text().split("\n")
    title = "▎ Session context compacted · 42 messages removed · 93.5k tokens freed · proactive"
    at = lines.index(title)
    assert lines[at + 1] == HANDOFF.strip()
    closed = {
        lines[number - 1]
        for number in range(at + 1, len(lines))
        if chat.nvim.lua("return vim.fn.foldclosed(...)", number) not in (-1, number)
    }
    chat.nvim.lua("vim.fn.cursor(..., 1) vim.cmd('normal! zt')", at + 1)
    chat.nvim.wait_for(lambda: f"{title} u undo · K details" in " ".join(chat.nvim.screen().split()), "the keys")
    for number in range(1, 10):
        assert (f"- line {number}.5" in closed) == (number not in (1, 7, 8, 9)), number


@pytest.mark.parametrize(
    ("summariser", "shown"),
    [
        ("no model (claude-haiku failed)", r"written by the plugin, without a model \(claude-haiku failed\)"),
        ("no model: small-1 wrote no usable summary", "written from the log: small-1 wrote no usable summary"),
    ],
)
def test_the_details_of_a_card_show_when_no_model_wrote_it(chat: ChatDriver, summariser: str, shown: str) -> None:
    """R-543: the details name the model's failure, and a card from an older log is complete."""
    turn(chat, 1)
    chat.push(card(1, summariser=summariser, trigger="reactive", messages=1, duration_ms=0))
    chat.nvim.wait_screen("▎ Summary · 1 message · 108.4k → 14.9k")
    chat.nvim.lua("vim.fn.search('Summary', 'bw')")
    chat.nvim.feed("K")
    screen = chat.nvim.wait_screen(shown)
    assert "trigger: the window was full" in screen


def test_a_long_text_without_sections_does_not_take_the_screen(chat: ChatDriver) -> None:
    """R-434: a transcript used as a summary is a closed card, even with headings in it or after a redo."""
    turn(chat, 1)
    text = "\n".join(f"[tool] TOOL_RESULT line {number}" for number in range(31))
    chat.push(card(1, summary=text + "\n\n## A heading of a tool"))
    screen = chat.nvim.wait_screen("▸ Summary · 42 messages")
    assert "TOOL_RESULT" not in screen
    chat.push(events.ViewMarks(undone=("k1",), cleared=(), pinned=(), next_redo="k1"))
    chat.nvim.wait_screen("▸ undone")
    chat.push(events.ViewMarks(undone=(), cleared=(), pinned=(), next_undo="k1"))
    assert "TOOL_RESULT" not in chat.nvim.wait_screen("▸ Summary · 42 messages")
    chat.toggle_fold("Summary · 42")
    chat.nvim.wait_screen("▸ 2 sections|▸ 33 lines")
    chat.toggle_fold("TOOL_RESULT line 0")
    chat.nvim.wait_screen("TOOL_RESULT line 3")


def test_the_ledger_below_the_prose_is_its_own_fold(chat: ChatDriver) -> None:
    """Text written by the plugin below the model's summary can be opened separately."""
    turn(chat, 1)
    ledger = "**Ledger** (read from the log, not written by a model)\nFiles:\n- a.py (edited)\n- b.py (read)"
    chat.push(card(1, summary=f"{SUMMARY}\n\n{ledger}"))
    screen = chat.nvim.wait_screen("▸ Ledger \\(2\\)")
    assert "a.py (edited)" not in screen
    assert "7. **Pending**" in screen


def test_a_section_has_a_marker_for_open_and_closed(chat: ChatDriver) -> None:
    """▸ turns into ▾; the rest of the line does not move."""
    turn(chat, 1)
    ledger = "**Ledger** (read from the log, not written by a model)\nFiles:\n- a.py (edited)\n- b.py (read)"
    chat.push(card(1, summary=f"{SUMMARY}\n\n{ledger}"))
    chat.nvim.wait_screen("▸ Ledger \\(2\\)")
    chat.toggle_fold("**Ledger**")
    chat.nvim.wait_screen(r"▾ \*\*Ledger\*\*")
    chat.nvim.wait_screen(r"▾ 7\. \*\*Pending\*\*")
    chat.toggle_fold("**Ledger**")
    chat.nvim.wait_screen("▸ Ledger \\(2\\)")
    assert "▾" not in chat.text().split("\n", 1)[1].replace("▾ Summary", ""), "the text is the model's"


def test_the_tier_of_a_compaction_is_shown_below_its_title(chat: ChatDriver) -> None:
    """R-137: messages before and after, the savings, and the tier."""
    turn(chat, 1)
    chat.push(card(1, tier=2, counts=(46, 5)))
    assert "Compacted 46 → 5 messages, 93.5k tokens saved, tier 2" in chat.nvim.wait_screen("tier 2")


def test_a_newer_card_supersedes_the_older_ones(chat: ChatDriver) -> None:
    """R-333: they are dimmed and marked, and never deleted; undoing the newest restores the previous one."""
    for number in (1, 2):
        turn(chat, number)
        chat.push(card(number, title=f"Card {number}", removed=(f"s{number - 1}",)))
    assert "CodeCompanionSuperseded" in highlights(chat, "Card 1")
    assert "CodeCompanionSuperseded" not in highlights(chat, "Card 2")
    chat.push(events.ViewMarks(undone=("k2",), cleared=(), pinned=(), next_undo="k1", next_redo="k2"))
    assert "CodeCompanionSuperseded" not in highlights(chat, "Card 1")
    assert "CodeCompanionUndone" in highlights(chat, "Card 2")
    assert "Card 1" in chat.text()


def test_the_running_step_is_shown_in_the_policys_words(chat: ChatDriver) -> None:
    """R-327: the state line shows the policy's label, such as `Summarizing History`."""
    turn(chat, 1)
    chat.push(
        events.CompactionStarted(compaction_id="k", trigger="manual", summariser="", label="Summarizing History"),
        events.State(state="compacting", label="compacting"),
    )
    chat.nvim.wait_screen(r"⋯ Summarizing History · q")


def test_the_fill_of_the_window_is_reported_once(chat: ChatDriver) -> None:
    """R-110, R-144: one notification per change of the warning level."""
    chat.nvim.lua("Told = {}; vim.notify = function(text) Told[#Told + 1] = text end")
    for level, used in (("warning", 82_000), ("warning", 84_000), ("critical", 95_000)):
        fields = {"warningLevel": level, "usageTokens": used, "budgetTokens": 100_000, "compacted": False, "tier": 0}
        chat.push(events.PolicyEvent(name="context_window_status", fields=fields))
    chat.nvim.wait_lua("return #Told >= 2")
    told = chat.nvim.lua("return Told")
    assert [text.split(": ")[1] for text in told] == [
        "The context window is 82 % full (warning)",
        "The context window is 95 % full (critical)",
    ]


def test_a_request_that_was_shrunk_is_reported_only_by_its_card(chat: ChatDriver) -> None:
    """A request that fitted after compaction used to be called "382 % full", and later "382 % → 79 %".

    Both were next to the sizes in the buffer.
    """
    chat.nvim.lua("Told = {}; vim.notify = function(text) Told[#Told + 1] = text end")
    fields = {"warningLevel": "critical", "usageTokens": 31_300, "budgetTokens": 8_192, "compacted": True, "tier": 0}
    chat.push(events.PolicyEvent(name="context_window_status", fields={**fields, "sentTokens": 6_553}))
    chat.push(events.PolicyEvent(name="context_window_status", fields={**fields, "warningLevel": "warning"}))
    chat.nvim.wait_lua("return #Told >= 1")
    assert [text.split(": ")[1] for text in chat.nvim.lua("return Told")] == [
        "The context window is 382 % full (warning)"
    ], "only what nothing was done about"
