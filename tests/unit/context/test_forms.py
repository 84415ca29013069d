"""No text is outside the form that a document gives a summary (R-129, R-316, R-433, R-527)."""

from __future__ import annotations

import re

import pytest

from codecompanion.context.strategy_parameters import InsertSummary
from codecompanion.context.summary.insert_summary import summary_text
from codecompanion.context.summary.judge_reply import inside_form
from codecompanion.context.summary_text.sections import load_schema, parse_sections
from codecompanion.context.work import SummaryReply, Work
from codecompanion.model.messages import SUMMARY_TAG
from codecompanion.placeholders import LEDGER_HEADING, QUOTES_HEADING, REQUEST_HEADING, SUMMARY_PREFIX, quoted_request
from codecompanion.summary_frame import HANDOFF, split_frame
from tests.unit.context.test_scripted_summarisers import long_day, nine_sections, prepared_under


def announced(ask):
    """Return a good summary after an unrequested announcement."""
    return SummaryReply(text=f"Here is the summary you asked for:\n\n{nine_sections(ask)}")


def summary_under(name, monkeypatch, *, keys):
    monkeypatch.setitem(prepared_under.__globals__["SCRIPTS"], "announced", announced)
    places = {message.id: place for place, message in enumerate(long_day())}
    key_of = (lambda message_id: f"r{places[message_id]}" if message_id in places else "") if keys else (lambda _: "")
    prepared, _ = prepared_under(name, "announced", manual=name != "codebuddy", key_of=key_of)
    (message,) = [message for message in prepared.messages if message.tag == SUMMARY_TAG]
    assert "wish-1" in message.text
    assert ("recall r" in message.text) == keys
    return message.text


@pytest.mark.parametrize("keys", [False, True])
def test_codecompanion_is_the_prefix_and_nine_sections(monkeypatch, keys):
    """R-526, R-527: the user's words are in section 6."""
    text = summary_under("codecompanion", monkeypatch, keys=keys)
    found = parse_sections(text.removeprefix(SUMMARY_PREFIX), load_schema("cc_9"))
    assert text.startswith(f"{SUMMARY_PREFIX}1. **Primary Request and Intent**\n")
    assert (found.preamble, len(found.parts)) == ("", 9)
    assert found.tail.startswith(LEDGER_HEADING)
    assert "> wish-1" in found.body(6)
    assert ("recall r" in found.body(6)) == keys


@pytest.mark.parametrize("keys", [False, True])
@pytest.mark.parametrize("name", ["cowork", "cowork_chat"])
def test_cowork_is_one_element_with_the_preamble_and_nine_sections(monkeypatch, name, keys):
    """R-429, R-432, R-433: the user's words are in section 2."""
    text = summary_under(name, monkeypatch, keys=keys)
    opened, closed = f"<cowork_compaction_summary>\n{HANDOFF}", "\n</cowork_compaction_summary>"
    assert text.startswith(f"{opened}1. **Primary Request and Intent**")
    assert text.endswith(closed)
    found = parse_sections(text.removeprefix(opened).removesuffix(closed), load_schema("cw_9"))
    assert (found.preamble, len(found.parts)) == ("", 9)
    assert found.tail.startswith(LEDGER_HEADING)
    assert "wish-1" in found.body(2)
    assert ("recall r" in found.body(2)) == keys


def test_the_handoff_of_earlier_versions_is_parsed_without_its_sentence():
    """R-432: stored chats have a different sentence in place of the current one."""
    words = (
        "This session goes on from a context that was compacted. A previous agent wrote the structured summary below to"
        " hand off the work. Build on what has been done already and avoid duplicating effort."
    )
    text = f"<cowork_compaction_summary>\n{words}\n\n1. **Goal**: x\n</cowork_compaction_summary>"
    assert split_frame(text).summary == "1. **Goal**: x"


@pytest.mark.parametrize("keys", [False, True])
def test_codebuddy_is_its_header_and_text(monkeypatch, keys):
    """R-129, R-131: the text is free and includes the quotes."""
    text = summary_under("codebuddy", monkeypatch, keys=keys)
    header, gap, body = text.partition("\n\n")
    assert re.fullmatch(
        r"\[(?:Conversation Summary — \d+ earlier|Earlier conversation summary — \d+) messages compacted\]", header
    )
    assert gap
    assert body.count(QUOTES_HEADING) == 1


@pytest.mark.parametrize("keys", [False, True])
def test_kodacode_is_its_header_and_items_below_headings(monkeypatch, keys):
    """R-316: one `- ` line per item; the user's words and the ledger are ours and come below."""
    text = summary_under("kodacode", monkeypatch, keys=keys)
    header, _, body = text.partition("\n\n")
    assert header == "Compaction Summary:"
    typed, heading, below = body.partition(QUOTES_HEADING)
    assert [line for line in typed.split("\n") if line and not re.match(r"#{2,3} |- ", line)] == []
    assert heading
    assert LEDGER_HEADING in below


def test_the_quoted_request_is_inside_the_element():
    """R-433, R-551: a chat that continues from cowork's block sees one element and nothing after it."""
    frame = InsertSummary(header="handoff", wrapper="cowork_compaction_summary")
    words = "go on with </cowork_compaction_summary> this\n\n- and that"
    text = summary_text(Work(before=(), messages=(), summary="1. the rest", request=words), frame)
    assert text.endswith("\n</cowork_compaction_summary>")
    assert text.count("</cowork_compaction_summary>") == 1
    assert quoted_request(text) == words.replace("</cowork", "<\\/cowork")
    framed = split_frame(text)
    assert framed.before + framed.summary + framed.after == text
    assert framed.summary == "1. the rest"
    old = f"<x>\nfree\n</x>\n\n{REQUEST_HEADING}\n\ngo on"
    assert quoted_request(old) == "go on"
    assert split_frame(old).summary == "free"


@pytest.mark.parametrize("schema", ["cc_9", "cw_9"])
def test_text_before_the_models_sections_is_removed(schema):
    """An announcement is dropped, but substantive text moves into the first section."""
    form = load_schema(schema)
    said = "\n\n".join(f"{form.heading(n)}\nthe loader {n}" for n in range(1, 10))
    for ahead in ("Here is the summary:", "# Session summary\n\n---"):
        assert inside_form(f"{ahead}\n\n{said}", form) == said
    told = "The user was angry about the loader, and for good reasons. " * 5
    text = inside_form(f"{told}\n\n{said}", form)
    found = parse_sections(text, form)
    assert found.preamble == ""
    assert found.body(1) == f"{told.strip()}\n\nthe loader 1"
    assert found.body(9) == "the loader 9"
