"""The durable summary without a model: R-314, R-315, R-318, R-319, R-320, R-324."""

from __future__ import annotations

import msgspec
import pytest

from codecompanion.context.artifact.artifact import Artifact, Decision, Episode, OpenThread, WorkspaceFact
from codecompanion.context.artifact.extract_artifact import extract, split_turns
from codecompanion.context.artifact.merge_artifacts import merge
from codecompanion.context.artifact.render_artifact import render
from codecompanion.context.ledger.goal import is_usable_goal
from codecompanion.model.messages import ToolCall
from codecompanion.placeholders import CANCELLED_BY_USER
from tests.unit.context.builders import assistant, chat, tool, turns, user


def extracted(*messages):
    return extract(split_turns(chat(*messages)))


def edit(call_id, path):
    return msgspec.structs.replace(
        assistant("", (call_id, "insert_edit")), tool_calls=(ToolCall(call_id, "insert_edit", f'{{"path": "{path}"}}'),)
    )


def test_a_file_lists_its_roles_over_all_turns():
    """R-314, R-316, R-318: the roles are edited, read and named by the user.

    Changed files come first, then named ones.
    """
    reads = []
    for n in range(3):
        call = msgspec.structs.replace(
            assistant("", (f"r{n}", "read_file")),
            tool_calls=(ToolCall(f"r{n}", "read_file", '{"path": "src/lexer.py"}'),),
        )
        reads += [call, tool(f"r{n}", "text")]
    messages = [
        user("Look at `lexer.py` and docs/plan.md."), *reads, assistant("Read."),
        user("Fix it."), edit("e1", "src/parser.py"), tool("e1", "ok"), edit("e2", "src/parser.py"), tool("e2", "ok"),
        assistant("Fixed."), user("And src/parser.py again."), edit("e3", "src/parser.py"), tool("e3", "ok"),
        edit("e4", "src/new.py"), tool("e4", "ok"), assistant("Done."),
    ]  # fmt: skip
    whole = merge(Artifact(), extracted(*messages))
    text = render(whole, 4096)
    assert text.partition("## Relevant Files\n")[2].splitlines() == [
        "- src/parser.py: edited ×3, named by the user",
        "- src/new.py: edited",
        "- src/lexer.py: read ×3, named by the user",
        "- docs/plan.md: named by the user",
    ]
    assert len(render(whole, 700).encode()) <= 700


def test_a_turn_yields_goal_episode_paths_evidence_and_status():
    """R-320, R-315: the goal comes from the user's text, the paths from calls.

    Outcomes are counted, and the final status is recorded.
    """
    artifact = extracted(
        user("Fix the parser in lua/parse.lua"),
        edit("c1", "lua/parse.lua"),
        tool("c1", "done"),
        assistant("", ("c2", "run_command")),
        tool("c2", "exit code: 1\nFAILED", is_error=True),
        assistant("It is fixed, one test still fails."),
    )
    assert artifact.session_objective == "Fix the parser in lua/parse.lua"
    (episode,) = artifact.completed_episodes
    assert episode.source_turn_ids == ("turn-1",)
    assert episode.touched_paths[0] == "lua/parse.lua"
    assert "one test still fails" in episode.summary
    kinds = [(v.kind, v.succeeded) for v in episode.verification]
    assert kinds == [("tool_result", False), ("tool_result", False), ("turn_status", True)]
    assert episode.verification[0].value == "1 tool calls succeeded, 1 failed"


def test_labelled_lines_of_the_assistant_become_items_with_their_turn():
    """R-320, R-315: the labels are Decision, Constraint, Next and Blocked; every item names its source turn."""
    artifact = extracted(
        user("plan it"),
        assistant(
            "Decision: use msgspec because pydantic is slow\n- **Constraint:** no new dependency\n"
            "Next: write the tests\nBlocked: waiting for your API key\nDeferred: the docs\nWarning: main is protected"
        ),
    )
    assert artifact.settled_decisions == (Decision("use msgspec", "pydantic is slow", "active", "turn-1"),)
    assert "no new dependency" in artifact.constraints
    assert [(t.item, t.status, t.owner) for t in artifact.open_threads] == [
        ("write the tests", "pending", "agent"),
        ("waiting for your API key", "blocked", "user"),
        ("the docs", "deferred", "agent"),
    ]
    assert [(f.path, f.fact) for f in artifact.workspace_facts] == [("", "main is protected")]
    assert artifact.turn_ids == {"turn-1"}


def test_labels_in_code_and_in_the_users_text_do_not_count():
    """R-320: only assistant text counts, and code is not a statement."""
    artifact = extracted(user("Decision: mine"), assistant("```\nNext: nothing\n```"))
    assert artifact.settled_decisions == ()
    assert artifact.open_threads == ()


def test_plain_sentences_are_quoted_with_their_turn():
    """R-314, R-320: decisions, constraints, blockers, warnings and announcements without a label are quoted."""
    artifact = extracted(
        user("Change the store."),
        assistant("Fine."),
        user("Please don't touch the lexer. We'll go with SQLite instead of files."),
        assistant(
            "I decided to keep `load`, because scripts use it. Do not run the migration twice. Blocked on your token.\n"
            "We must not rename the table. Next I will write the tests. I'll leave Windows for later."
        ),
    )
    assert artifact.constraints == ("Please don't touch the lexer.", "We must not rename the table.")
    assert set(artifact.constraint_turn_ids.values()) == {"turn-2"}
    assert [(d.decision, d.source_turn_id) for d in artifact.settled_decisions] == [
        ('"We\'ll go with SQLite instead of files."', "turn-2"),
        ('"I decided to keep `load`, because scripts use it."', "turn-2"),
    ]
    assert [(t.item, t.status, t.owner) for t in artifact.open_threads] == [
        ('"Blocked on your token."', "blocked", "user"),
        ('"Next I will write the tests."', "pending", "agent"),
        ('"I\'ll leave Windows for later."', "deferred", "agent"),
    ]
    assert [f.fact for f in artifact.workspace_facts] == ['"Do not run the migration twice."']
    text = render(artifact, 4096)
    assert '## Constraints & Preferences\n- turn-2: "Please don\'t touch the lexer."\n' in text
    assert '- waiting on the user: turn-2: "Blocked on your token."' in text
    assert '## Critical Context\n- turn-2: "Do not run the migration twice."' in text


def test_under_strict_only_labels_count():
    """R-320: like the document's source, `strict` reads only labels."""
    turns = split_turns(chat(user("go"), assistant("I decided to keep it.\nNext: the docs")))
    artifact = extract(turns, sentences=False)
    assert artifact.settled_decisions == ()
    assert [t.item for t in artifact.open_threads] == ["the docs"]


@pytest.mark.parametrize(
    ("label", "sentence"),
    [
        ("Decision: use msgspec", "We'll go with msgspec."),
        ("Decision: use msgspec because pydantic is slow", "I decided to use msgspec, since pydantic is slow."),
        ("Next: write the tests", "Next I will write the tests."),
        ("Blocked: waiting for the API key", "We are blocked until the API key is there."),
        ("Warning: do not run the migration twice", "Do not run the migration twice!"),
    ],
)
def test_a_label_takes_precedence_over_an_equivalent_sentence(label, sentence):
    """R-314, R-320: both in the same message and if one of them comes turns later."""
    for messages in (
        [user("go"), assistant(f"{sentence}\n{label}")],
        [user("go"), assistant(label), user("on"), assistant(sentence)],
        [user("go"), assistant(sentence), user("on"), assistant(label)],
    ):
        merged = merge(Artifact(), extracted(*messages))
        items = [
            *(d.decision for d in merged.settled_decisions),
            *(t.item for t in merged.open_threads),
            *(f.fact for f in merged.workspace_facts),
        ]
        assert items == [label.partition(": ")[2].partition(" because")[0]]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("We decided to keep SQLite.", "We decided to drop SQLite."),
        ("We'll use tabs.", "We won't use tabs."),
        ("I decided to cache the vectors.", "I decided to cache the index."),
    ],
)
def test_distinct_facts_are_both_kept(one, other):
    merged = merge(Artifact(), extracted(user("go"), assistant(one), user("on"), assistant(other)))
    assert [d.decision for d in merged.settled_decisions] == [f'"{one}"', f'"{other}"']


def test_the_users_prohibitions_are_constraints_in_the_users_words():
    """R-314: active constraints are kept, verbatim."""
    artifact = extracted(user("Refactor the store. Do not touch the migrations! Thanks."), assistant("ok"))
    assert artifact.constraints == ("Do not touch the migrations!",)


def test_an_unfinished_turn_is_work_in_progress():
    """R-314, R-320: the terminal status shows the open work."""
    artifact = extracted(user("make it fast"), assistant("", ("c1", "read_file")), tool("c1", "text"))
    (thread,) = artifact.open_threads
    assert (thread.blocking, thread.status) == (True, "pending")
    assert "make it fast" in thread.item


def test_runtime_notes_and_failed_tools_are_limited():
    """R-318: at most 3 notes and 6 failed tools, each truncated."""
    messages = [user("go over all files")]
    for i in range(20):
        call = msgspec.structs.replace(
            assistant("", (f"c{i}", "read_file")),
            tool_calls=(ToolCall(f"c{i}", "read_file", f'{{"path": "{"d/" * 60}{i}.py"}}'),),
        )
        messages += [call, tool(f"c{i}", CANCELLED_BY_USER if i % 2 else "Error: gone", is_error=True)]
    (episode,) = extracted(*messages).completed_episodes
    notes = [v.value for v in episode.verification if v.kind == "runtime_note"]
    failed = [v.value for v in episode.verification if v.kind == "tool_result"][1:]
    assert len(notes) == 3
    assert len(failed) == 6
    assert max(len(text.encode()) for text in failed) <= 64
    assert max(len(text.encode()) for text in notes) <= 240
    assert len(episode.summary.encode()) <= 360


@pytest.mark.parametrize(
    "text",
    ["continue", "Continue, please.", "just do the work", "ok", "yes, go ahead", "/compact keep names", "",
     "Summarize this conversation for the next model", "Compaction Summary:\n## Goal"],
)  # fmt: skip
def test_steering_and_meta_prompts_are_not_goals(text):
    """R-319: low-signal steering and a compaction's own prompt never become the goal."""
    assert not is_usable_goal(text)
    assert extracted(user("build the parser"), assistant("a"), user(text), assistant("b")).session_objective == (
        "build the parser"
    )


def test_the_first_request_is_the_goal_until_a_new_goal_is_stated():
    """R-319: neither a step nor small talk replaces it; an explicit statement does, whatever follows."""
    said = [user("build the parser"), assistant("a"), user("next, add tests"), assistant("b"), user("Nice!")]
    assert extracted(*said, assistant("c")).session_objective == "build the parser"
    later = [assistant("c"), user("I want a linter, too."), assistant("d"), user("what time is it?"), assistant("e")]
    assert extracted(*said, *later).session_objective == "I want a linter, too."


def test_the_question_of_an_unfinished_turn_is_open_whatever_the_goal():
    """R-314: the goal may be older than the interrupted work."""
    artifact = extracted(user("build the parser"), assistant("a"), user("now the lexer"))
    assert artifact.session_objective == "build the parser"
    assert [t.item for t in artifact.open_threads] == ["now the lexer (not answered)"]


def test_merging_replaces_episodes_of_one_id_and_drops_duplicates():
    """R-319: duplicates are found by normalised text across sources and statuses, and the newest is kept."""
    old = Artifact(
        session_objective="first",
        constraints=("no deps", "be kind"),
        settled_decisions=(Decision("use A", source_turn_id="turn-1"), Decision("use C", source_turn_id="turn-1")),
        completed_episodes=(Episode("e1", "old words"), Episode("e0", "before")),
        open_threads=(
            OpenThread("write tests", source_turn_id="turn-1"), OpenThread("Ship it.", source_turn_id="turn-1"),
            OpenThread("ask Ann", "blocked", source_turn_id="turn-1"),
        ),
        workspace_facts=(WorkspaceFact("", "main is protected", "turn-1"), WorkspaceFact("a.py", "is old", "turn-1")),
    )  # fmt: skip
    new = Artifact(
        session_objective="continue",
        constraints=("No  `deps`!", "be quick"),
        settled_decisions=(
            Decision("use A", source_turn_id="turn-1"), Decision("Use **A**.", "slow", "superseded", "turn-2"),
        ),
        completed_episodes=(Episode("e1", "new words"),),
        open_threads=(OpenThread("Write tests", "deferred", source_turn_id="turn-2"),),
        workspace_facts=(WorkspaceFact("", "Main is protected.", "turn-2"), WorkspaceFact("b.py", "is old", "turn-2")),
    )  # fmt: skip
    merged = merge(old, new, closed={"ship it"})
    assert merged.session_objective == "first"
    assert merged.constraints == ("be kind", "No  `deps`!", "be quick")
    assert [(d.decision, d.status, d.source_turn_id) for d in merged.settled_decisions] == [
        ("use C", "active", "turn-1"),
        ("Use **A**.", "superseded", "turn-2"),
    ]
    assert [(e.episode_id, e.summary) for e in merged.completed_episodes] == [("e0", "before"), ("e1", "new words")]
    assert [(t.item, t.status) for t in merged.open_threads] == [("ask Ann", "blocked"), ("Write tests", "deferred")]
    assert [(f.path, f.source_turn_id) for f in merged.workspace_facts] == [
        ("a.py", "turn-1"),
        ("", "turn-2"),
        ("b.py", "turn-2"),
    ]
    assert merge(merged, new) == merge(merge(merged, new), new)


def test_a_full_artifact_keeps_strict_items():
    """R-317, R-319: its size is limited, and the first rule of a long chat is not dropped."""
    older = Artifact(constraints=("Never push.", *(f"Keep file {n} short." for n in range(80))))
    newer = Artifact(
        constraints=tuple(f"Keep part {n} small." for n in range(80)),
        workspace_facts=(
            WorkspaceFact("", "You must not touch main", "turn-1"),
            *(WorkspaceFact("", f"stage {n} is slow", "turn-2") for n in range(99)),
        ),
    )
    merged = merge(older, newer)
    assert merged.constraints == ("Never push.", *(f"Keep part {n} small." for n in range(21, 80)))
    assert [fact.fact for fact in merged.workspace_facts][:2] == ["You must not touch main", "stage 40 is slow"]
    assert len(merged.workspace_facts) == 60


def test_large_results_leave_a_recall_hint():
    """R-315: page-in hints name tool, call and turn."""
    artifact = extracted(*turns(1, 4000))
    (hint,) = artifact.page_in_hints
    assert hint.call_ids == ("c0",)
    assert hint.tool_names == ("read_file",)
    assert hint.source_turn_ids == ("turn-1",)
