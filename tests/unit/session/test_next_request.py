"""The next request: its cache hits, its cost, its differences from the last one (R-546)."""

from __future__ import annotations

import pytest

from codecompanion.model.messages import Usage
from codecompanion.session.actions.preview_compaction import compare_with_last
from codecompanion.session.chat.inspection import inspect
from tests.unit.session.fakes import Bench, ScriptedAdapter, says, submit


def dollar_prices(adapter, model, passes):
    """Return the price: one dollar per million input tokens, a tenth of that for cache reads."""
    return sum(usage.input_tokens + 0.1 * usage.cache_read_tokens for usage in passes) / 1e6


async def chat(tmp_path, store=None, questions=2, cached=500):
    usage = Usage(1_000 - cached, 10, cache_read_tokens=cached)
    bench = Bench(tmp_path, ScriptedAdapter("s", lambda request: says("answer", usage)), store=store)
    bench.services.price = dollar_prices
    session = await bench.open()
    for number in range(1, questions + 1):
        session.submit(submit(f"question {number}", number))
        await bench.idle(session)
    return bench, session


def rows(session):
    return inspect(session.control, session.log)["rows"]


async def test_the_prefix_of_the_last_request_is_a_cheaper_cache_hit(tmp_path):
    """The whole last request is in the cache; its reply has not been sent yet."""
    _, session = await chat(tmp_path)
    shown = inspect(session.control, session.log)
    assert [row["cache"] for row in shown["rows"]] == ["hit", "hit", "hit", "hit", "hit", "miss"]
    for row in shown["rows"]:
        price = 0.1 if row["cache"] == "hit" else 1.0
        assert row["cost"] == pytest.approx(row["tokens"] * price / 1e6)
    assert shown["cost"] == pytest.approx(sum(row["cost"] for row in shown["rows"]))


async def test_a_change_in_the_middle_makes_the_rest_a_miss(tmp_path):
    """Lesson 22: a cache holds a prefix, word for word."""
    _, session = await chat(tmp_path, questions=3)
    await session.context.remove("detached", (session.log.view.messages[2].id,))
    assert [row["cache"] for row in rows(session)] == ["hit"] * 4 + ["miss"] * 3


async def test_a_cold_cache_and_no_cache_are_distinct(tmp_path):
    bench, session = await chat(tmp_path)
    bench.services.clock = lambda: 1_000.0 + bench.adapter.cache_lifetime_s + 1
    assert {row["cache"] for row in rows(session)} == {"miss"}
    bench.adapter.cache_lifetime_s = 0
    assert {row["cache"] for row in rows(session)} == {""}


async def test_a_model_that_reports_no_cache_has_no_hits(tmp_path):
    """As in `/trace`, even after a restart."""
    bench, session = await chat(tmp_path, cached=0)
    assert {row["cache"] for row in rows(session)} == {""}
    assert inspect(session.control, session.log)["cost"] == pytest.approx(
        sum(row["tokens"] for row in rows(session)) / 1e6
    )
    resumed = await Bench(tmp_path, ScriptedAdapter("s", []), store=bench.store).resume()
    assert {row["cache"] for row in rows(resumed)} == {""}


async def test_another_model_has_nothing_in_its_cache(tmp_path):
    """Until it has answered, even after a restart; switching back before that changes nothing."""
    bench, session = await chat(tmp_path)
    await session.use_model("s", "scripted-2")
    assert {row["cache"] for row in rows(session)} == {"miss"}
    resumed = await Bench(tmp_path, ScriptedAdapter("s", []), store=bench.store).resume()
    assert {row["cache"] for row in rows(resumed)} == {"miss"}
    await session.use_model("s", "scripted-1")
    assert rows(session)[0]["cache"] == "hit"
    await session.use_model("s", "scripted-2")
    session.submit(submit("question 3", 3))
    await bench.idle(session)
    assert [row["cache"] for row in rows(session)] == ["hit"] * 7 + ["miss"]


async def test_without_a_price_there_is_no_cost(tmp_path):
    """R-359."""
    bench, session = await chat(tmp_path)
    bench.services.price = lambda adapter, model, passes: None
    shown = inspect(session.control, session.log)
    assert shown["cost"] is None
    assert {row["cost"] for row in shown["rows"]} == {None}


async def test_after_a_restart_the_view_shows_what_was_sent(tmp_path):
    """The same rows are hits, and the difference is the same as before."""
    bench, session = await chat(tmp_path)
    before = [row["cache"] for row in rows(session)], compare_with_last(session.control, await session.log.events())
    again = Bench(tmp_path, ScriptedAdapter("s", []), store=bench.store)
    resumed = await again.resume()
    assert [row["cache"] for row in rows(resumed)] == before[0]
    assert compare_with_last(resumed.control, await resumed.log.events())["text"] == before[1]["text"]


async def test_the_next_request_is_compared_with_the_last(tmp_path):
    """R-546: new, changed and removed messages, one line each."""
    _, session = await chat(tmp_path)
    await session.context.remove("detached", (session.log.view.messages[0].id,))
    shown = compare_with_last(session.control, await session.log.events())
    head, *lines = shown["text"].splitlines()
    assert head.startswith("# Since the last request: 1 new, 0 changed, 1 gone, ")
    assert [line[0] for line in lines] == [" ", "-", " ", " ", "+"]
    assert lines[1].endswith("question 1")
    assert lines[-1].endswith("answer")


async def test_before_the_first_request_everything_is_new(tmp_path):
    _, session = await chat(tmp_path, questions=0)
    text = compare_with_last(session.control, await session.log.events())["text"]
    assert text.startswith("# Nothing has been sent yet: everything is new\n+ system")
