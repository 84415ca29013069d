"""Gathered code is cleared like old tool results, and its placeholder names the files (R-253)."""

from __future__ import annotations

import pytest

from codecompanion.context.editing.clear_tool_results import clear_tool_results
from codecompanion.context.editing.clear_when_it_pays import clear_when_it_pays
from codecompanion.context.editing.truncate_tool_results import truncate_tool_results
from codecompanion.context.ledger.facts import gather
from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.selection.select_window import first_pending, select_window
from codecompanion.context.strategy_parameters import (
    ClearToolResults,
    ClearWhenItPays,
    OlderThan,
    SelectWindow,
    TruncateToolResults,
)
from codecompanion.context.work import CacheState, Skipped, Work
from codecompanion.model.cycles import assign_cycles
from codecompanion.model.mentioned import Reference
from codecompanion.model.messages import GATHERED_TAG, GatheredPiece, is_typed_by_user, with_changes
from codecompanion.placeholders import gathered_names, without_gathered_code
from tests.unit.context.builders import assistant, chat, count, env, run, system, texts, tool, user

PIECES = (GatheredPiece("src/a.py", 1, 40), GatheredPiece("src/b.lua"), GatheredPiece("src/a.py", 60, 75))
CLEARED = (
    "<important>Code gathered for the next message cleared to save context: src/a.py:1-40, 60-75; src/b.lua."
    " Read the files again if you need them.</important>"
)
CODE = "### File: src/a.py\ndef secret_recipe(): ...\n" * 40


def code(text=CODE, **fields):
    return user(text, GATHERED_TAG, gathered=PIECES, **fields)


def asked(number, **fields):
    """Return `number` questions, each with its gathered code before it, a call, a result and an answer."""
    made = []
    for i in range(number):
        made += [code(**fields), user(f"question {i}"), assistant("", (f"c{i}", "read_file"))]
        made += [tool(f"c{i}", "r " * 300), assistant(f"answer {i}")]
    return made


def clear(messages, **params):
    wanted = ClearToolResults(older_than=OlderThan("cycles", 2), **params)
    return clear_tool_results(Work(before=messages, messages=messages), wanted, env(messages, 1000))


def test_gathered_code_opens_no_cycle_and_is_not_typed():
    """R-002."""
    messages = assign_cycles([system(), *asked(3)])
    assert [m.cycle for m in messages if is_typed_by_user(m)] == [1, 2, 3]
    assert not any(is_typed_by_user(m) for m in messages if m.tag == GATHERED_TAG)


def test_old_code_is_cleared_together_with_the_results_of_its_cycle():
    messages = chat(*(with_changes(m, cycle=c) for c in (1, 2, 3) for m in asked(1)))
    work = clear(messages)
    changed = [m.id for m, was in zip(work.messages, messages, strict=True) if m != was]
    assert changed == ["m0", "m3"]
    assert work.messages[0].text == CLEARED
    assert work.messages[0].edited
    assert work.messages[0].gathered == PIECES, "what it was made of is still known"
    assert [m.id for m in work.cleared] == changed
    assert isinstance(clear(work.messages), Skipped), "once is enough"


def test_a_tool_list_states_whether_it_counts():
    messages = chat(*(with_changes(m, cycle=c) for c in (1, 2, 3) for m in asked(1)))
    assert [m.id for m in clear(messages, tools=("read_file",)).cleared] == ["m3"]
    assert [m.id for m in clear(messages, tools=(GATHERED_TAG,)).cleared] == ["m0"]
    assert [m.id for m in clear(messages, exclude_tools=(GATHERED_TAG,)).cleared] == ["m3"]


def test_pinned_code_stays_and_short_code_gets_no_placeholder():
    messages = chat(code(pinned=True), code("x = 1"), user("q"), assistant("a"))
    assert isinstance(clear(messages, tools=(GATHERED_TAG,)), Skipped)


def test_the_listed_names_are_few_whatever_was_gathered():
    many = user("code", GATHERED_TAG, gathered=tuple(GatheredPiece(f"f{i}.py", 1, 2) for i in range(500)))
    assert gathered_names(many).endswith("f19.py:1-2; and 480 more files")
    assert gathered_names(user("code", GATHERED_TAG)) == ""
    assert "cleared to save context. Read" in without_gathered_code(user("code", GATHERED_TAG)).text


def test_when_it_pays_earlier_code_is_cleared_and_the_current_questions_kept():
    messages = chat(*(with_changes(m, cycle=c, tokens=count(m)) for c in (1, 2) for m in asked(1)))
    params = ClearWhenItPays(keep_messages=0, keep_tokens=0, min_tokens=0, min_size=10, min_share=0.0)
    cold = env(messages, 10**6, cache=CacheState(warm_tokens=0))
    work = clear_when_it_pays(Work(before=messages, messages=messages), params, cold)
    codes = [m.edited for m in work.messages if m.tag == GATHERED_TAG]
    assert codes == [True, False]
    assert messages[0] in work.cleared


def test_very_large_code_is_truncated_like_a_very_large_result():
    """R-412."""
    messages = chat(code(), user("q"), assistant("a"))
    work = truncate_tool_results(
        Work(before=messages, messages=messages), TruncateToolResults(max_tokens=50), env(messages, 10**6)
    )
    assert len(work.messages[0].text) <= 200
    assert work.messages[1:] == messages[1:]


def test_code_waits_with_its_question():
    """R-551: an unanswered question stays, and so does its code."""
    messages = chat(user("old"), assistant("done"), code(), user("new"))
    assert first_pending(messages) == 2
    work = select_window(Work(before=messages, messages=messages), SelectWindow(), env(messages, 1000))
    assert texts(work.pending) == [CODE, "new"]


def test_a_summary_gets_the_file_names_without_the_code():
    messages = chat(code(), user("old"), assistant("done"), user("new"))
    work = select_window(Work(before=messages, messages=messages), SelectWindow(), env(messages, 1000))
    assert texts(work.removed) == [CLEARED, "old", "done"]


@pytest.mark.parametrize("name", policy_names())
def test_under_every_policy_no_summariser_reads_the_code_and_the_files_are_named(name):
    filler = [m for i in range(30) for m in (user(f"words {i} " * 60), assistant(f"reply {i} " * 60))]
    messages = chat(code(), user("first question"), assistant("first answer"), *filler)
    prepared, questions = run(messages, 3000, policy=load_policy(name), manual=True)
    given = "".join(ask.request.prompt for ask in questions)
    assert "secret_recipe" not in given
    summaries = "".join(m.text for m in prepared.messages if m.tag == "compact_summary")
    assert summaries
    assert "secret_recipe" not in summaries
    assert "src/a.py" in given + summaries


def test_the_ledger_has_the_files_and_no_names_from_the_code():
    facts = gather(chat(code(), user("q")))
    assert set(facts.files) == {"src/a.py", "src/b.lua"}
    assert "secret_recipe" not in facts.names


@pytest.mark.parametrize("name", policy_names())
def test_code_too_large_for_the_window_is_cleared_and_the_question_sent(name):
    """R-524: this is the last step to make room, and it needs no model."""
    messages = chat(system(), code(CODE * 20), user("question"))
    prepared, _ = run(messages, 1500, policy=load_policy(name))
    assert sum(map(count, prepared.messages)) <= 1500
    assert prepared.messages[-1].text == "question"
    assert CLEARED in texts(prepared.messages)


def test_code_that_the_running_question_refers_to_stays():
    """It was not sent again, so it is as new as that question; a full clear removes it, too."""
    above = user("code", GATHERED_TAG, references=(Reference(("m0",), "above", "gone"),))
    other = user(CODE, GATHERED_TAG, gathered=(GatheredPiece("src/c.py", 1, 9),))
    asked_in = [(1, code()), (1, user("q")), (1, assistant("a")), (2, other), (2, user("q")), (2, assistant("a"))]
    asked_in += [(3, user("q")), (3, assistant("a")), (4, above), (4, user("q"))]
    messages = chat(*(with_changes(m, cycle=cycle, tokens=count(m)) for cycle, m in asked_in))
    assert [m.id for m in clear(messages).cleared] == ["m3"]
    work = Work(before=messages, messages=messages)
    params = ClearWhenItPays(keep_messages=0, keep_tokens=0, min_tokens=0, min_size=10, min_share=0.0)
    cold = env(messages, 10**6, cache=CacheState(warm_tokens=0))
    assert [m.id for m in clear_when_it_pays(work, params, cold).cleared] == ["m3"]
    everything = ClearToolResults(older_than=OlderThan("cycles", 0), tools=(GATHERED_TAG,))
    assert "m0" in [m.id for m in clear_tool_results(work, everything, env(messages, 1000)).cleared]
    later = chat(*(with_changes(m, id="", cycle=m.cycle) for m in messages), *(
        with_changes(m, cycle=5) for m in (assistant("a"), user("next"), assistant("a"))
    ))  # fmt: skip
    assert "m0" in [m.id for m in clear(later).cleared]
