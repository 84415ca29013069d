"""Sentences that decide, constrain, block, warn or announce, without a label: R-314, R-320."""

from __future__ import annotations

import time

import pytest

from codecompanion.context.message_facts.plain_sentences import facts_of_sentences

BY_ASSISTANT = {
    "decision": [
        "I decided to use msgspec for the wire format.",
        "I've decided on SQLite.",
        "I’ve now decided against a second index.",
        "We have decided that errors are values.",
        "We decided not to cache the vectors.",
        "Decided to keep the old parser for one more release.",
        "I chose SQLite over Postgres, because nobody has to run it.",
        "We've chosen ruff as the only linter.",
        "I opted for a plain dataclass.",
        "We settled on JSON Lines.",
        "We agreed to drop Python 3.9.",
        "I'll go with the smaller model.",
        "We'll go with msgspec.",
        "We will go with two workers.",
        "So we're going with option B.",
        "I'm going to stick with the current schema.",
        "We went with a lock file.",
        "Going with msgspec, since pydantic is slow.",
        "Let's go with the second layout.",
        "Let's use a queue for that.",
        "We'll use a queue instead of a thread.",
        "We're switching to uv.",
        "I will keep the public names as aliases.",
        "It was decided to store times in UTC.",
        "It has been decided that the cache is per user.",
        "SQLite was chosen because it needs no server.",
        "The decision was to keep one table.",
        "Our choice is the append-only log.",
        "We won't support Windows XP.",
        "I kept the old name because scripts use it.",
        "I used a set instead of a list to keep it fast.",
        "Even if it is slower, we'll go with the safe variant.",
        "msgspec it is.",
        "**We'll go with `msgspec`.**",
        "- After the benchmark I decided to use `uv`.",
    ],
    "constraint": [
        "The public API must stay stable.",
        "We must not touch the migrations.",
        "The file format has to remain readable by version 1.",
        "We can't change the wire format before the release.",
        "We cannot add new dependencies.",
        "We're not allowed to call the network in tests.",
        "The generated files may not be edited.",
        "The folder vendor/ is off limits.",
        "We must support Python 3.9.",
        "One constraint is that the host starts in 100 ms.",
        "As you asked, the tests are left without changes and we add no new dependency.",
        "You asked me not to touch the lexer.",
        "Nobody may touch the schema this week.",
    ],
    "blocker": [
        "I'm blocked on the missing API key.",
        "We are currently blocked by the review of the schema.",
        "Blocked on legal.",
        "Blocked by the failing upstream build.",
        "This is blocked until the certificate is renewed.",
        "The release is still blocked by CI.",
        "The rest is blocked on your answer.",
        "The missing licence is a blocker.",
        "The broken mirror blocks the release.",
        "I can't continue without the credentials.",
        "I cannot proceed until the database is up.",
        "We can't run the tests because pytest is not installed.",
        "Waiting for your approval of the plan.",
        "I'm still waiting on the security team.",
        "I'm stuck on the segfault in the parser.",
        "The migration is on hold.",
        "I need a token with write access before I can push.",
    ],
    "warning": [
        "Do not run the migration twice.",
        "Don't run `make clean` on the server.",
        "Never commit the .env file.",
        "Please do not delete the lock file.",
        "Important: never push to the release branch.",
        "The index is rebuilt at night, so don't restart the host then.",
        "Be careful with the staging database: others use it.",
        "Beware of the cache, it is shared.",
        "Watch out: the script rewrites history.",
        "Keep in mind that the key expires on Friday.",
        "Make sure never to print the token.",
        "Running it again will overwrite the backups.",
        "This operation is irreversible.",
        "The deletion cannot be undone.",
        "Dropping the table is destructive.",
        "You should be careful with the order of the steps.",
        "These files should never be committed.",
    ],
    "next": [
        "Next I will write the tests.",
        "Next, I'll wire it into the loop.",
        "Next we need to update the docs.",
        "Next up is the renderer.",
        "Next: write the tests.",
        "After that I'll port the remaining callers.",
        "Then I'll remove the old module.",
        "The next step is to measure it.",
        "Next steps are the docs and the changelog.",
        "I'll add the benchmark next.",
        "I plan to split the file tomorrow.",
        "We intend to publish it on Monday.",
        "The plan is to migrate table by table.",
        "The documentation remains to be written.",
        "The Windows build is not yet tested.",
        "I still need to update the changelog.",
        "As a next step, I would add fuzzing.",
        "Once the tests are green, I'll tag the release.",
        "Finally, I'll delete the branch.",
    ],
    "deferred": [
        "I'll leave the Windows build for later.",
        "We deferred the rename.",
        "The redesign is postponed until spring.",
        "We'll fix the warning in a follow-up.",
    ],
}
BY_USER = {
    "decision": [
        "We decided to use SQLite instead of Postgres.",
        "I've decided: we'll go with option 2.",
        "let's go with msgspec",
        "ok, let's use tabs",
        "I'll go with the second option.",
        "Go with B.",
        "Actually, let's keep the old name.",
        "On second thought, use sqlite.",
        "We'll use the new endpoint.",
        "We're going with Postgres.",
        "We have agreed on four spaces.",
        "We won't support Windows.",
    ],
    "constraint": [
        "Don't touch the lexer.",
        "dont touch the lexer",
        "pls don't rename anything",
        "Leave the tests alone.",
        "leave setup.py as it is",
        "Hands off the migrations.",
        "Stay away from the vendor folder.",
        "The API has to stay compatible.",
        "The CLI needs to remain stable.",
        "You may not add dependencies.",
        "We can't change the database schema.",
        "I don't want any new dependencies.",
        "I'd rather you didn't touch the build.",
        "I want the public names to stay.",
        "I need the output kept stable.",
        "Let's not touch the parser.",
        "Restrict your changes to src/.",
        "Make sure not to break the public API.",
        "Be careful not to change the fixtures.",
        "Only touch the docs.",
        "nothing outside src/ may be changed",
        "The schema must not be changed.",
    ],
    "blocker": [
        "We're blocked on the vendor.",
        "I can't merge until CI is green.",
        "We are waiting for the security review.",
        "The deploy is blocked by the freeze.",
    ],
    "warning": [
        "Careful, the staging database is shared.",
        "Watch out: the key expires on Friday.",
        "Heads up, that script deletes the bucket.",
        "This cannot be undone.",
    ],
    "next": ["Later we'll add a Windows build.", "After that we should look at the docs."],
}
NOTHING = [
    "If we decided to use msgspec, would it be faster?",
    "If we decided to use msgspec it would be faster.",
    "Did you decide on a name?",
    "have we decided to drop it",
    "What if we go with msgspec?",
    "Suppose we go with msgspec.",
    "Let's say we decided to use Rust.",
    "I haven't decided on a name.",
    "We have not decided to do that.",
    "We never agreed on that.",
    "It was not decided.",
    "It has not been decided whether to keep it.",
    "Maybe we'll go with msgspec.",
    "I might go with msgspec.",
    "We could go with msgspec.",
    "You said we decided to use msgspec.",
    "The README says I decided to use msgspec.",
    'The log says "I decided to stop".',
    '"We\'ll go with msgspec."',
    "`I decided to use msgspec`",
    "They decided to use msgspec.",
    "We need to decide on a name.",
    "I don't think we decided to keep it.",
    "For example, we decided to use tabs.",
    "I'm not blocked on anything.",
    "We are no longer blocked by CI.",
    "There is no blocker.",
    "This is not a blocker.",
    "Are you blocked on something?",
    "If I'm blocked on the key, I'll tell you.",
    "The event loop is blocked by the read.",
    "The main thread was blocked on the lock.",
    "A non-blocking call returns at once.",
    "It never fails.",
    "The tests don't run on Windows.",
    "They do not use the cache.",
    "It doesn't change the file.",
    "Don't worry about the warnings.",
    "I was careful with the order.",
    "It can be reverted.",
    "This won't overwrite the backups.",
    "There is nothing left to do.",
    "Nothing remains to be done.",
    "The next line is empty.",
    "It moves to the next item.",
    "Should I add the tests next?",
    "Next I could add the tests, if you like.",
    "Would you like me to go with msgspec?",
    "Shall we go with msgspec",
    "The function returns the next token.",
    "I went through the files.",
    "I chose the wrong file.",
    "Let's keep going.",
    "I'll keep you posted.",
    "He must have changed it.",
    "You don't have to keep it.",
    "The parser is written in Rust.",
    "We'll go with msgspec if the benchmark is good.",
]
IN_CODE = [
    "```\nI decided to use msgspec.\n```",
    "```text\nWe'll go with msgspec.\nBlocked on legal.",
    "~~~\nI decided to use msgspec.\n~~~",
    "> I decided to use msgspec.",
    "    I decided to use msgspec.",
    "<stdout>\nBlocked on legal.\nNext I will stop.\n</stdout>",
    "| decided | We'll go with msgspec. |",
]


def kinds(text, by="assistant", *, is_last=True):
    return [fact.kind for fact in facts_of_sentences(text, by, is_last=is_last)]


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in BY_ASSISTANT.items() for text in texts])
def test_a_sentence_of_the_assistant_states_a_fact(kind, text):
    assert kinds(text) == [kind]


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in BY_USER.items() for text in texts])
def test_a_sentence_of_the_user_states_a_fact(kind, text):
    assert kinds(text, "user") == [kind]


@pytest.mark.parametrize("text", NOTHING)
def test_questions_suppositions_negations_and_reports_state_nothing(text):
    assert kinds(text) == kinds(text, "user") == []


@pytest.mark.parametrize("text", IN_CODE)
def test_code_and_quoted_text_state_nothing(text):
    assert kinds(text) == kinds(text, "user") == []


def test_between_two_tool_calls_only_lasting_facts_count():
    """An action announced between two calls is done a moment later."""
    text = "I decided to use msgspec. Never commit the .env file. Next I will run the tests. I'm stuck on the segfault."
    assert kinds(text, is_last=False) == ["decision", "warning"]
    assert kinds(text) == ["decision", "warning", "next", "blocker"]


def test_the_sentence_is_returned_verbatim():
    (fact,) = facts_of_sentences(
        "Well. 1. **I decided to use `msgspec`, not pydantic.** Fine.", "assistant", is_last=True
    )
    assert fact.text == "I decided to use `msgspec`, not pydantic."


def test_outside_text_takes_linear_time():
    """Lesson 34: a sentence has at most 500 characters, whatever they are."""
    pieces = ("I decided ", "we'll go ", "next ", "must stay ", '"', "`", "do not ", "the ", "is blocked ", "    ")
    texts = [(piece * 40)[:400] + ". " for piece in pieces]
    started = time.process_time()
    for text in texts:
        list(facts_of_sentences(text * 250, "assistant", is_last=True))
    assert time.process_time() - started < 8
