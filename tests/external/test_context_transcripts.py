"""`context` over real transcripts of other agents, used as by an outside caller: R-004, R-501…R-533, R-551.

By default a sample of them is used, see `samples.py`. The expected result is derived independently, from the
requirements and the documented counter alone.
"""

from __future__ import annotations

import copy
import json
import math
import os
import subprocess
from pathlib import Path

import pytest
from samples import sampled

from tests.forked_python import forked_python

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "transcripts"
pytestmark = [
    pytest.mark.slow("recorded sessions, each in a process of its own"),
    pytest.mark.skipif(not DATA.is_dir(), reason=f"the recorded transcripts in {DATA} are not on this machine"),
]
PYTHON = Path(__file__).resolve().parents[2] / "python"
FILES = sampled(sorted(DATA.rglob("*.jsonl")), 6)
PLACEHOLDER = "<important>Tool result cleared to save context. Re-run the tool if you need this output</important>"
PREFIX = "Below is a summary of a previous conversation:\n\n"
IMAGE = (
    "<important>Image content cleared during compaction. Request the image from the user if you need it.</important>"
)
RULES = {"role": "user", "content": "Rule: ```x``` \u2028 é", "meta": {"tag": "rules", "path": "AGENTS.md"}}
ATTACHED = [
    {"role": "user", "content": "F" * 900, "meta": {"tag": "file", "path": "a b.py"}},
    {"role": "user", "content": "B" * 900, "meta": {"tag": "buffer"}},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
     "meta": {"tag": "image"}},
    {"role": "user", "content": "PINNED " * 9, "meta": {"pinned": True}, "extra": [1, None]},
    {"role": "user", "content": "an old summary", "meta": {"tag": "compact_summary"}},
    {"role": "user", "content": "another old summary", "meta": {"tag": "compact_summary"}},
]  # fmt: skip


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def dirty(messages):
    """Return the transcript with rules, attachments, a pin and two old summaries added after its first answer."""
    first = next((i for i, m in enumerate(messages) if m["role"] == "assistant" and not m.get("tool_calls")), None)
    if first is None:
        return [RULES, *ATTACHED, {"role": "assistant", "content": "ok"}, *messages]
    return [RULES, *messages[: first + 1], *ATTACHED, *messages[first + 1 :]]


def run_jobs(jobs):
    done = subprocess.run(
        [forked_python(), "-m", "codecompanion", "context", "--jobs", "-"],
        input="".join(json.dumps(job) + "\n" for job in jobs).encode(),
        capture_output=True, check=False, env={**os.environ, "PYTHONPATH": str(PYTHON)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.decode().split("\n") if line]


def text_of(message):
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(p["text"] for p in content if p["type"] == "text")


def chars4(messages):
    total = 0
    for message in messages:
        total += math.ceil(len(text_of(message)) / 4)
        for call in message.get("tool_calls") or []:
            total += math.ceil(len(call["function"]["name"] + call["function"]["arguments"]) / 4)
    return total


def meta(message):
    return message.get("meta") or {}


def pair(messages):
    """Return the pairs of R-004 by index: {result: its assistant message}, orphaned results, and unanswered calls."""
    waiting, partner, orphans = {}, {}, []
    for index, message in enumerate(messages):
        for call in message.get("tool_calls") or []:
            waiting.setdefault(call["id"], []).append((index, call["function"]["name"]))
        if message["role"] == "tool":
            if waiting.get(message["tool_call_id"]):
                partner[index] = waiting[message["tool_call_id"]].pop()
            else:
                orphans.append(index)
    return partner, orphans, sorted(place for places in waiting.values() for place in places)


def cycles(messages):
    found, current, opened = [], 1, False
    for message in messages:
        if message["role"] == "user" and "tag" not in meta(message):
            current, opened = (current + 1 if opened else current), True
        current, opened = max(current, meta(message).get("cycle", 1)), opened
        found.append(meta(message).get("cycle", current))
    return found


def is_protected(message):
    return message["role"] == "system" or meta(message).get("tag") == "rules" or bool(meta(message).get("pinned"))


def check_common(before, answer):
    """Assert the invariants of any result."""
    after = answer["messages"]
    _, orphans, unanswered = pair(after)
    assert not orphans
    assert not unanswered
    assert answer["before"] == {"messages": len(before), "tokens": chars4(before)}
    assert answer["after"] == {"messages": len(after), "tokens": chars4(after)}
    result = answer["result"]
    assert (result["originalCount"], result["finalCount"]) == (len(before), len(after))
    assert (result["originalTokens"], result["finalTokens"]) == (chars4(before), chars4(after))
    assert result["compacted"] == ("compacted" in answer["actions"])
    assert [m for m in after if is_protected(m)] == [m for m in before if is_protected(m)]
    for message in after:
        if meta(message).get("compacted"):
            assert not any(f"`{word}` cleared" in text_of(message) for word in ("None", "nil", ""))
    assert sum(meta(m).get("tag") == "compact_summary" for m in after) <= (1 if result["compacted"] else 2)


def check_edited(before, answer, window, keep=3):
    """Assert R-511…R-516: only the results that must be cleared are cleared, everything else is unchanged.

    In a running loop that needs a compaction, older results of the current turn may be cleared instead, in a second
    event.
    """
    partner, orphans, unanswered = pair(before)
    ages = cycles(before)
    now = max(ages, default=1)
    sound = [m for i, m in enumerate(before) if i not in orphans]
    after = [m for m in answer["messages"] if not m.get("content") or "Interrupted before" not in text_of(m)]
    cleared, of_running = [], []
    newest = max((i for i, m in enumerate(before) if m.get("tool_calls")), default=0)
    loops = before[-1]["role"] == "tool" and chars4(before) >= math.floor(0.85 * window)
    index = -1
    for old, new in zip(sound, after, strict=not unanswered):
        index = next(i for i in range(index + 1, len(before)) if i not in orphans)
        wanted = (
            old["role"] == "tool"
            and not meta(old).get("edited")
            and partner[index][1] != "memory"
            and ages[index] <= now - keep
            and len(text_of(old)) > len(PLACEHOLDER)
            and not is_protected(old)
        )
        if wanted and "edited" in answer["actions"]:
            assert new["content"] == PLACEHOLDER
            assert new["tool_call_id"] == old["tool_call_id"]
            cleared.append(old["tool_call_id"])
        elif new != old:
            assert loops
            assert ages[index] == now
            assert index < newest
            assert (old["role"], new["content"]) == ("tool", PLACEHOLDER)
            of_running.append(old["tool_call_id"])
        else:
            assert new == old
    if of_running:
        assert answer["after"]["tokens"] <= 0.65 * window
    events = [event for event in answer["events"] if event["type"] == "context_edited"]
    assert [event["call_ids"] for event in events] == [ids for ids in (cleared, of_running) if ids]


def check_compacted(before, answer):
    """Assert R-521…R-527, R-551: current work stays after the summary, with the request verbatim."""
    after = answer["messages"]
    texts = [text_of(m) for m in after]
    place = next(i for i, m in enumerate(after) if meta(m).get("tag") == "compact_summary")
    assert after[place]["role"] == "user"
    assert texts[place].startswith(PREFIX + "THE SUMMARY")
    last = before[-1]
    if last["role"] != "tool":
        assert all(m["role"] == "user" for m in after[place + 1 :])
    if any(meta(m).get("tag") == "file" for m in before):
        assert any("File content for `a b.py` cleared during compaction. Re-read the file" in t for t in texts)
        assert IMAGE in texts
    if last["role"] == "user" and not meta(last).get("tag"):
        assert after[-1] == last
    if last["role"] == "tool":
        request = next((m for m in reversed(before) if m["role"] == "user" and not meta(m).get("tag")), None)
        assert request is None or request in after
        assert after[-1]["role"] == "tool"


def pending(messages):
    """Return the unanswered user messages at the end."""
    start = len(messages)
    while start and messages[start - 1]["role"] == "user":
        start -= 1
    return messages[start:]


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(DATA)) for path in FILES])
def test_a_recorded_transcript_is_prepared_as_required(path):
    """The results satisfy R-004, R-501…R-533 and R-551."""
    for messages in (read(path), dirty(read(path))):
        total = chars4(messages)
        at65, at85 = math.ceil(total / 0.65), math.ceil(total / 0.85)
        settings = {"compaction.min_token_savings": 0}
        windows = [10 * total + 10, at65 + 4, at65 - 3, at85 + 4, at85 - 3, max(2, total // 3)]
        jobs = [
            {"messages": messages, "options": {"window": w, "count": "chars4", "summary": reply, "set": settings}}
            for w in windows for reply in ("THE SUMMARY", "")
        ]  # fmt: skip
        jobs.append(
            {"messages": messages, "options": {"window": 10**9, "count": "chars4", "summary": "THE SUMMARY",
                                               "manual": True}}
        )  # fmt: skip
        frozen = copy.deepcopy(messages)
        answers = run_jobs(jobs)
        assert messages == frozen
        for job, answer in zip(jobs, answers, strict=True):
            check_common(messages, answer)
            if total > job["options"]["window"] and not messages[-1].get("tool_calls"):
                # it has to fit, whatever the summariser says; how is the business of test_next_request_fits.
                least = chars4([m for m in messages if is_protected(m)]) + chars4(pending(messages))
                assert answer["after"]["tokens"] <= max(job["options"]["window"], least + 2_500)
                continue
            if "compacted" in answer["actions"] and not job["options"]["summary"]:
                assert job["options"]["window"] < 6_000  # there code writes what the model did not (ours)
            elif "compacted" in answer["actions"]:
                check_compacted(messages, answer)
            else:
                check_edited(messages, answer, job["options"]["window"])
        assert not {"edited", "compacted"} & set(answers[0]["actions"])
        open_last = bool(messages[-1].get("tool_calls"))
        if open_last:
            assert not any({"edited", "compacted"} & set(a["actions"]) for a in answers)
        again = run_jobs(
            {"messages": answer["messages"], "options": job["options"]}
            for job, answer in zip(jobs, answers, strict=True)
            if "manual" not in job["options"]
        )
        for job, first, second in zip(jobs, answers, again, strict=False):
            assert "repaired" not in second["actions"]
            # While calls are unanswered nothing is edited; in the second run they are answered.
            if "compacted" not in first["actions"] and total <= job["options"]["window"] and not open_last:
                assert "edited" not in second["actions"]
