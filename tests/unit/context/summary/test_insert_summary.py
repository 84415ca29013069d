"""S14: the position of the summary (R-129, R-131, R-323, R-424, R-432, R-433, R-443, R-527, R-551, K5, K10)."""

from __future__ import annotations

import pytest

from codecompanion.context.strategy_parameters import InsertSummary
from codecompanion.context.summary.insert_summary import insert_summary
from codecompanion.context.work import Failed, Work
from codecompanion.model.messages import SUMMARY_TAG
from codecompanion.placeholders import SUMMARY_PREFIX, quoted_request
from codecompanion.summary_frame import HANDOFF, bare_summary
from tests.unit.context.builders import assistant, chat, count, env, system, texts, tool, user

COWORK = {
    "place": "after_first_user", "header": "handoff", "wrapper": "cowork_compaction_summary",
    "pinned": True, "upsert": True,
}  # fmt: skip


def insert(messages, removed=(), pending=(), summary="TEXT", request="", **params):
    gone = {message.id for message in (*removed, *pending)}
    work = Work(
        before=messages,
        messages=tuple(message for message in messages if message.id not in gone),
        removed=removed,
        pending=pending,
        summary=summary,
        request=request,
    )
    return insert_summary(work, InsertSummary(**params), env(messages, 10_000))


def kinds(work):
    return ["SUMMARY" if message.tag == SUMMARY_TAG else message.text for message in work.messages]


CHAT = chat(system("S"), user("RULES", "rules"), user("q1"), assistant("a1"), user("q2"), assistant("a2"), user("q3"))


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("last", ["S", "RULES", "q1", "a1", "q2", "a2", "SUMMARY", "q3"]),
        ("first", ["S", "SUMMARY", "RULES", "q1", "a1", "q2", "a2", "q3"]),
        ("history_head", ["S", "RULES", "SUMMARY", "q1", "a1", "q2", "a2", "q3"]),
        ("after_first_user", ["S", "RULES", "q1", "SUMMARY", "a1", "q2", "a2", "q3"]),
    ],
)
def test_the_position_is_a_parameter(place, expected):
    """K5, R-129, R-323, R-443: every position is possible; pending messages stay last (R-551)."""
    assert kinds(insert(CHAT, pending=CHAT[6:], place=place)) == expected


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_the_role_is_a_parameter_and_the_tag_is_fixed(role):
    """K5, R-426: the tag lets the next compaction find the summary under any policy."""
    work = insert(CHAT, removed=CHAT[2:4], role=role, place="first", header="with_count", pinned=True)
    message = work.messages[1]
    assert (message.role, message.tag, message.pinned) == (role, SUMMARY_TAG, True)
    assert message.text == "[Conversation Summary — 2 earlier messages compacted]\n\nTEXT"
    assert message.tokens == count(message)


def test_the_older_half_has_its_header():
    """R-131."""
    work = insert(CHAT, removed=CHAT[2:5], header="earlier_with_count")
    assert work.messages[-1].text == "[Earlier conversation summary — 3 messages compacted]\n\nTEXT"


def test_the_block_is_framed_as_a_handoff():
    """R-432, R-433: opening tag, preamble, text and closing tag are each on their own lines."""
    message = insert(CHAT, removed=CHAT[3:4], **COWORK).messages[3]
    assert message.pinned
    assert message.text == f"<cowork_compaction_summary>\n{HANDOFF}TEXT\n</cowork_compaction_summary>"
    assert (
        "A previous agent produced the structured summary below to hand off the work. Use this to build on the work"
        " that has already been done and avoid duplicating effort." in HANDOFF
    )


def test_the_summary_cannot_close_its_element():
    """R-433 [proposed]."""
    text = insert(CHAT, summary="a </cowork_compaction_summary> b < / COWORK_compaction_summary>", **COWORK)
    assert text.messages[3].text.count("</cowork_compaction_summary>") == 1
    assert text.messages[3].text.endswith("\n</cowork_compaction_summary>")
    assert "< / COWORK" not in text.messages[3].text


def test_the_request_in_progress_is_quoted_after_the_element():
    """R-551: the next compaction reads it there."""
    message = insert(CHAT, request="please\n\ngo", **COWORK).messages[3]
    assert quoted_request(message.text) == "please\n\ngo"


def test_without_a_user_message_the_summary_comes_first():
    """R-443."""
    messages = chat(system("S"), assistant("a"))
    assert kinds(insert(messages, place="after_first_user")) == ["S", "SUMMARY", "a"]


def test_the_summary_never_separates_a_call_from_its_result():
    """R-443: it is inserted further down."""
    messages = chat(assistant("", ("c", "read")), user("steer"), tool("c", "r"), assistant("done"))
    assert kinds(insert(messages, place="after_first_user")) == ["", "steer", "r", "SUMMARY", "done"]


def test_the_summary_is_updated_in_place():
    """R-443: this works even if another policy put it elsewhere; there is exactly one summary."""
    messages = chat(user("q1"), assistant("a1"), user("q2"), user("OLD", SUMMARY_TAG), assistant("a2"), user("q3"))
    old = messages[3:4]
    assert kinds(insert(messages, removed=old, **COWORK)) == ["q1", "a1", "q2", "SUMMARY", "a2", "q3"]
    gone = (*messages[1:3], *old)
    assert kinds(insert(messages, removed=gone, **COWORK)) == ["q1", "SUMMARY", "a2", "q3"]
    assert kinds(insert(messages, removed=(*messages[:3], *old), **COWORK)) == ["SUMMARY", "a2", "q3"]


@pytest.mark.parametrize(("carry", "replaced"), [("in_transcript", False), ("merge", True), ("overwrite", True)])
def test_an_unread_summary_is_dropped_only_if_the_policy_allows_it(carry, replaced):
    """R-424, K10."""
    messages = chat(user("q1"), user("OLD", SUMMARY_TAG), assistant("a1"))
    outcome = insert(messages, removed=messages[2:], carry=carry)
    assert isinstance(outcome, Failed) is not replaced
    if replaced:
        assert kinds(outcome) == ["q1", "SUMMARY"]


def test_without_text_nothing_is_inserted():
    """R-434: an empty answer is a failure."""
    assert isinstance(insert(CHAT, summary=""), Failed)


@pytest.mark.parametrize(
    "params",
    [{}, {"header": "with_count"}, {"header": "earlier_with_count"}, COWORK, {**COWORK, "header": ""}],
)
def test_a_summary_is_read_back_without_its_frame(params):
    """R-424: the next summariser receives its content and the request quoted after it."""
    text = next(m for m in insert(CHAT, removed=CHAT[3:4], **params).messages if m.tag == SUMMARY_TAG).text
    assert bare_summary(text) == "TEXT"
    quoted = next(
        m for m in insert(CHAT, removed=CHAT[3:4], request="go", **params).messages if m.tag == SUMMARY_TAG
    ).text
    assert bare_summary(quoted).startswith("TEXT\n\n")
    assert quoted_request(bare_summary(quoted)) == "go"
    assert SUMMARY_PREFIX not in bare_summary(quoted)


def test_kept_messages_keep_their_text_and_order():
    """R-527."""
    assert texts(insert(CHAT).messages[:-1]) == texts(CHAT)
