"""Evidence packets and structured summaries: R-468…R-471."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.context.checkpoints import evidence_packet as packet
from codecompanion.context.checkpoints.evidence_packet import build_packet, exact_text, newest_meaningful
from codecompanion.context.checkpoints.structured_summary import parse_summary
from codecompanion.model.messages import Message, ToolCall
from tests.unit.context.builders import assistant, chat, tool, user

TEXTS = st.text(max_size=400) | st.integers(0, 40_000).map(lambda size: "ä" * size)
MESSAGES = st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), TEXTS), max_size=30)


def made(pairs):
    return [Message(id=f"m{i}", role=role, content=text, ts=float(i)) for i, (role, text) in enumerate(pairs)]


def test_text_is_kept_exactly():
    """R-469: white space is kept, and so is the position in the message; the excerpt is only for display."""
    text = "  two\n\n  lines\t" + "x" * 600
    (span,) = build_packet(chat(user(text)), "c", 5).spans
    assert span.text == text
    assert (span.start, span.end, span.truncated) == (0, len(text), False)
    assert len(span.excerpt) == 500
    assert span.excerpt.startswith("two lines x")
    assert (span.object_id, span.task_id, span.type) == ("m0", "c", "user_message")


def test_a_packet_covers_every_removed_message():
    """R-469: the packet is not limited to the last twelve messages, and it includes calls and results."""
    removed = chat(*[user(f"question {i}") for i in range(30)], assistant("", ("c1", "read_file")), tool("c1", "out"))
    built = build_packet(removed, "c", 5)
    assert [span.object_id for span in built.spans] == [message.id for message in removed]
    assert built.span_count == 32
    assert '"a.py' in built.spans[30].text
    assert built.spans[31].type == "tool_result"


def test_without_removal_the_last_twelve_meaningful_messages_count():
    """R-468: meaningful messages are user and assistant messages with text."""
    messages = chat(*[user(f"q{i}") for i in range(14)], tool("c", "result"), assistant(" "), assistant("a"))
    assert [message.text for message in newest_meaningful(messages)] == [*[f"q{i}" for i in range(3, 14)], "a"]


def test_old_tool_results_are_truncated_first():
    """R-469: the user's words are cut last."""
    messages = chat(
        user("u" * 30_000), assistant("a" * 10_000, ("c1", "t"), ("c2", "t")), tool("c1", "o" * 30_000),
        tool("c2", "n" * 10_000),
    )  # fmt: skip
    spans = {span.object_id: span for span in build_packet(messages, "c", 5).spans}
    assert spans["m2"].truncated
    assert len(spans["m2"].text) < 30_000
    assert not any(spans[name].truncated for name in ("m0", "m1", "m3"))


@settings(max_examples=60)
@given(MESSAGES, st.integers(0, 70_000))
def test_a_packet_never_exceeds_its_cap(pairs, cap):
    """R-469: the cap (normally 64 KiB) is kept for any messages; the kept text is an exact part of the message."""
    messages = made(pairs)
    built = build_packet(messages, "c", 5, cap)
    assert sum(len(span.text.encode()) + len(span.excerpt.encode()) for span in built.spans) <= cap
    assert len(built.spans) == len(messages)
    for span, message in zip(built.spans, messages, strict=True):
        assert exact_text(message)[span.start : span.end] == span.text
        assert span.truncated == (span.text != exact_text(message))


def packed_plainly(messages, cap):
    """Return the spans of a packet, reading all excerpts and texts before any of them is cut."""
    spans = [packet._span(message, "c", packet.MAX_EXCERPT_CHARS) for message in messages]
    spans = [msgspec.structs.replace(span, excerpt=" ".join(span.text.split())[:500]) for span in spans]
    over = sum(packet._size(span.text) + packet._size(span.excerpt) for span in spans) - cap
    for kind in ("tool_result", "attachment", "assistant_message", "user_message"):
        for place, span in enumerate(spans):
            if over > 0 and span.type == kind and span.text:
                text = packet._head(span.text, max(0, packet._size(span.text) - over))
                spans[place] = msgspec.structs.replace(span, text=text, end=len(text), truncated=True)
                over -= packet._size(span.text) - packet._size(text)
    share = cap // max(1, len(spans)) if over > 0 else 10**9
    return tuple(msgspec.structs.replace(span, excerpt=packet._head(span.excerpt, share)) for span in spans)


SPACED = st.text("ab ä\n\ud800", max_size=60) | st.integers(0, 900).map(lambda size: " \n" * size + "end of it" * size)


@settings(max_examples=150)
@given(MESSAGES | st.lists(st.tuples(st.just("tool"), SPACED), max_size=40), st.integers(0, 4_000))
def test_spans_equal_those_of_a_complete_read(pairs, cap):
    """The spans are equal for any number of messages, even if little of each is read because excerpts are too large."""
    messages = made(pairs)
    assert build_packet(messages, "c", 5, cap).spans == packed_plainly(messages, cap)


@given(MESSAGES)
def test_the_hash_covers_the_exact_text(pairs):
    """R-468, R-470: identical text yields an identical hash, whenever it is computed and however much was cut."""
    messages = made(pairs)
    assert build_packet(messages, "c", 5).span_hash == build_packet(messages, "c", 99, 100).span_hash
    changed = [*messages, Message(id="new", role="user", content="one more")]
    assert build_packet(messages, "c", 5).span_hash != build_packet(changed, "c", 5).span_hash


def test_the_hash_is_the_documented_one():
    """R-468: sha256 over objectId:timestamp:type:text joined by a bar."""
    import hashlib

    built = build_packet(made([("user", "one"), ("assistant", "two")]), "c", 5)
    joined = "m0:0:user_message:one|m1:1000:assistant_message:two"
    assert built.span_hash == hashlib.sha256(joined.encode()).hexdigest()


def test_white_space_changes_the_hash():
    """R-469: the hash does not cover the excerpt."""
    one, other = (made([("user", text)]) for text in ("a b", "a  b"))
    assert build_packet(one, "c", 5).span_hash != build_packet(other, "c", 5).span_hash


def test_calls_are_part_of_the_text():
    """R-469: tool calls are evidence, too."""
    message = Message(id="m", role="assistant", content="look", tool_calls=(ToolCall("c", "grep", '{"q": "x"}'),))
    assert exact_text(message) == 'look\n{"tool_call": "grep", "arguments": "{\\"q\\": \\"x\\"}"}'


LABELLED = """Decisions:
- use SQLite
Open Loops:
- none
**Next Actions:**
- write the test
* run it
Key Findings:
- the lock is slow
Not part of it
"""

NINE = """1. **Primary Request and Intent**
Make it fast.
2. **User Messages**
- "please"
3. **Work Completed**
- edited a.py
4. **Errors and Fixes**
- KeyError: fixed by a default
5. **Key Technical Details**
- `load()` caches
6. **Decisions Made**
1. keep the API
- no new dependency
7. **Pending/Incomplete Work**
None.
8. **Current State**
- testing
9. **Recommended Next Step**
Run the suite.
"""


def test_labelled_lists_are_parsed():
    """R-471: the bullets below each of the four labels form a list."""
    summary = parse_summary(LABELLED, "compaction_summary")
    assert summary.decisions == ("use SQLite",)
    assert summary.open_loops == ()
    assert summary.next_actions == ("write the test", "run it")
    assert summary.key_findings == ("the lock is slow",)
    assert summary.source == "compaction_summary"
    assert summary.raw_text == LABELLED


@pytest.mark.parametrize(
    "text",
    [
        NINE,
        NINE.replace("**", ""),
        "\n".join(f"## {line.replace('**', '')}" if "**" in line else line for line in NINE.splitlines()),
        NINE.replace(". **", ") **"),
        "\n".join(
            f"## {line.split('. ', 1)[1].replace('**', '')}" if "**" in line else line for line in NINE.splitlines()
        ),
    ],
)
def test_the_nine_sections_map_to_the_lists(text):
    """R-471: section 6 yields decisions, 7 open loops, 9 next actions, 4 and 5 key findings.

    Headings may have any form of R-430.
    """
    summary = parse_summary(text, "compaction_summary")
    assert summary.decisions == ("keep the API", "no new dependency")
    assert summary.open_loops == ()
    assert summary.next_actions == ("Run the suite.",)
    assert summary.key_findings == ("KeyError: fixed by a default", "`load()` caches")


def test_other_text_yields_its_beginning():
    """R-471: the first 400 characters become a single key finding."""
    summary = parse_summary("word " * 200, "fallback")
    assert summary.key_findings == (("word " * 200)[:400],)
    assert parse_summary(" \n", "fallback").key_findings == ()


@given(st.text(max_size=300))
def test_any_text_can_be_parsed(text):
    """A summary is written by a model: anything may be in it."""
    summary = parse_summary(text, "snapshot")
    assert summary.raw_text == text
    assert bool(text.strip()) == any(msgspec.structs.astuple(summary)[2:])
