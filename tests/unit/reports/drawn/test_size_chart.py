"""The chart of `/cost`: its drawing at every width (R-356)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codecompanion.formats.cutting import cells
from codecompanion.model.history import ChangeUndone
from codecompanion.model.messages import Usage
from codecompanion.reports.context_sizes import context_sizes
from codecompanion.reports.cost import cost_report
from codecompanion.reports.drawn.size_chart import ChartLine, size_chart
from codecompanion.reports.markdown import Page

from ..logs import LogWriter, read_log

GOLDEN = Path(__file__).parent.parent / "golden"
WINDOW = {"window": 128_000, "edit": 83_200, "compaction": 108_800}


def managed(requests: int, *, undone_at: int = 0) -> LogWriter:
    """Return a chat that grows by 3,000 tokens a request, is edited at 65 % and compacted at 85 % of the window."""
    log, size, edit = LogWriter(), 9_000, ""
    log.begin("Make the parser faster")
    for number in range(1, requests + 1):
        size += 3_000
        if size > WINDOW["compaction"]:
            log.change("compacted", size, 14_000)
            size = 14_000
        elif size > WINDOW["edit"] and number % 5 == 0:
            edit = log.change("edited", size, size - 12_000)
            size -= 12_000
        if number == undone_at:
            log.add(ChangeUndone(change_id=edit, by_user=True))
            size += 12_000
        log.call(Usage(size // 10, cache_read_tokens=size - size // 10, output_tokens=200), limits=WINDOW)
    log.end()
    return log


def chart(log: LogWriter, width: int, *, ascii: bool = False) -> list[ChartLine]:
    return size_chart(context_sizes(read_log(log.events)), width, ascii=ascii)


def text_of(lines: list[ChartLine]) -> str:
    return "".join(f"{line.text}\n" for line in lines)


@pytest.mark.parametrize(
    ("name", "requests", "width", "more"),
    [
        ("one-request-40", 1, 40, {}),
        ("some-40", 12, 40, {}),
        ("managed-40", 90, 40, {}),
        ("managed-40-ascii", 90, 40, {"ascii": True}),
        ("managed-80", 90, 80, {}),
        ("undone-80", 30, 80, {"undone_at": 29}),
        ("managed-200", 90, 200, {}),
        ("thousands-200", 5_000, 200, {}),
    ],
)
def test_the_chart_equals_its_golden_text(name: str, requests: int, width: int, more: dict[str, int]) -> None:
    """After a change, check the golden files visually."""
    drawn = text_of(chart(managed(requests, undone_at=more.get("undone_at", 0)), width, ascii=bool(more.get("ascii"))))
    file = GOLDEN / f"{name}.txt"
    if not file.exists():
        file.parent.mkdir(exist_ok=True)
        file.write_text(drawn)
        pytest.fail(f"{file.name} was written; look at it")
    assert drawn == file.read_text()


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["call", "edited", "compacted", "restored", "cleared", "undo"]), st.integers(0, 10**7)
        ),
        max_size=60,
    ),
    st.integers(40, 220),
    st.booleans(),
)
@example(steps=[("edited", 1), ("call", 1)], width=60, ascii=False)
def test_any_history_fits_and_its_colours_match(steps: list[tuple[str, int]], width: int, ascii: bool) -> None:
    """No line is wider than the window; every span ends within its line, at a character boundary."""
    log, newest = LogWriter(), ""
    log.begin("q")
    for kind, number in steps:
        if kind == "call":
            log.call(Usage(number), limits=WINDOW if number % 2 else {})
        elif kind == "undo":
            log.add(ChangeUndone(change_id=newest))
        else:
            newest = log.change(kind, number, number // 3)
    sizes = context_sizes(read_log(log.events))
    assert all(size.sent <= size.without for size in sizes)
    if not sizes:
        return
    for line in size_chart(sizes, width, ascii=ascii):
        assert cells(line.text) <= width
        assert ascii <= line.text.isascii()
        for span in line.spans:
            assert 0 <= span.first < span.end
            line.text.encode()[span.first : span.end].decode()


def test_the_line_is_the_request_plus_everything_removed() -> None:
    """Edits and compactions add up; undone or restored parts no longer count, and those of /clear never did."""
    log = LogWriter()
    log.begin("q")
    log.call(Usage(50_000))
    edit = log.change("edited", 50_000, 30_000)
    log.call(Usage(30_000), shaping={"results": 500, "packet": 9})
    log.change("compacted", 30_000, 10_000)
    log.call(Usage(10_000))
    log.change("restored", 10_000, 14_000)
    log.call(Usage(14_000))
    log.add(ChangeUndone(change_id=edit))
    log.call(Usage(34_000))
    log.add(ChangeUndone(change_id=edit, redone=True))
    log.call(Usage(14_000))
    clear = log.change("cleared", 14_000, 0)
    log.call(Usage(100))
    log.add(ChangeUndone(change_id=clear))
    log.call(Usage(14_000))
    sizes = context_sizes(read_log(log.events))
    assert [size.removed for size in sizes] == [0, 20_000, 40_000, 36_000, 16_000, 36_000, 0, 36_000]
    assert [size.without for size in sizes][:3] == [50_000, 50_500, 50_000]
    assert [size.marks for size in sizes] == [
        (), ("edit",), ("compaction",), (), ("undo",), ("edit",), (), (),
    ]  # fmt: skip


def test_the_report_has_the_chart_the_totals_and_the_colour_spans() -> None:
    """R-356: both totals, and a note about parts that did not fit."""
    report = cost_report(read_log(managed(90).events), Page(width=80))
    lines = report.text.split("\n")
    sent = sum(size.sent for size in context_sizes(read_log(managed(90).events)))
    assert f"Sent: {sent / 1e6:.1f}M tokens; without edits, compactions and shaping: ~" in report.text
    assert "requests would not have fit the window and count as a full window each." in report.text
    inks = {ink for _, _, _, ink in report.spans}
    assert inks == {"sent", "without", "limit", "edit", "compaction"}
    for line, first, end, ink in report.spans:
        drawn = lines[line].encode()[first:end].decode()
        assert drawn.strip(), (line, ink)
        assert {"edit": "✂", "compaction": "◆"}.get(ink, drawn) == drawn


def test_a_chat_that_was_never_managed_has_no_second_line() -> None:
    text = cost_report(read_log(managed(20).events), Page(width=40)).text
    assert "⣿ sent, up to 69.0k\n" in text
    assert "without" not in text.lower().partition("## tokens\n")[0]


def test_summaries_and_failed_requests_are_not_on_the_chart() -> None:
    log = LogWriter()
    log.begin("q")
    log.call(result="failed")
    log.summary_call(Usage(3_000, 100))
    log.call(Usage(2_000))
    assert [size.sent for size in context_sizes(read_log(log.events))] == [2_000]
