"""`python -m codecompanion context`: a stable contract, as seen by an outside caller."""

from __future__ import annotations

import json

import pytest

from codecompanion.placeholders import SUMMARY_PREFIX, TOOL_RESULT_CLEARED
from tests.contract.command_line import run

RESULT_FIELDS = {
    "compacted", "originalCount", "finalCount", "originalTokens", "finalTokens", "tier", "warningLevel",
}  # fmt: skip


def lines(messages):
    return "".join(json.dumps(message) + "\n" for message in messages)


def call(call_id, name="read_file"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def chat(turns, size=2000):
    messages = [{"role": "system", "content": "S"}]
    for i in range(turns):
        messages += [
            {"role": "user", "content": f"q{i}"},
            {"role": "assistant", "content": None, "tool_calls": [call("same")]},
            {"role": "tool", "tool_call_id": "same", "content": "x" * size},
            {"role": "assistant", "content": f"a{i}"},
        ]
    return messages


def jobs(*wanted):
    status, out, err = run("context", "--jobs", "-", stdin=lines(wanted))
    return status, [json.loads(line) for line in out.splitlines()], err


def chars4(messages):
    """Count tokens by the documented method: Σ ceil(len/4) over messages and over name + arguments of every call."""
    total = 0
    for message in messages:
        total += -(-len(message.get("content") or "") // 4)
        for made in message.get("tool_calls") or []:
            total += -(-len(made["function"]["name"] + made["function"]["arguments"]) // 4)
    return total


def test_one_transcript_yields_one_documented_object():
    status, out, _ = run("context", "--window", "4000", "--count", "chars4", "-", stdin=lines(chat(6)))
    answer = json.loads(out)
    assert status == 0
    assert set(answer) == {"policy", "window", "actions", "before", "after", "messages", "events", "result"}
    assert set(answer["result"]) == RESULT_FIELDS
    assert answer["policy"] == "codecompanion"
    assert answer["actions"] == ["edited"]
    assert answer["before"] == {"messages": 25, "tokens": chars4(chat(6))}
    assert answer["after"]["tokens"] == chars4(answer["messages"])
    assert answer["events"] == [
        {
            "type": "context_edited",
            "cleared": 3,
            "tokens_before": answer["before"]["tokens"],
            "tokens_after": answer["after"]["tokens"],
            "call_ids": ["same"] * 3,
        }
    ]


def test_unmanaged_messages_are_returned_unchanged():
    """R-511: they are byte-identical, including unknown keys and null contents."""
    messages = chat(6)
    messages[1]["name"] = "me"
    _, [answer], _ = jobs({"messages": messages, "options": {"window": 4000, "count": "chars4"}})
    for before, after in zip(messages, answer["messages"], strict=True):
        if after.get("content") == TOOL_RESULT_CLEARED:
            assert before["role"] == "tool"
            assert after["meta"]["edited"]
        else:
            assert after == before


def test_jobs_are_answered_in_order_one_line_each():
    options = {"window": 100_000, "manual": True, "count": "chars4"}
    status, answers, _ = jobs(
        {"messages": chat(6), "options": {**options, "summary": "ONE"}},
        {"messages": chat(6), "options": {"window": 100_000}},
        {"messages": chat(6), "options": {**options, "summary_error": "no network"}},
        {"messages": chat(6), "options": {**options, "summary": ""}},
        {"messages": chat(6), "options": options},
    )
    assert status == 0
    assert [answer["actions"] for answer in answers] == [["compacted"], [], [], [], ["compacted"]]
    assert answers[0]["messages"][-1]["content"] == SUMMARY_PREFIX + "ONE"
    assert answers[0]["messages"][-1]["meta"]["tag"] == "compact_summary"
    assert answers[2]["messages"] == chat(6)
    assert answers[2]["events"][-1] == {
        "type": "compaction_failed", "trigger": "manual", "reason": "no network",
    }  # fmt: skip
    assert answers[3]["messages"] == chat(6)
    assert answers[4]["messages"][-1]["content"].startswith(SUMMARY_PREFIX)


def test_the_answer_can_be_prepared_again():
    """Cycles are preserved: compacted messages still count as past (R-509)."""
    options = {"window": 100_000, "manual": True, "summary": "ONE", "count": "chars4"}
    _, [first], _ = jobs({"messages": chat(6), "options": options})
    grown = [*first["messages"], {"role": "user", "content": "next"}, {"role": "assistant", "content": "x" * 900}]
    _, [second], _ = jobs({"messages": grown, "options": {**options, "summary": "TWO"}})
    assert [m["content"] for m in second["messages"]] == ["S", SUMMARY_PREFIX + "TWO"]
    assert second["messages"][-1]["meta"]["cycle"] == 7


@pytest.mark.parametrize(
    ("settings", "actions"),
    [
        ({"editing.trigger": 2000}, ["edited"]),
        ({"editing.trigger": False}, []),
        ({"editing.trigger": "10%"}, ["edited"]),
        ({"editing.trigger": 0.9, "compaction.trigger": False}, []),
        ({"editing.keep_cycles": 6, "editing.trigger": 0.01}, []),
        ({"editing.exclude_tools": ["read_file"], "editing.trigger": 0.01}, []),
        ({"compaction.trigger": 0.2, "compaction.min_token_savings": 10}, ["edited", "compacted"]),
        ({"compaction.trigger": 0.2}, ["edited", "compacted"]),  # a fifth of a small window is enough
        ({"enabled": False, "editing.trigger": 0.01}, []),
    ],
)
def test_options_below_context_management_can_be_set(settings, actions):
    """R-502, R-503, R-524: each setting changes the actions of the run."""
    job = {"messages": chat(6), "options": {"window": 5000, "count": "chars4", "set": settings, "summary": "S"}}
    _, [answer], _ = jobs(job)
    assert answer["actions"] == actions


def test_set_on_the_command_line_takes_json():
    settings = ("--set", "editing.trigger=2000", "--set", "editing.keep_cycles=1")
    status, out, _ = run("context", "--count", "chars4", "--window", "100000", *settings, "-", stdin=lines(chat(6)))
    assert status == 0
    assert sum(m["content"] == TOOL_RESULT_CLEARED for m in json.loads(out)["messages"]) == 5


def test_kodacodes_own_names_of_its_thresholds_can_be_set():
    """R-305: they can be set on the command line and in a job; given values take precedence."""
    window = chars4(chat(6)) * 2
    common = ("context", "--policy", "kodacode", "--window", str(window), "--count", "chars4")
    early = ("--set", "compaction_threshold=0.4", "--set", "compaction_target_threshold=0.3")
    assert "compacted" not in json.loads(run(*common, "-", stdin=lines(chat(6)))[1])["actions"]
    status, out, _ = run(*common, *early, "-", stdin=lines(chat(6)))
    assert (status, "compacted" in json.loads(out)["actions"]) == (0, True)
    options = {"policy": "kodacode", "window": window, "count": "chars4", "set": {"compaction_threshold": 0.4}}
    _, [answer], _ = jobs({"messages": chat(6), "options": options})
    assert "compacted" in answer["actions"]


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        (["context", "--set", "editing.trigger=1", "-"], "", "context_management.editing.trigger: 1 would mean"),
        (["context", "--set", "editing.triger=0.5", "-"], "", "expected editing.trigger"),
        (["context", "--set", "nonsense", "-"], "", "expected KEY=JSON"),
        (
            [
                "context",
                "--policy",
                "kodacode",
                "--set",
                "compaction_threshold=0.5",
                "--set",
                "compaction.trigger=0.6",
                "-",
            ],
            "",
            "context_management.compaction_threshold: 0.5, but context_management.compaction.trigger is 0.6",
        ),
        (["context", "--set", "compaction_threshold=0.5", "-"], "", "policy codecompanion has no such option"),
        (["context", "--policy", "codecompanio", "-"], "", "expected codecompanion"),
        (["context", "--window", "-5", "-"], "", "window is -5"),
        (["context", "/does/not/exist.jsonl"], "", "/does/not/exist.jsonl"),
        (["context", "-"], "{", "standard input:1: not JSON"),
        (
            ["context", "-"],
            '{"role": "user", "content": "a"}\n{"role": "boss"}\n',
            'standard input:2: "role": expected one of',
        ),
        (["context", "-"], '{"role": "tool", "content": "a"}', '"tool_call_id" is missing'),
        (
            ["context", "-"],
            '{"role": "user", "content": 5}',
            '"content": expected a string or a list of parts, found 5',
        ),
    ],
)
def test_bad_input_names_the_place_and_the_expected_value(arguments, stdin, said):
    """The exit status is 2, and nothing is written to standard output."""
    status, out, err = run(*arguments, stdin=stdin)
    assert (status, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


def test_a_bad_job_keeps_its_place():
    status, answers, err = jobs({"messages": [{"role": "boss"}]}, {"messages": chat(1)}, {"options": {}})
    assert status == 2
    assert 'found "boss"' in answers[0]["error"]
    assert "standard input:1" in answers[0]["error"]
    assert answers[1]["actions"] == []
    assert "standard input:3" in answers[2]["error"]
    assert len(err.splitlines()) == 2


def test_a_job_without_messages_yields_an_empty_result():
    """Only completely empty input is an error."""
    status, answers, _ = jobs({"messages": []})
    assert status == 0
    assert answers[0]["messages"] == []


def test_warning_levels_follow_the_state_before():
    """R-110, R-137."""
    messages = [{"role": "user", "content": "x" * 4000}]
    _, answers, _ = jobs(
        *({"messages": messages, "options": {"window": w, "count": "chars4"}} for w in (1100, 1200, 2000))
    )
    assert [answer["result"]["warningLevel"] for answer in answers] == ["critical", "warning", "none"]
    assert answers[0]["result"]["tier"] == 0


@pytest.mark.parametrize("separator", ["\u2028", "\u0085", "\x7f", "\u2029"])
def test_only_a_line_feed_ends_a_line(tmp_path, separator):
    """Raw characters that JSON allows in a string do not split a message."""
    message = {"role": "user", "content": f"a{separator}b"}
    file = tmp_path / "chat.jsonl"
    file.write_text(json.dumps(message, ensure_ascii=False) + "\r\n", encoding="utf-8")
    status, out, err = run("context", str(file))
    assert (status, err) == (0, "")
    assert json.loads(out)["messages"] == [message]


@pytest.mark.parametrize("jobs_flag", [False, True])
def test_half_a_surrogate_pair_is_returned_unchanged(jobs_flag):
    message = {"role": "user", "content": "half \ud83d pair"}
    given = {"messages": [message]} if jobs_flag else message
    status, out, err = run("context", *(["--jobs"] if jobs_flag else []), "-", stdin=json.dumps(given))
    assert (status, err) == (0, "")
    assert json.loads(out)["messages"] == [message]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'\n{"role": "user", "content": "\xff"}\n', ":2: not UTF-8 text (byte 30); expected one message"),
        (b"[" * 100_000, ":1: nested too deeply; expected one message"),
        (b'{"role": ["user"]}', ':1: "role": expected one of'),
        (b'{"role": "user", "content": "a", "x": NaN}', ":1: not JSON (NaN is not a JSON value)"),
        (b'{"role": "user", "content": "a", "meta": {"ts": 1' + b"0" * 400 + b"}}", ':1: "meta.ts" is out of range'),
        (b'{"role": "user", "content": "a", "meta": {"usage": {"input_tokens": "9"}}}', "expected whole numbers"),
        (
            b'{"role": "user", "content": "a", "meta": {"usage": []}}',
            ':1: "meta.usage": expected an object, found a list',
        ),
    ],
)
def test_bytes_that_are_not_a_transcript_are_one_sentence(tmp_path, raw, said):
    """The error names file, line and expected form; there is never a traceback."""
    file = tmp_path / "bad.jsonl"
    file.write_bytes(raw)
    status, out, err = run("context", str(file))
    assert (status, out) == (2, "")
    assert f"{file}:" in err
    assert said in err
    assert len(err.splitlines()) == 1


def test_a_line_that_is_not_utf8_does_not_stop_later_jobs(tmp_path):
    file = tmp_path / "jobs.jsonl"
    file.write_bytes(b'"\xff"\n' + json.dumps({"messages": chat(1)}).encode())
    status, out, _ = run("context", "--jobs", str(file))
    answers = [json.loads(line) for line in out.splitlines()]
    assert status == 2
    assert "not UTF-8" in answers[0]["error"]
    assert answers[1]["actions"] == []


def test_a_window_of_zero_is_refused():
    """Lesson 13: values are not clamped silently."""
    status, _, err = run("context", "--window", "0", "-", stdin="")
    assert status == 2
    assert "window is 0; expected 1 or more tokens" in err


def test_jobs_take_missing_fields_from_the_command_line():
    job = {"messages": chat(6), "options": {"set": {"editing.keep_cycles": 5}, "window": None, "summary": None}}
    arguments = ["--jobs", "--count", "chars4", "--window", "4000", "--set", "compaction.trigger=false"]
    status, out, err = run("context", *arguments, "-", stdin=json.dumps(job))
    answer = json.loads(out)
    assert (status, err) == (0, "")
    assert answer["window"] == 4000
    assert answer["before"]["tokens"] == chars4(chat(6))
    assert answer["events"][0]["cleared"] == 1


def test_a_dropped_orphan_changes_no_other_message():
    """R-004, R-511: a repair changes only the broken messages."""
    messages = [*chat(1), {"role": "tool", "tool_call_id": "nobody", "content": "x"}, {"role": "user", "content": "q"}]
    _, [answer], _ = jobs({"messages": messages, "options": {"window": 10**6}})
    assert answer["actions"] == ["repaired"]
    assert answer["messages"] == [m for m in messages if m.get("tool_call_id") != "nobody"]


def test_protected_and_pending_messages_are_the_same_objects_after_a_compaction():
    """R-521, R-551, K8: they are byte-identical, with all of their original keys."""
    rules = {"role": "user", "content": "always\r\ntabs", "meta": {"tag": "rules", "path": "AGENTS.md", "x": [1]}}
    pinned = {"role": "user", "content": "remember", "meta": {"pinned": True}, "name": "me"}
    pending = {"role": "user", "content": "## and now?", "name": "me"}
    messages = [{"role": "system", "content": "S", "y": None}, rules, *chat(4)[1:], pinned,
                {"role": "assistant", "content": "ok"}, pending]  # fmt: skip
    _, [answer], _ = jobs({"messages": messages, "options": {"manual": True, "summary": "S", "count": "chars4"}})
    assert [answer["messages"][i] for i in (0, 1, 2, 4)] == [messages[0], rules, pinned, pending]
    assert answer["messages"][3]["meta"]["tag"] == "compact_summary"


@pytest.mark.parametrize("tag", ["document", "selection", "viewport", "diagnostics", "terminal", "quickfix", "diff"])
def test_only_files_buffers_and_images_leave_a_placeholder(tag):
    """R-522: messages with any other tag are summarised and removed."""
    tagged = {"role": "user", "content": "t" * 400, "meta": {"tag": tag, "path": "p"}}
    messages = [chat(1)[0], tagged, *chat(2)[1:]]
    _, [answer], _ = jobs({"messages": messages, "options": {"manual": True, "summary": "S", "count": "chars4"}})
    assert [m["content"] for m in answer["messages"]] == ["S", SUMMARY_PREFIX + "S"]


def test_the_configured_summary_adapter_writes_the_summary():
    """R-504: a name that does not resolve is an error, never ignored."""
    setting = 'compaction.adapter="nobody"'
    status, _, err = run("context", "--manual", "--set", setting, "-", stdin=lines(chat(6)))
    assert status == 2
    assert "no adapter 'nobody'" in err
    status, out, _ = run("context", "--manual", "--set", 'compaction.adapter="offline"', "-", stdin=lines(chat(6)))
    assert status == 0
    assert json.loads(out)["actions"] == ["compacted"]


@pytest.mark.parametrize(("window", "says"), [("4000", False), ("2000", True)])
def test_a_message_that_cannot_be_sent_is_reported(window, says):
    """A message twice the size of the window is reported; once it was returned without a note."""
    messages = [{"role": "system", "content": "S"}, {"role": "user", "content": "x " * 6000}]
    status, out, err = run("context", "--window", window, "--count", "chars4", "-", stdin=lines(messages))
    told = [event for event in json.loads(out)["events"] if event["type"] == "request_too_large"]
    assert status == 0
    assert bool(told) == says
    if says:
        sentence = "the request has 3,001 tokens, too many for the window of 2,000"
        assert told == [{"type": "request_too_large", "tokens": 3001, "window": 2000, "detail": sentence}]
        assert err == f"codecompanion context: {sentence}\n"


def test_a_policy_is_strict_on_the_command_line_and_in_a_job():
    """In strict form our additions are off: no results of a running loop are cleared before a summary."""
    loop = [{"role": "user", "content": "go"}]
    for i in range(30):
        loop += [
            {"role": "assistant", "content": None, "tool_calls": [call(f"c{i}")]},
            {"role": "tool", "tool_call_id": f"c{i}", "content": "line\n" * 800},
        ]
    options = {"window": 33_000, "count": "chars4"}
    wanted = [{"messages": loop, "options": {**options, "strict": strict}} for strict in (False, True)]
    _, answers, _ = jobs(*wanted)
    assert [answer["actions"] for answer in answers] == [["edited"], ["compacted"]]
    arguments = ("--window", "33000", "--count", "chars4", "--strict", "-")
    _, out, _ = run("context", *arguments, stdin=lines(loop))
    assert json.loads(out) == answers[1]
    status, _, err = run("context", "--policy", "adaptive", "--strict", "-", stdin="")
    assert (status, "adaptive does not follow a document" in err) == (2, True)
