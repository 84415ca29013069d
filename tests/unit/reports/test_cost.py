"""`/cost` as the user reads it (R-356, R-358, R-359)."""

from __future__ import annotations

import re
from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codecompanion.adapters.speed import Speed
from codecompanion.formats.cutting import cells, cut_cells, squeeze_cells
from codecompanion.model.history import PolicyEvent, ReadTwice, UsageReported
from codecompanion.model.messages import Usage
from codecompanion.reports.cost import EMPTY, LocalCounts, cost_report
from codecompanion.reports.markdown import PRICE_UNKNOWN, Page, table, tokens_text, usd_text
from codecompanion.reports.spending_budgets import Budget
from codecompanion.reports.trace import find_turn, trace_report

from .logs import LogWriter, read_log, worked_chat

SCOPES: tuple[Literal["chat", "total"], ...] = ("chat", "total")
PAGE = Page(width=80, price_table="genai-prices 1")


def written(log: LogWriter, *budgets: Budget, page: Page = PAGE) -> str:
    everywhere = next((budget for budget in budgets if budget.scope == "total"), None)
    return cost_report(read_log(log.events), page, budgets, everywhere).text


def test_an_empty_chat_is_reported() -> None:
    """R-356: a line reports the empty state."""
    text = written(LogWriter(), Budget(scope="chat", limit_usd=5, warn_at=0, spent_usd=0))
    assert EMPTY in text
    assert "$0.00 of $5.00" in text


def test_the_report_has_every_required_figure() -> None:
    """R-356: totals, cache, savings, round trips, tool outcomes, summaries, the costliest turn and turns by cost."""
    text = written(worked_chat())
    for part in (
        "6 requests in 3 turns, 180,000 tokens. Usage reported for 5 of 6 requests, 2 of 3 turns.",
        "otherwise the list prices of genai-prices 1",
        "| prompt, read from cache  |",
        "- 1 edit, 1 compaction",
        "- 7 round trips: 1 retry, 1 failed",
        "- 1 request for summaries: 31.5k tokens, $0.11",
        "- 1 summary update\n",
        "- 2 tool calls: 1 error, 1 ok",
        "Turn 1 was the most expensive",
    ):
        assert part in text, part
    costs = [line.split("|")[2].strip() for line in text.splitlines() if line.endswith(" |") and "red?" in line]
    assert costs == ["$0.25"]


def test_turns_are_sorted_by_cost_and_unpriced_ones_by_tokens() -> None:
    """R-356."""
    log = LogWriter()
    for number, (size, priced) in enumerate(((500, False), (10, True), (1_000, True), (2_000, False)), 1):
        log.begin(f"question {number}")
        log.call(Usage(size, 1), priced=priced)
        log.end()
    text = written(log)
    turns = [line.split("|")[1].strip() for line in text.splitlines() if "| question " in line][1:]
    assert turns == ["3", "2", "4", "1"]


def test_an_unknown_price_is_never_zero() -> None:
    """R-359: "price unknown" appears once, with the affected models and the remedy; there is no $ anywhere."""
    log = LogWriter()
    log.begin("q")
    log.call(Usage(1_000, 10, cache_read_tokens=3_000), priced=False)
    log.change("edited", 100_000, 60_000)
    log.call(Usage(1_000, 10), priced=False)
    text = written(log, *(Budget(scope=scope, limit_usd=0, warn_at=0, spent_usd=0, unpriced=1) for scope in SCOPES))
    assert text.startswith("# Cost of this chat: 5,020 tokens\n")
    assert "Price unknown for all requests (claude). Add it to your configuration" in text
    assert (
        "\n      anthropic = {\n        opts = { price = { input = 0.5, output = 1.5 } }, -- add this line\n      },\n"
        in text
    )
    assert text.lower().count(PRICE_UNKNOWN) == 1
    assert "$" not in text
    assert not {"cost", "money"} & {cell.strip() for line in text.splitlines() for cell in line.split("|")}


def test_an_amount_is_shown_once() -> None:
    """One turn costs what the chat costs, and without other chats that is the cost of all chats."""
    log = LogWriter()
    log.begin("q")
    log.call(Usage(1_000_000))
    log.end()
    budgets = [Budget(scope=scope, limit_usd=0, warn_at=0, spent_usd=3) for scope in SCOPES]
    assert written(log, *budgets).count("$3.00") == 1
    text = written(log, budgets[0], Budget(scope="total", limit_usd=0, warn_at=0, spent_usd=4, unpriced=1))
    assert "\n1 request in 1 turn, 1,000,000 tokens. All chats: $4.00, price unknown for 1 request.\n" in text
    log.begin("again")
    log.call(Usage(1_000_000))
    log.end()
    assert written(log, *budgets[:1]).count("$3.00") == 2  # one per turn


def test_requests_without_a_price_have_one_total_and_a_chart_only_if_it_tells_something() -> None:
    """The title has the total; two bars, or bars that are all low, show nothing that the tables do not."""
    log = LogWriter()
    log.begin("q")
    log.call(Usage(1_000, 10), priced=False)
    log.call(Usage(1_200, 10), priced=False)
    text = written(log)
    assert text.startswith("# Cost of this chat: 2,220 tokens\n")
    assert text.count("2,220") == 1
    assert "Tokens per request" not in text
    log.call(Usage(1_400, 10), priced=False)
    assert "Tokens per request" not in written(log)
    log.change("edited", 1_410, 700)
    log.call(Usage(700, 10), priced=False)
    assert "Tokens per request" in written(log)


def test_a_command_that_failed_is_not_an_error_of_its_tool() -> None:
    """A failing test is the result of a tool call that worked."""
    log = LogWriter()
    log.begin("q")
    log.call(Usage(1_000, 10))
    log.tool(name="run_command", status="error", summary="exit 1 · 12 lines")
    log.tool(status="error", summary="no such file")
    log.end()
    assert "- 2 tool calls: 1 error, 1 with a failing command\n" in written(log)
    record = read_log(log.events)
    assert "| exit 1 |" in trace_report(record, find_turn(record, 1), PAGE)


def test_the_requests_of_other_chats_count_without_a_price() -> None:
    """The sum of all chats is at the top, even if no price is known; the two counts are in one sentence."""
    log = LogWriter()
    log.begin("q")
    log.call(Usage(1_000, 10), priced=False)
    budgets = [Budget(scope=scope, limit_usd=0, warn_at=0, spent_usd=0, unpriced=1) for scope in SCOPES]
    assert "chats" not in written(log, *budgets)
    text = written(log, budgets[0], Budget(scope="total", limit_usd=0, warn_at=0, spent_usd=0, unpriced=9))
    assert "Price unknown for 1 request (claude) and for 8 elsewhere." in text
    log.call(Usage(1_000_000))
    budgets = [budgets[0], Budget(scope="total", limit_usd=0, warn_at=0, spent_usd=3, unpriced=9)]
    text = written(log, *budgets)
    assert "chats: $" not in text.replace("All chats: $3.00 and more", "", 1)
    free = LogWriter()
    free.begin("q")
    free.call(Usage(1_000, 10), local=True)
    total = Budget(scope="total", limit_usd=0, warn_at=0, spent_usd=0, unpriced=9)
    assert "in 1 turn, 1,010 tokens. All chats: price unknown for 9 requests.\n" in written(free, total)


def test_a_price_that_was_set_later_also_counts_for_earlier_requests() -> None:
    """The report says so; a request that still has no price stays unknown."""
    log = LogWriter()
    log.begin("q")
    log.call(Usage(1_000_000), priced=False)
    log.call(Usage(2_000), priced=False, model="other")
    record = read_log(log.events)

    def priced_now(report: UsageReported) -> UsageReported:
        return msgspec.structs.replace(report, cost_usd=3.0 if report.model == "claude" else None)

    for call in record.calls:
        call.price_again(priced_now)
    text = cost_report(record, PAGE).text
    assert text.startswith("# Cost of this chat: $3.00 and more\n")
    assert "\nPrices of today, which were unknown when the requests were sent: your `opts.price`, otherwise" in text
    assert "Price unknown for 1 request (other)." in text


def test_a_share_that_is_rounded_to_none_or_all_is_left_out() -> None:
    log = LogWriter()
    log.begin("q")
    log.call(Usage(5_345, 17), priced=False)
    assert "0 %" not in written(log)
    log.call(Usage(1_000, 80), priced=False)
    assert "| output  |     97 | 2 % of all tokens  |" in written(log)


def test_the_table_of_turns_quotes_the_question_and_not_the_code() -> None:
    log = LogWriter()
    log.begin("calc.py:1-2\n```python\ndef add(a, b):\n    return a - b\n```\nwhy is this wrong?")
    log.call(Usage(100, 10))
    log.end()
    record = read_log(log.events)
    assert "| why is this wrong?" in cost_report(record, PAGE).text
    assert trace_report(record, find_turn(record, 1), PAGE).startswith("# Turn 1 of 1: why is this wrong?\n")


def test_an_option_of_an_adapter_with_an_odd_name_is_valid_lua() -> None:
    log = LogWriter()
    log.begin("q")
    log.add(UsageReported(message_id="m", adapter="my-server", model="m", usage=Usage(5), estimated_prompt_tokens=5))
    assert '\n      ["my-server"] = {\n        opts = { price = {' in written(log)


def test_a_short_chat_has_no_line_for_nothing() -> None:
    """Each cache figure appears once, and no row or line shows a zero."""
    log = LogWriter()
    log.begin("q")
    log.call(Usage(1_320, 60, cache_read_tokens=1_320), priced=False)
    text = written(log, Budget(scope="chat", limit_usd=0, warn_at=0, spent_usd=0))
    assert text.count("1,320 | 50 % of the prompts") == 2  # read from the cache, and not
    assert text.count("50 %") == 2
    assert not re.search(r"(^|[-| ,])0 ", text.replace("             0 ", ""))
    for title in ("Cache", "Context management", "Requests and tools", "Budgets"):
        assert f"## {title}" not in text


def test_the_caches_of_several_models_are_compared() -> None:
    """Each model has a row; with a single model, the sums above are enough."""
    log = LogWriter()
    log.begin("q")
    log.call(Usage(1_000, 10, cache_read_tokens=3_000))
    log.call(Usage(1_000, 10), model="other")
    rows = [line for line in written(log).split("## Cache")[1].splitlines() if line.startswith("| anthropic")]
    assert [[cell.strip() for cell in row.strip("|").split("|")] for row in rows] == [
        ["anthropic · claude", "3.0k", "0", "75 %", "~$0.0081"],
        ["anthropic · other", "-", "-", "none reported", "-"],
    ]
    assert "## Cache" not in written(worked_chat())


def test_a_chat_without_usage_is_reported_by_estimates() -> None:
    """R-356: unreported tokens were still sent; a summary with an unknown price is not free."""
    log = LogWriter()
    log.begin("local question")
    log.call(result="tool_calls")
    log.summary_call(Usage(3_000, 100), priced=False)
    log.change("compacted", 60_000, 10_000)
    log.call(result="stop")
    text = written(log)
    assert "| prompts without usage | ~2,000 | an estimate, not included above |" in text
    assert "~50.0k not sent" in text
    assert text.startswith("# Cost of this chat: ~5.1k tokens")
    assert "- 1 request for summaries: 3.1k tokens\n" in text
    assert "|    1 |  ~5.0k |" in text


def test_a_partly_priced_chat_has_a_subtotal() -> None:
    """R-356: the report shows the priced subtotal and the number of calls without a price."""
    log = LogWriter()
    log.begin("q")
    log.call(Usage(1_000_000))
    log.call(Usage(1_000, 10), priced=False)
    log.begin("again")
    log.call(Usage(1_000, 10), priced=False)
    text = written(log)
    assert text.startswith("# Cost of this chat: $3.00 and more")
    assert "$3.00+" in text


def test_savings_are_listed_together_and_marked_as_estimates() -> None:
    """R-356, R-359: tokens and money are side by side, and estimates are marked with `~`."""
    lines = written(worked_chat()).splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("| saved by"))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[head : head + 4]]
    assert rows[0] == ["saved by", "tokens", "money"]
    assert rows[2] == ["the cache", "-", "~$0.13"]
    assert rows[3][:2] == ["context management", "~88.0k not sent"]
    assert rows[3][2].startswith("~")


@pytest.mark.parametrize("number", [None, 1, 2, 3])
def test_no_sentence_has_two_tildes(number: int | None) -> None:
    """A Markdown highlighter strikes out text between them (seen in Neovim); a table cell is safe."""
    record = read_log(worked_chat().events)
    text = written(worked_chat()) if number is None else trace_report(record, find_turn(record, number), PAGE)
    assert max(line.count("~") for line in text.splitlines() if not line.startswith("|")) <= 1


def test_the_context_packet_is_counted_sent_and_left_out() -> None:
    """R-354, R-356."""
    log = LogWriter()
    log.begin("q")
    log.call(Usage(10_000), shaping={"packet": 30})
    log.call(Usage(10_000), shaping={"packet_omitted": 40})
    text = written(log)
    assert "- context packet: 30 tokens sent, 40 left out" in text
    assert "- ~40 of the tokens were left out by shaping requests" in text


def test_a_pass_that_pruned_nothing_does_not_count() -> None:
    """R-330, R-356: KodaCode's policy reports its replay every turn; only a replay that omitted something is a pass."""
    log = LogWriter()
    log.begin("q")
    log.call(Usage(10_000))
    for figures in ({}, {"compacted_prior_turns": 1}, {"omitted_prior_turns": 3, "turn_ids": ["turn-1"]}):
        log.add(PolicyEvent(name="context_pruned", fields={"prior_turns": 2, **figures}))
    assert "2 pruning passes" in written(log)


def test_the_cost_of_context_management_is_not_hidden() -> None:
    log = LogWriter()
    log.begin("q")
    log.call(Usage(10_000, cache_read_tokens=90_000))
    log.change("edited", 100_000, 60_000)
    log.call(Usage(61_000))
    text = written(log)
    assert "| ~-$" in text
    assert "cost more than they saved so far" in text


def test_budgets_are_shown_with_uncounted_calls() -> None:
    """R-356, R-358: there is a line for the session and one for all chats."""
    text = written(
        worked_chat(),
        Budget(scope="chat", limit_usd=0.1, warn_at=0.8, spent_usd=0.2),
        Budget(scope="total", limit_usd=0, warn_at=0, spent_usd=3, unpriced=2),
        Budget(scope="chat", limit_usd=2, warn_at=0, spent_usd=0, unpriced=2),
    )
    assert "- This chat: $0.20 of $0.10 (**used up**, warning from 80 %)." in text
    assert " All chats: $3.00, price unknown for 2 requests.\n" in text
    assert "- This chat: a budget of $2.00. 2 requests without a known price are not counted." in text


@pytest.mark.parametrize(("estimated", "off"), [(990, "-1.0 %"), (1_000, "+0.0 %"), (1_250, "+25.0 %")])
def test_two_counts_show_their_difference(estimated: int, off: str) -> None:
    counts = LocalCounts(estimated, 1_000, "o200k_base")
    text = cost_report(read_log(worked_chat().events), PAGE, (), None, counts).text
    [row] = [line for line in text.splitlines() if line.startswith("| estimate")]
    assert [cell.strip() for cell in row.strip("|").split("|")] == ["estimate", f"~{estimated:,}", off]


def test_a_context_without_messages_is_not_counted() -> None:
    text = cost_report(read_log(worked_chat().events), PAGE, (), None, LocalCounts(0, 0, "o200k_base")).text
    assert "counted here" not in text


@pytest.mark.parametrize("width", [24, 40, 64, 80, 120])
def test_no_table_is_wider_than_the_window(width: int) -> None:
    text = written(worked_chat(), page=Page(width=width))
    assert max((cells(line) for line in text.splitlines() if line.startswith("|")), default=0) <= width


FIGURES = [
    ("the cache", "3.8k read", "98 %", PRICE_UNKNOWN),
    ("context management", "~91.3k not sent", "-", "~$0.0031"),
]


@pytest.mark.parametrize("width", [20, 40, 60, 66, 80])
def test_figures_stay_complete_at_any_width(width: int) -> None:
    """Names are shortened in the middle first; if that is not enough, rows become wrapping items."""
    text = "\n".join(table(("saved by", "tokens", "hits", "money"), FIGURES, width, "lrrr"))
    if width > 20:  # an item takes four rows at most
        assert all(figure in text for row in FIGURES for figure in row[1:])
    if width == 40:
        assert "- context management: tokens ~91.3k not sent, money ~$0.0031" in text
        assert "- the cache: tokens 3.8k read, hits 98 %, money price unknown" in text
    elif width == 60:
        assert "| context ma…ment | ~91.3k not sent |" in text


def test_the_ends_of_a_name_are_kept() -> None:
    """Names of two models of one family may differ only at the end."""
    rows = [("anthropic · claude-sonnet-4-20250514", "1.2k", "3.4k"), ("anthropic · claude-opus-4-20250514", "9", "8")]
    lines = table(("model", "read", "saved"), rows, 40, "lrr")
    assert lines[2] == "| anthropic · cl…250514 | 1.2k |  3.4k |"
    assert len({cells(line) for line in lines}) == 1


@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [("abcdefghijklmnop", 16, "abcdefghijklmnop"), ("abcdefghijklmnop", 10, "abcdef…nop"),
     ("漢字漢字漢字漢字", 10, "漢字漢…字"), ("abcdefghijklmnop", 7, "abcdef…")],
)  # fmt: skip
def test_a_name_is_shortened_to_a_number_of_cells(text: str, room: int, shown: str) -> None:
    """Both ends of a name are kept; if there are very few cells, only its beginning."""
    assert squeeze_cells(text, room) == shown


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=200)), min_size=1, max_size=5), st.integers(40, 120))
def test_all_lines_of_a_table_have_the_same_width(rows: list[tuple[str, str]], width: int) -> None:
    lines = table(("a", "b"), [(cut_cells(a, 10), b) for a, b in rows], width)
    assert len({cells(line) for line in lines}) == 1


@pytest.mark.parametrize(
    ("tokens", "text"), [(999, "999"), (1_200, "1.2k"), (35_800, "35.8k"), (999_949, "999.9k"), (1_000_000, "1.0M")]
)
def test_counts_have_the_meters_notation(tokens: int, text: str) -> None:
    """R-303."""
    assert tokens_text(tokens) == text


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (0.0, "$0.00"),
        (0.00001, "<$0.0001"),
        (0.0123, "$0.0123"),
        (12.5, "$12.50"),
        (1234.5, "$1,234.50"),
        (-2, "-$2.00"),
    ],
)
def test_amounts_have_their_significant_digits(usd: float, text: str) -> None:
    assert usd_text(usd) == text
    assert usd_text(None) == PRICE_UNKNOWN


def test_calls_of_a_plan_are_neither_free_nor_unknown() -> None:
    """No report shows an amount or “unavailable”; the tokens are counted as usual."""
    log = LogWriter()
    log.begin("q")
    log.call(Usage(1_000, 10), included=True)
    log.call(Usage(2_000, 20, cache_read_tokens=500), included=True)
    log.end()
    text = written(log, Budget(scope="chat", limit_usd=5, warn_at=0.8, spent_usd=0))
    assert text.startswith("# Cost of this chat: included in the plan")
    said = "Included in a plan: 2 requests (anthropic), no token charge, not counted in budgets."
    assert said in " ".join(text.split())
    assert PRICE_UNKNOWN not in text.lower()
    assert "most expensive:" not in text
    assert [part for part in text.split() if part.startswith(("$", "~$"))] == ["$0.00", "$5.00"]
    record = read_log(log.events)
    trace = trace_report(record, find_turn(record, 1), PAGE)
    assert "2 requests, 0 tool calls, included" in trace
    assert "$" not in trace
    assert PRICE_UNKNOWN not in trace


def test_calls_to_own_servers_cost_no_money() -> None:
    """Own servers and a plan are each named; alone, own servers are the headline, and no price is reported missing."""
    log = LogWriter()
    log.begin("q")
    log.call(Usage(1_000, 10), local=True)
    log.end()
    text = written(log)
    assert text.startswith("# Cost of this chat: 1.5 s, no charge")
    assert "Answered by your own servers: 1 request (anthropic), no charge, in 1.5 s." in " ".join(text.split())
    assert "plan" not in text
    assert PRICE_UNKNOWN not in text.lower()
    record = read_log(log.events)
    assert "1 request, 0 tool calls, local" in trace_report(record, find_turn(record, 1), PAGE)
    log.begin("again")
    log.call(Usage(1_000, 10), included=True)
    log.end()
    text = " ".join(written(log).split())
    assert text.startswith("# Cost of this chat: included in the plan")
    assert "Answered by your own servers: 1 request (anthropic)" in text
    assert "Included in a plan: 1 request (anthropic)" in text


def test_calls_to_own_servers_cost_time() -> None:
    """The time is shown for each model, beside the provider's charges; in the turns, it takes the place of money."""
    log = LogWriter()
    log.begin("q")
    log.call(Usage(1_000, 10, cache_read_tokens=5_000), local=True)
    log.end()
    log.begin("and")
    log.call(Usage(500, 20), local=True)
    log.end()
    speeds = {("anthropic", "claude"): Speed(930.0, 8.25).text}
    text = cost_report(read_log(log.events), PAGE, speeds=speeds).text
    times, turns = (text.split(f"## {title}")[1].split("##")[0].splitlines() for title in ("Time", "Turns"))
    row, speed = (line for line in times if "claude" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["anthropic · claude", "1.5k", "30", "3.0 s"]
    assert speed == "- anthropic · claude now reads 930, writes 8.2 tokens/s"
    assert turns[0].endswith("longest first")
    assert turns[2].split("|")[2].strip() == "time"
    assert turns[-1].split("|")[2].strip() == "1.5 s"
    assert not {"money", "local", "cost"} & {cell.strip() for line in text.splitlines() for cell in line.split("|")}
    log.begin("again")
    log.call(Usage(1_000, 10))
    log.end()
    text = written(log)
    assert "1.5k" in text.split("## Time")[1].split("##")[0]
    assert "## Time" not in written(worked_chat())


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_small_window_reads_well_in_every_width(width: int) -> None:
    """No word is cut, no table line is too wide, and no part is larger than the whole."""
    log = LogWriter()
    for number in range(4):
        log.begin(f"Question number {number}: what does this function do, and why is it here?")
        limits = {"window": 1_000, "edit": 600, "compaction": 900}
        log.call(Usage(600, 30, cache_read_tokens=300), local=True, limits=limits, shaping={"results": 5_000})
        log.end()
    log.call(None, result="failed", local=True)
    speeds = {("anthropic", "claude"): Speed(930.0, 8.25).text}
    page = msgspec.structs.replace(PAGE, width=width)
    text = cost_report(read_log(log.events), page, speeds=speeds).text
    assert max(len(line) for line in text.splitlines() if line.startswith("|")) <= width
    assert "- ~400 of the tokens were left out by shaping requests" in text
    assert "now reads 930, writes 8.2 tokens/s" in text
    asked = "Question number 0: what does this function do, and why is it here?".split()
    for line in text.splitlines():
        if "… " in f"{line} ":  # the middle of a name may be left out
            assert line.split("…")[0].split()[-1] in asked
    assert ("of the prompts" in text) == (width >= 60)


def test_tokens_that_a_server_had_to_read_again_are_shown_with_the_cause() -> None:
    """There is one line for each cause, in `/cost` for the chat and in `/trace` for the turn."""
    log = LogWriter()
    log.begin("q")
    for tokens, why in ((3_000, "other_request"), (100, "other_request"), (5_000, ""), (700, "restart")):
        log.call(Usage(6_000, 10), local=True, again=ReadTwice(tokens, why))
    log.end()
    record = read_log(log.events)
    for text in (written(log), trace_report(record, find_turn(record, 1), PAGE)):
        assert "- read again: 3,100 tokens (another chat or request used the slot)" in text
        assert "- read again: 5,000 tokens (the server no longer had them in its cache)" in text
        assert "- read again: 700 tokens (the server restarted or reloaded the model)" in text
    assert "read again" not in written(worked_chat())


def test_the_longest_turn_of_own_servers_is_first() -> None:
    """Time is what they cost, however many tokens another turn had."""
    log = LogWriter()
    log.begin("large")
    log.call(Usage(9_000, 10), local=True)
    log.begin("long")
    log.call(Usage(1_000, 10), local=True)
    log.call(Usage(1_000, 10), local=True)
    turns = written(log).split("## Turns")[1]
    assert turns.index("long") < turns.index("large")


def test_a_plan_beside_a_key_is_shown_separately() -> None:
    """The amount is that of the key; the plan's calls do not add “and more” to it."""
    log = LogWriter()
    log.begin("q")
    log.call(Usage(1_000_000, 10))
    log.call(Usage(1_000_000, 10), included=True)
    log.end()
    text = written(log)
    amount = usd_text(read_log(log.events).calls[0].cost_usd)
    assert text.startswith(f"# Cost of this chat: {amount}\n")
    assert "Included in a plan: 1 request" in text
    record = read_log(log.events)
    assert f"{amount}, the rest included" in trace_report(record, find_turn(record, 1), PAGE)
