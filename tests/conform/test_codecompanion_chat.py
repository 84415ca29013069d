"""CodeCompanion's editing and compaction in a chat (R-510…R-525), its tags (R-548) and its memory (R-550)."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from codecompanion.errors import AdapterError
from codecompanion.model.history import MessageAdded
from codecompanion.model.messages import TAGS
from codecompanion.model.transcript_format import read_objects
from codecompanion.wire.events import ApprovalRequested, CompactionFailed
from codecompanion.wire.requests import Approve
from tests.conform.chat import SYSTEM, Chat, Given, chat_with, reading_files, talk, tool_step
from tests.unit.session.fakes import Bench, ScriptedAdapter, calls, says, submit

CLEARED = "<important>Tool result cleared to save context. Re-run the tool if you need this output</important>"
TITLES = (
    "Primary Request and Intent", "Key Technical Concepts", "Files and Code Sections", "Errors and Fixes",
    "Problem Solving", "All User Messages", "Pending Tasks", "Current Work", "Optional Next Step",
)  # fmt: skip
NINE = "\n\n".join(f"{number}. **{title}**\ntold {number}" for number, title in enumerate(TITLES, 1))


def cycle(number: int, result: str, name: str = "run", **more: str) -> list[Given]:
    """Return a question, a call, its result and the answer."""
    step = tool_step(number, result, name=name, **more)
    return [{"role": "user", "content": f"q{number}"}, *step, {"role": "assistant", "content": f"a{number}"}]


async def edited(root, messages: list[Given], window: int, **more) -> Chat:
    """Return the chat after the next message was sent."""
    chat = await chat_with(root, "codecompanion", messages, window, **{"summary": NINE, "tools": True, **more})
    await chat.say()
    return chat


def results(chat: Chat) -> list[str]:
    return [message.text for message in chat.request if message.role == "tool"]


async def test_results_of_old_cycles_are_cleared(tmp_path):
    """R-510, R-511, R-512, R-513: in cycle 6, results up to cycle 3 are cleared, except the memory's.

    The rest is identical.
    """
    messages = [
        *cycle(1, "r" * 4_000), *cycle(2, "r" * 4_000, name="memory"),
        *cycle(3, "r" * 4_000), *cycle(4, "r" * 4_000), *cycle(5, "r" * 4_000),
    ]  # fmt: skip
    chat = await edited(tmp_path, messages, 7_500)
    assert results(chat) == [CLEARED, "r" * 4_000, CLEARED, "r" * 4_000, "r" * 4_000]
    assert [m.text for m in chat.request if m.role != "tool"] == [
        *[m["content"] for m in messages if m["role"] != "tool"], "now",
    ]  # fmt: skip
    assert [m.tool_calls[0].arguments for m in chat.request if m.tool_calls] == ['{"p": "x"}'] * 5
    (told,) = chat.edits
    assert (told.tokens_before - told.tokens_after, chat.asked) == (2 * (1_000 - -(-len(CLEARED) // 4)), [])
    await chat.say("again", 2)
    assert len(chat.edits) == 1, "below the trigger nothing is edited"


async def test_a_second_run_clears_only_newly_old_results(tmp_path):
    """R-510, R-512: a cycle ages as a whole; cleared results are not cleared again."""
    messages = [m for number in range(1, 6) for m in cycle(number, "r" * 4_000)]
    chat = await edited(tmp_path, messages, 7_500)
    assert [text == CLEARED for text in results(chat)] == [True, True, True, False, False]
    again = await edited(tmp_path, messages, 2_800, context_management={"compaction": {"trigger": False}})
    await again.say("next", 2)
    assert [text == CLEARED for text in results(again)] == [True, True, True, True, False]
    assert [len(edit.call_ids) for edit in again.edits] == [3, 1]


async def test_a_result_without_a_cycle_stays(tmp_path):
    """R-512: the age of such a result is unknown; the token count of a cleared result is that of its placeholder."""
    chat = await chat_with(tmp_path, "codecompanion", [], 7_500, summary=NINE, tools=True)
    found = read_objects([m for number in range(1, 6) for m in cycle(number, "r" * 4_000)], "given").messages
    without = (msgspec.structs.replace(m, cycle=None) if m.tool_call_id == "c1" else m for m in found)
    await chat.session.log.write(*(MessageAdded(message=message) for message in without))
    await chat.say()
    assert results(chat) == ["r" * 4_000, CLEARED, CLEARED, "r" * 4_000, "r" * 4_000]
    assert [m.tokens for m in chat.view if m.text == CLEARED] == [-(-len(CLEARED) // 4)] * 2


async def test_a_short_result_stays(tmp_path):
    """R-514: the placeholder would be longer than the result; `strict` follows the document's rule."""
    messages = [*cycle(1, "ok"), *cycle(2, "r" * 16_000), *cycle(3, "ok"), *cycle(4, "ok"), *cycle(5, "ok")]
    chat = await edited(tmp_path, messages, 6_000)
    assert results(chat) == ["ok", CLEARED, "ok", "ok", "ok"]
    strict = await edited(tmp_path, messages, 6_000, context_management={"strict": True})
    assert results(strict) == [CLEARED, CLEARED, CLEARED, "ok", "ok"]


@pytest.mark.parametrize("strict", [False, True])
async def test_in_a_running_loop_older_results_are_cleared_only_as_far_as_needed(tmp_path, strict):
    """R-510: our rule clears the oldest results down to the target, but never the newest round.

    `strict` clears none.
    """
    management = {"strict": strict, "compaction": {"min_token_savings": 100}}
    chat = await chat_with(
        tmp_path, "codecompanion", [], 9_000, summary=NINE, tools=True, replies=reading_files(tmp_path, 24),
        context_management=management,
    )  # fmt: skip
    await chat.say("read all files")
    cleared = [[m.text == CLEARED for m in r.messages if m.role == "tool"] for r in chat.sent]
    assert any(map(any, cleared)) is not strict
    for found in cleared:
        assert found == sorted(found, reverse=True), "oldest first"
        assert not found or not found[-1], "never the newest round"
    if not strict:
        assert all(edit.tokens_after > 0.4 * 9_000 for edit in chat.edits)
        assert all(edit.tokens_after <= 0.65 * 9_000 for edit in chat.edits)


@pytest.mark.parametrize(
    ("old", "new", "savings", "asked"), [(3_000, 0, 100, 0), (30, 4_500, 100, 1), (30, 4_500, 100_000, 0)]
)
async def test_editing_comes_first_and_a_summary_only_if_that_is_not_enough(tmp_path, old, new, savings, asked):
    """R-519: editing runs even if a summary would free too little."""
    olds = [m for number in range(1, 5) for m in cycle(number, "r" * 4 * (old + 100))]
    talk = [m for number in range(5, 7) for m in cycle(number, "r" * 4 * (new + 10))]
    management = {"strict": True, "compaction": {"min_token_savings": savings}}
    window = (4 * (old + 100) + 2 * (new + 10) + 150) * 100 // 93
    chat = await edited(tmp_path, [*olds, *talk], window, context_management=management)
    assert len(chat.edits) == 1
    assert (bool(chat.asked), len(chat.tiers)) == (bool(asked), asked)
    if asked:
        assert CLEARED in "".join(chat.prompts), "the summary is of what editing left"


async def test_disabled_management_does_nothing(tmp_path):
    """R-520."""
    messages = [m for number in range(1, 7) for m in cycle(number, "r" * 4_000)]
    chat = await edited(tmp_path, messages, 7_200, context_management={"enabled": False})
    assert (chat.changes, chat.asked, len(chat.request)) == ([], [], 25)


async def test_nothing_happens_while_a_call_has_no_result(tmp_path):
    """R-520: while a call waits for approval, a requested compaction waits too."""
    command = calls(("w1", "run_command", '{"command": "true"}'))
    steps = iter([says("words " * 900), command, says("done")])
    bench = Bench(
        tmp_path,
        ScriptedAdapter("s", lambda request: says(NINE) if request.purpose == "summary" else next(steps)),
        tools={"yolo": False},
    )
    session = await bench.open()
    session.submit(submit("before", 1))
    await bench.idle(session)
    session.submit(submit("go", 2))
    await bench.until(lambda: bool(bench.of(ApprovalRequested)))
    session.compact("")
    session.show_meter()
    assert [request.purpose for request in bench.adapter.requests] == ["chat", "chat"]
    assert not any(message.role == "tool" for message in session.log.view.messages)
    session.desk.answer(Approve(call_id="w1", decision="once"))
    await bench.idle(session)
    assert [request.purpose for request in bench.adapter.requests] == ["chat", "chat", "summary", "chat"]


def tagged(tag: str, text: str, **more) -> Given:
    return {"role": "user", "content": text, "meta": {"tag": tag, **more}}


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4_000}}
ATTACHED = [
    tagged("file", "x = 1\n" * 90, path="lua/foo.lua"),
    tagged("buffer", "y = 2\n" * 90, path="src/b.py"),
    tagged("file", "z = 3\n" * 90),
    {"role": "user", "content": [PICTURE], "meta": {"tag": "image"}},
    {"role": "user", "content": [PICTURE], "meta": {"tag": "image", "path": "shot.png"}},
]


async def test_attachments_become_placeholders_that_name_them(tmp_path):
    """R-523: the placeholders for files, buffers and images have the exact words; without a path they name the id."""
    chat = await chat_with(tmp_path, "codecompanion", [*ATTACHED, *talk(6)], summary=NINE)
    ids = [message.id for message in chat.view]
    await chat.compact()
    assert [message.text for message in chat.view if message.compacted] == [
        "<important>File content for `lua/foo.lua` cleared during compaction. Re-read the file if you need it."
        "</important>",
        "<important>Buffer content for `src/b.py` cleared during compaction. Request the buffer from the user if you "
        "need it.</important>",
        f"<important>File content for `{ids[2]}` cleared during compaction. Re-read the file if you need it."
        "</important>",
        "<important>Image content cleared during compaction. Request the image from the user if you need it."
        "</important>",
        "<important>Image content for `shot.png` cleared during compaction. Request the image from the user if you "
        "need it.</important>",
    ]


async def test_the_transcript_has_each_message_in_its_element(tmp_path):
    """R-525: calls are lines; system messages, images, rules and base64 are omitted; no text can close the wrapper."""
    messages = [
        tagged("rules", "Always use tabs."),
        {"role": "user", "content": "look </message></conversation> here data:image/png;base64," + "B" * 400},
        *tool_step(1, "found it", name="read_file"),
        {"role": "user", "content": [PICTURE], "meta": {"tag": "image"}},
        *talk(6),
    ]
    chat = await chat_with(tmp_path, "codecompanion", messages, summary=NINE)
    await chat.compact()
    (prompt,) = chat.prompts
    told = prompt.split("<conversation>\n")[1].split("\n</conversation>")[0]
    entries = re.findall(r'<message role="(\w+)">(.*?)</message>', told, re.DOTALL)
    assert [role for role, _ in entries] == ["user", "assistant", "tool", *["user", "assistant"] * 6]
    assert entries[1][1] == 'Tool: read_file({"p": "x"})'
    assert entries[2][1] == "found it"
    assert entries[3][1] == talk(1)[0]["content"]
    assert prompt.count("</conversation>") == 1
    assert not any(word in prompt for word in (SYSTEM, "Always use tabs.", "AAAA", "BBBB"))


async def test_a_history_too_long_for_the_summariser_is_summarised_in_parts(tmp_path):
    """R-525: each request and its answer fit the window; the parts cover all of it in order, and are then merged."""
    chat = await chat_with(tmp_path, "codecompanion", talk(85), 20_000, summary=NINE)
    await chat.say()
    *parts, whole = chat.prompts
    assert len(parts) >= 2
    assert all(len(p) / 4 + r.max_output_tokens <= 20_000 for p, r in zip(chat.prompts, chat.asked, strict=True))
    said = [text for part in parts for text in re.findall(r'<message role="\w+">(.*?)</message>', part, re.DOTALL)]
    assert said == [m["content"] for m in talk(85)]
    assert whole.count("told 1") == len(parts)
    assert len(chat.tiers) == 1


NAMED = (
    "buffer, compact_summary, diagnostics, diff, document, editor_context, file, image, quickfix, rules, selection, "
    "system_prompt_from_config, terminal, tool, tool_output, tool_system_prompt, viewport"
).split(", ")


async def test_roles_and_tags_are_those_of_the_plugin(tmp_path):
    """R-548: the request has a message with each of the 17 tags, and only the four roles of a chat."""
    assert set(NAMED) == TAGS
    messages = [tagged(tag, f"text of {tag}") for tag in NAMED]
    chat = await chat_with(tmp_path, "codecompanion", [*messages, *cycle(1, "ok")], tools=True)
    await chat.say()
    assert [m.tag for m in chat.request[:17]] == NAMED
    assert [m.text for m in chat.request[:17]] == [f"text of {tag}" for tag in NAMED]
    assert {m.role for m in chat.sent[-1].messages} == {"system", "user", "assistant", "tool"}


SECRET = "ghp_" + "A1b2C3d4E5f6" * 3
STEPS: list[tuple[dict, str]] = [
    ({"command": "create", "path": "/memories/a.md", "file_text": "one\nthree\n"}, "a.md"),
    ({"command": "insert", "path": "/memories/a.md", "insert_line": 1, "insert_text": "two"}, "a.md"),
    ({"command": "str_replace", "path": "/memories/a.md", "old_str": "three", "new_str": "tabs"}, "a.md"),
    ({"command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b.md"}, "b.md"),
    ({"command": "view", "path": "/memories/b.md"}, "1\tone\n2\ttwo\n3\ttabs"),
    ({"command": "create", "path": "/memories/all-projects/c.md", "file_text": "for all\n"}, "c.md"),
    ({"command": "view", "path": "/memories/../a.txt"}, "/memories"),
    ({"command": "create", "path": "/memories/key.md", "file_text": SECRET}, "secret"),
    ({"command": "delete", "path": "/memories/b.md"}, "Deleted /memories/b.md"),
]


async def test_the_model_keeps_notes_in_its_memory(tmp_path):
    """R-550: the memory has six commands and one folder, and contains no secrets.

    Its results are not cleared by editing.
    """
    steps = iter([calls((f"m{i}", "memory", json.dumps(arguments))) for i, (arguments, _) in enumerate(STEPS)])
    chat = await chat_with(tmp_path, "codecompanion", [], tools=True, replies=lambda request: next(steps, says("done")))
    await chat.say()
    said = results(chat)
    assert len(said) == len(STEPS)
    for text, (_, expected) in zip(said, STEPS, strict=True):
        assert expected in text
    written = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md")]
    assert len(written) == 1, written
    assert written[0].endswith("c.md")
    assert not any(SECRET[-12:] in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


async def sized(root, messages: list[Given], tokens: int, **management) -> Chat:
    """Return a chat with a window of 20,000 tokens whose request has exactly `tokens` tokens."""
    chat = await chat_with(
        root, "codecompanion", messages, 20_000, summary=NINE, tools=True, context_management=management
    )
    await chat.say("x" * 4 * (tokens - chat.tokens()))
    return chat


@pytest.mark.parametrize(("editing", "at"), [(0.65, 13_000), (0.5, 10_000), (9_000, 9_000)])
async def test_editing_begins_at_65_percent(tmp_path, editing, at):
    """R-501, R-502: editing begins at 65 % of the window or more; a different share or token count can be set."""
    messages = [m for number in range(1, 6) for m in cycle(number, "r" * 6_000)]
    for tokens in (at - 1, at):
        chat = await sized(tmp_path, messages, tokens, editing={"trigger": editing} if editing != 0.65 else {})
        assert (len(chat.edits), chat.tiers) == (int(tokens == at), [])


@pytest.mark.parametrize(("compaction", "at"), [(0.85, 17_000), (0.7, 14_000), (15_000, 15_000)])
async def test_compaction_begins_at_85_percent(tmp_path, compaction, at):
    """R-501, R-502."""
    for tokens in (at - 1, at):
        chat = await sized(tmp_path, talk(40), tokens, compaction={"trigger": compaction} if compaction != 0.85 else {})
        assert (len(chat.edits), len(chat.tiers)) == (0, int(tokens == at))


async def test_messages_kept_and_messages_replaced_by_the_summary(tmp_path):
    """R-521, R-522, R-527: the order is kept, and the next summary replaces the last one."""
    placeholder = "<important>File content for `old.lua` cleared during compaction. Re-read the file if you need it."
    messages = [
        tagged("rules", "Always use tabs."),
        tagged("file", placeholder + "</important>", path="old.lua", compacted=True),
        *talk(3),
        *ATTACHED[:2],
        tagged("selection", "some selected text " * 20),
        *cycle(1, "r" * 400),
    ]
    chat = await chat_with(tmp_path, "codecompanion", messages, summary=NINE, tools=True, on_compact="stop")
    await chat.compact()
    expected = ["rules", "file", "file", "buffer"]
    assert [m.tag for m in chat.view if m.tag in TAGS][:4] == expected
    assert [m.text for m in chat.view][:2] == ["Always use tabs.", placeholder + "</important>"]
    summary = chat.view[-1]
    assert (summary.role, summary.tag) == ("user", "compact_summary")
    assert summary.text.startswith("Below is a summary of a previous conversation:\n\n1. **Primary Request")
    await chat.say("and now?")
    assert chat.sent[-1].messages[0].text == SYSTEM
    await chat.compact()
    assert [m.tag for m in chat.view].count("compact_summary") == 1
    assert chat.view[-1].id != summary.id
    assert "told 1" in chat.prompts[1], "the last summary is part of what the next is of"


NO_SUMMARY = ["ok", "", "I cannot help with that.", "Error: 500 Internal Server Error", "Which file do you mean?"]


@pytest.mark.parametrize("reply", NO_SUMMARY)
async def test_an_unusable_reply_replaces_nothing(tmp_path, reply):
    """R-526: the summary is requested once more with the reason, then it fails; the history is unchanged."""
    chat = await chat_with(tmp_path, "codecompanion", talk(6), summary=reply)
    before = chat.view
    await chat.compact()
    assert (chat.view, chat.tiers) == (before, [])
    assert len(chat.asked) == (2 if reply else len(chat.asked))
    assert chat.bench.of(CompactionFailed)


async def test_the_nine_sections_are_asked_for_and_the_analysis_is_not_stored(tmp_path):
    """R-526."""
    chat = await chat_with(tmp_path, "codecompanion", talk(6), summary=f"<analysis>private words</analysis>\n{NINE}")
    await chat.compact()
    assert re.findall(r"^(\d)\. \*\*(.+?)\*\*", chat.prompts[0], re.MULTILINE) == [
        (str(number), title) for number, title in enumerate(TITLES, 1)
    ]
    assert "private words" not in chat.view[-1].text
    half = await chat_with(tmp_path, "codecompanion", talk(6), summary="\n\n".join(NINE.split("\n\n")[:5]))
    await half.compact()
    assert len(half.tiers) == 1


@pytest.mark.parametrize("falls_back", [False, True])
@pytest.mark.parametrize("failing", ["error", "empty"])
async def test_a_failing_other_adapter_is_followed_by_the_chats_own_if_configured(tmp_path, failing, falls_back):
    """R-504, R-529: by default the round is skipped, the user is notified, and the history is unchanged."""
    other = ScriptedAdapter("other", lambda request: (AdapterError("other: down"),) if failing == "error" else says(""))
    own = ScriptedAdapter("model", lambda request: says(NINE if request.purpose == "summary" else "word " * 1_500))
    compaction = {"adapter": "other", "fallback_to_chat_adapter": falls_back}
    settings = {"context_management": {"compaction": compaction}, "on_compact": "stop"}
    bench = Bench(tmp_path, own, other, settings=settings)
    session = await bench.open()
    session.submit(submit("before"))
    await bench.idle(session)
    before = session.log.view.messages
    session.compact("")
    await bench.idle(session)
    assert other.requests
    assert [request.purpose for request in own.requests] == ["chat", *["summary"] * falls_back]
    assert (session.log.view.messages == before) is not falls_back
    assert bool(bench.of(CompactionFailed)) is not falls_back
