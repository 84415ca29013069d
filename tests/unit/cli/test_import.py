"""`import`: other programs' sessions in our transcript format (`:help codecompanion-cli`)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.cli.commands.import_ import READERS
from codecompanion.cli.importing.cut_document import read_cut_document
from codecompanion.errors import InputError
from codecompanion.model.transcript_format import read_objects

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
NAMES = st.sampled_from(["read_file", "run", "edit"])
ARGUMENTS = st.dictionaries(st.sampled_from(["path", "command"]), TEXT, max_size=2)


@st.composite
def sessions(draw: Any) -> list[dict[str, Any]]:
    """Draw a session in our format: user turns with calls and their results."""
    messages: list[dict[str, Any]] = []
    number = 0
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(TEXT)})
        for _ in range(draw(st.integers(0, 2))):
            calls = []
            for _ in range(draw(st.integers(1, 2))):
                number += 1
                function = {"name": draw(NAMES), "arguments": json.dumps(draw(ARGUMENTS), ensure_ascii=False)}
                calls.append({"id": f"c{number}", "type": "function", "function": function})
            messages.append({"role": "assistant", "content": draw(TEXT), "tool_calls": calls})
            for call in calls:
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": draw(TEXT)})
        messages.append({"role": "assistant", "content": draw(TEXT)})
    return messages


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one of our messages as content blocks of the Messages API."""
    if message["role"] == "tool":
        return [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": message["content"]}]
    for call in message.get("tool_calls", ()):
        function = call["function"]
        blocks.append({"type": "tool_use", "id": call["id"], "name": function["name"],
                       "input": json.loads(function["arguments"])})  # fmt: skip
    return blocks


def as_anthropic(messages: list[dict[str, Any]]) -> bytes:
    made: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message["role"] == "assistant" else "user"
        if made and made[-1]["role"] == role == "user" and message["role"] == "tool":
            made[-1]["content"] += blocks_of(message)
        else:
            made.append({"role": role, "content": blocks_of(message)})
    return json.dumps({"model": "claude", "messages": made}).encode()


def as_claude_code(messages: list[dict[str, Any]]) -> bytes:
    """Return one line per block, as Claude Code streams them, mixed with results, notes and lines of sub-agents."""
    lines: list[dict[str, Any]] = [{"type": "summary", "summary": "x", "leafUuid": "u0"}]
    parent = None
    for number, message in enumerate(messages):
        role = "assistant" if message["role"] == "assistant" else "user"
        for position, block in enumerate(blocks_of(message)):
            uuid = f"u{number}-{position}"
            told: dict[str, Any] = {"role": role, "content": [block]}
            if role == "assistant":
                told["id"] = f"msg_{number}"
            lines.append({"type": role, "uuid": uuid, "parentUuid": parent, "isSidechain": False, "message": told,
                          "timestamp": f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"})  # fmt: skip
            parent = uuid
        lines.append({"type": "user", "uuid": f"s{number}", "parentUuid": None, "isSidechain": True,
                      "message": {"role": "user", "content": "sub-agent"}})  # fmt: skip
    return "\n".join(json.dumps(line) for line in lines).encode()


def as_openai(messages: list[dict[str, Any]]) -> bytes:
    return json.dumps({"model": "gpt", "messages": messages}, ensure_ascii=False).encode()


def as_lines(messages: list[dict[str, Any]]) -> bytes:
    return "\n".join(json.dumps(message) for message in messages).encode()


def as_swe_agent(messages: list[dict[str, Any]]) -> bytes:
    history = [
        {**message, "tool_call_ids": [message["tool_call_id"]],
         "content": [{"type": "text", "text": message["content"]}]}
        if message["role"] == "tool" else {**message, "agent": "main", "message_type": "x"}
        for message in messages
    ]  # fmt: skip
    return json.dumps({"environment": "x", "trajectory": [], "history": history}).encode()


def as_saved_chat(messages: list[dict[str, Any]]) -> bytes:
    """Return a chat as saved by CodeCompanion.nvim's history extension."""
    saved: list[dict[str, Any]] = []
    for message in messages:
        made = {"role": "llm" if message["role"] == "assistant" else message["role"], "content": message["content"],
                "opts": {"visible": True}}  # fmt: skip
        if "tool_calls" in message:
            made["tools"] = {"calls": message["tool_calls"]}
        if "tool_call_id" in message:
            made["tools"] = {"call_id": message["tool_call_id"]}
        saved.append(made)
    return json.dumps({"save_id": "1", "title": "x", "messages": saved}).encode()


WRITERS = [("anthropic", as_anthropic), ("claude-code", as_claude_code), ("openai", as_openai), ("openai", as_lines),
           ("swe-agent", as_swe_agent), ("codecompanion", as_saved_chat), ("codecompanion", as_lines)]  # fmt: skip


def bare(message: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name != "meta"}


@pytest.mark.parametrize(("origin", "write"), WRITERS)
@given(session=sessions())
@settings(max_examples=40, deadline=None)
def test_a_session_survives_a_round_trip(origin: str, write: Any, session: list[dict[str, Any]]) -> None:
    """A session written in the other program's format and imported again is unchanged."""
    imported = READERS[origin](write(session), "file")
    assert [bare(message) for message in imported] == session
    assert len(read_objects(imported, "file").messages) == len(session)


def lines(*entries: dict[str, Any]) -> bytes:
    return "\n".join(json.dumps(entry) for entry in entries).encode()


def entry(uuid: str, parent: str | None, role: str, content: Any, **more: Any) -> dict[str, Any]:
    message = {"role": role, "content": content, **({"id": more.pop("reply")} if "reply" in more else {})}
    message |= {"usage": more.pop("usage")} if "usage" in more else {}
    return {"type": role, "uuid": uuid, "parentUuid": parent, "message": message, **more}


def test_claude_code_follows_the_branch_with_the_newest_message() -> None:
    read = READERS["claude-code"](
        lines(entry("1", None, "user", "ask"), entry("2", "1", "assistant", "first try"),
              entry("3", "2", "user", "more of the first try"), entry("4", "1", "assistant", "second try")),
        "file",
    )  # fmt: skip
    assert [message["content"] for message in read] == ["ask", "second try"]


def test_claude_code_keeps_results_of_parallel_calls() -> None:
    use = [{"type": "tool_use", "id": f"t{i}", "name": "Read", "input": {"file_path": f"{i}.py"}} for i in (1, 2)]
    result = [{"type": "tool_result", "tool_use_id": f"t{i}", "content": f"text {i}"} for i in (1, 2)]
    usage = {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 11}
    read = READERS["claude-code"](
        lines(entry("1", None, "user", "ask"), entry("2", "1", "assistant", [use[0]], reply="m", usage=usage),
              entry("3", "2", "assistant", [use[1]], reply="m", usage=usage), entry("4", "2", "user", [result[0]]),
              entry("5", "3", "user", [result[1]]), entry("6", "5", "assistant", "done", reply="n")),
        "file",
    )  # fmt: skip
    assert [message["role"] for message in read] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [call["id"] for call in read[1]["tool_calls"]] == ["t1", "t2"]
    assert read[1]["meta"]["usage"] == {"input_tokens": 3, "output_tokens": 5, "cache_read_tokens": 7,
                                        "cache_write_tokens": 11}  # fmt: skip


def test_claude_code_sessions_are_followed_beyond_a_compaction_and_into_sub_agents() -> None:
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None,
                "logicalParentUuid": "2"}  # fmt: skip
    told = [entry("1", None, "user", "ask"), entry("2", "1", "assistant", "ok"), boundary,
            entry("3", "b", "user", "so far", isCompactSummary=True), entry("4", "3", "assistant", "done")]  # fmt: skip
    read = READERS["claude-code"]
    assert [message["content"] for message in read(lines(*told), "f")] == ["ask", "ok", "so far", "done"]
    agent = [{**one, "isSidechain": True} for one in told]
    assert [message["content"] for message in read(lines(*agent), "f")] == ["ask", "ok", "so far", "done"]


@pytest.mark.parametrize("odd", [[], {}, 7, None])
def test_claude_code_ignores_odd_ids(odd: Any) -> None:
    told = [entry("1", None, "user", "ask"), {**entry("2", "1", "assistant", "a"), "uuid": odd}]
    told += [entry("3", "1", "assistant", [{"type": "text", "text": "b"}], reply=odd)]
    assert [message["content"] for message in READERS["claude-code"](lines(*told), "file")] == ["ask", "b"]


def test_claude_code_summaries_are_marked_and_notes_left_out() -> None:
    read = READERS["claude-code"](
        lines(entry("1", None, "user", "Caveat", isMeta=True), entry("2", "1", "user", "so far", isCompactSummary=True),
              entry("3", "2", "assistant", [{"type": "thinking", "thinking": "hm", "signature": "s"},
                                            {"type": "text", "text": "go"}], timestamp="2026-01-01T00:00:10.5Z"),
              {"type": "system", "subtype": "local_command", "uuid": "4", "parentUuid": "3"}),
        "file",
    )  # fmt: skip
    assert read == [
        {"role": "user", "content": "so far", "meta": {"tag": "compact_summary"}},
        {"role": "assistant", "content": "go", "reasoning_content": "hm", "meta": {"ts": 1767225610.5}},
    ]


def test_anthropic_reads_system_images_errors_and_the_response() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    failed = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": [{"type": "text", "text": "no"}]}
    pair = {
        "request": {"system": [{"type": "text", "text": "Be brief."}], "messages": [
            {"role": "user", "content": [image, {"type": "text", "text": "See?"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]},
            {"role": "user", "content": [failed]}]},
        "response": {"role": "assistant", "content": [{"type": "text", "text": "Yes."}],
                     "usage": {"input_tokens": 9, "output_tokens": 2}},
    }  # fmt: skip
    read = READERS["anthropic"](json.dumps(pair).encode(), "file")
    assert [message["role"] for message in read] == ["system", "user", "assistant", "tool", "assistant"]
    assert read[1]["content"][0]["image_url"]["url"] == "data:image/png;base64,AAAA"
    assert read[3] == {"role": "tool", "tool_call_id": "t", "content": "no", "meta": {"is_error": True}}
    assert read[4]["meta"]["usage"] == {"input_tokens": 9, "output_tokens": 2}


def test_openai_reads_old_functions_the_response_and_its_cached_tokens() -> None:
    pair = {
        "request": {"messages": [
            {"role": "developer", "content": "Be brief."}, {"role": "user", "content": [{"type": "input_audio"}]},
            {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
            {"role": "function", "name": "look", "content": "nothing"}]},
        "response": {"choices": [{"message": {"role": "assistant", "content": "No."}}],
                     "usage": {"prompt_tokens": 10, "completion_tokens": 1,
                               "prompt_tokens_details": {"cached_tokens": 8}}},
    }  # fmt: skip
    read = READERS["openai"](json.dumps(pair).encode(), "file")
    assert read[1]["content"] == "[input_audio]"
    assert read[2]["tool_calls"][0]["id"] == read[3]["tool_call_id"]
    assert read[4]["meta"]["usage"] == {"input_tokens": 2, "output_tokens": 1, "cache_read_tokens": 8}


def test_swe_agent_actions_become_calls_and_observations_results() -> None:
    history = [
        {"role": "system", "content": "S"}, {"role": "user", "content": "demo", "is_demo": True},
        {"role": "user", "content": "fix it"},
        {"role": "assistant", "content": "Look.\n```\nls\n```", "thought": "Look.", "action": "ls\n"},
        {"role": "user", "content": "a.py", "message_type": "observation"},
        {"role": "assistant", "content": "done"},
    ]  # fmt: skip
    read = READERS["swe-agent"](json.dumps({"history": history}).encode(), "file")
    assert [message["role"] for message in read] == ["system", "user", "assistant", "tool", "assistant"]
    assert read[2]["content"] == "Look."
    assert json.loads(read[2]["tool_calls"][0]["function"]["arguments"]) == {"command": "ls"}
    steps = [{"action": "ls", "thought": "Look.", "observation": "a.py", "response": "x"}]
    assert [m["role"] for m in READERS["swe-agent"](json.dumps({"trajectory": steps}).encode(), "f")] == [
        "assistant", "tool",
    ]  # fmt: skip


def test_a_saved_chat_keeps_tags_cycles_and_reasoning() -> None:
    saved = {"messages": [
        {"role": "user", "content": "text", "opts": {"tag": "file"}, "context": {"path": "a.py"}, "cycle": 2},
        {"role": "llm", "content": "ok", "reasoning": {"content": "why"}, "_meta": {"cycle": 2, "tag": "llm_message"}},
    ]}  # fmt: skip
    assert READERS["codecompanion"](json.dumps(saved).encode(), "file") == [
        {"role": "user", "content": "text", "meta": {"tag": "file", "path": "a.py", "cycle": 2}},
        {"role": "assistant", "content": "ok", "reasoning_content": "why", "meta": {"cycle": 2}},
    ]


@pytest.mark.parametrize(
    ("origin", "raw", "words"),
    [
        ("claude-code", b'{"type": "user", "message": {"content": "a"}}\n{"type": ', "f:2: not JSON"),
        ("claude-code", b'{"type": "mode"}', "f:1: no messages in it; expected one entry of Claude Code per line"),
        ("claude-code", b'{"type": "user"}\n{"type": "user"}', 'f:1: expected an entry with "message"'),
        ("anthropic", b'{"messages": [{"role": "tool"}]}', 'f:1: messages[0]: "role": expected user'),
        ("anthropic", b'{"role": "user", "content": 7}', "content blocks, found a number"),
        ("anthropic", b'{"messages": [{"role": "assistant", "content": [{"type": "tool_use"}]}]}', '"name" is missing'),
        ("openai", b'{"messages": {}}', "f:1: messages: expected a list of messages, found an object"),
        ("openai", b'{"messages": []}\n{"messages": []}', "f:2: a second conversation; expected one per file"),
        ("openai", b'{"role": "user", "content": "a"}\n{"role": "x"}', 'f:2: "role": expected one of'),
        ("openai", b"{}", "f:1: no messages in it; expected a Chat request"),
        ("openai", b'{"role": "user", "content": NaN}', "f:1: not JSON"),
        ("swe-agent", b'{"info": {}}', "f:1: it has no history, trajectory or messages"),
        ("swe-agent", b"[]", "f:1: expected a trajectory"),
        ("codecompanion", b'{"role": "user"}\n{"role": "llm"}', 'f:2: "role": expected one of'),
        ("codecompanion", b'{"messages": [{"role": "q"}]}', 'f:1: messages[0]: "role": expected one of'),
        ("openai", b"\xff\xfe\x00", "f:1: not UTF-8 text"),
        ("openai", b"", "f:1: it is empty; expected a Chat request"),
    ],
)  # fmt: skip
def test_an_error_names_file_line_and_the_expected_form(origin: str, raw: bytes, words: str) -> None:
    with pytest.raises(InputError) as caught:
        READERS[origin](raw, "f")
    assert words in str(caught.value)


KEYS = ["role", "content", "messages", "type", "message", "history", "request", "id", "uuid"]


@pytest.mark.parametrize("origin", READERS)
@given(value=st.recursive(st.none() | st.booleans() | st.integers() | TEXT, lambda inner: st.lists(inner, max_size=3)
       | st.dictionaries(st.sampled_from(KEYS) | TEXT, inner, max_size=4), max_leaves=8))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_anything_else_is_an_input_error_and_never_a_crash(origin: str, value: Any) -> None:
    try:
        imported = READERS[origin](json.dumps(value).encode(), "f")
    except InputError as error:
        assert str(error).startswith("f")  # noqa: PT017
    else:
        read_objects(imported, "f")


def test_the_readable_part_of_a_damaged_session_is_imported() -> None:
    """Two objects on a line, a truncated last line, an entry of another shape and a missing parent do no harm."""
    first = json.dumps(entry("1", None, "user", "one")) + json.dumps(
        entry("2", "1", "assistant", [{"type": "text", "text": "two"}])
    )
    third = entry("3", "2", "user", "three")
    del third["parentUuid"]
    odd = entry("4", "3", "assistant", [{"type": "tool_use"}])
    lost = entry("6", "5", "user", "six")
    raw = "\n".join(
        [first, json.dumps(third), json.dumps(odd), "[1]", json.dumps(lost), '{"type": "user", "uu']
    ).encode()
    skipped: list[str] = []
    imported = READERS["claude-code"](raw, "f", skipped)
    assert [message["content"] for message in imported] == ["one", "two", "three", "six"]
    assert [one.partition(": ")[0] for one in skipped] == ["f:6", "f:4", "f:3"]


@pytest.mark.parametrize(
    "raw", [b'{"role": "user",\n"content": 7', b"[1, 2", b"no JSON", b'{"a": 1,\n "b": {"c": 2}\n']
)
def test_a_file_without_a_readable_part_is_an_error(raw: bytes) -> None:
    """Half a document is not a conversation."""
    for name in ("openai", "claude-code"):
        with pytest.raises(InputError):
            READERS[name](raw, "f", [])


@pytest.mark.parametrize(("origin", "write"), [(o, w) for o, w in WRITERS if w not in (as_lines, as_claude_code)])
@given(session=sessions(), share=st.floats(0, 1), indent=st.sampled_from([None, 1]))
@settings(max_examples=30, deadline=None)
def test_of_a_truncated_document_only_complete_messages_are_read(
    origin: str, write: Any, session: list[dict[str, Any]], share: float, indent: int | None
) -> None:
    """They are the first messages of the whole document; it is an error only if no message is complete."""
    whole = json.dumps(json.loads(write(session)), indent=indent, ensure_ascii=False).encode()
    raw, skipped = whole[: int(share * len(whole))], list[str]()
    expected = READERS[origin](whole, "f", [])
    try:
        found = READERS[origin](raw, "f", skipped)
    except InputError as error:
        assert str(error).startswith("f:1: ")  # noqa: PT017
        assert read_cut_document(raw) is None
        return
    assert found
    assert found == expected[: len(found)]
    assert found == expected or skipped


@pytest.mark.parametrize("words", ["a } ] }", '{"old": [1, 2}, ', 'say "x" ' * 30_000])
def test_brackets_and_quotes_in_the_final_text_are_text(words: str) -> None:
    """They close nothing and are not parsed again for each quote: 50 KB used to take half a minute."""
    whole = json.dumps([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": words}])

    cut = read_cut_document(whole[:-3].encode())

    assert cut is not None
    assert (cut.value, cut.dropped) == ([{"role": "user", "content": "Hi"}], "[1]")
