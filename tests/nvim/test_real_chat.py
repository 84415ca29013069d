"""The whole stack: keys in a real Neovim, the real host, a real SQLite file, real Chat Completions bytes."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from codecompanion.model.history import CompactionStarted, MessageAdded, ViewChanged
from codecompanion.model.invariants import violations
from codecompanion.model.view import project
from codecompanion.placeholders import INTERRUPTED, SUMMARY_PREFIX, TOOL_RESULT_CLEARED
from codecompanion.store.opening import open_store
from real_chat import KEY, read_log, start_chat
from tests.contents import contents_below
from tests.providers.chat.answers import Call, failure, plain, reply, silence
from tests.providers.chat.thread import ChatServerThread
from tests.summaries import nine_sections

USAGE = {"prompt_tokens": 1900, "completion_tokens": 12, "total_tokens": 1912}


def read(path, call_id="call_1"):
    return Call("read_file", json.dumps({"path": path}), id=call_id)


def sent(server, index=-1):
    """Return the messages of a request to the server."""
    return [r.json["messages"] for r in server.requests if r.path.endswith("/chat/completions")][index]


def test_a_question_with_tools_from_the_keys_to_the_wire_and_back(nvim_factory, tmp_path):
    """This is the main task in miniature: parallel calls, and the meter from the usage reported by the provider.

    Everything is in the log.
    """
    script = [
        reply("Let me look.", calls=[read("a.txt"), read("b.txt", "call_2")]),
        reply("Both are fine.", usage=USAGE),
    ]
    with ChatServerThread(script, key=KEY) as server:
        files = [("a.txt", "alpha\n"), ("b.txt", "beta\n"), ("AGENTS.md", "Be brief.\n")]
        chat = start_chat(nvim_factory, tmp_path, server, files=files, trusted=True)
        chat.say("## Compare\na.txt and b.txt\n```\nplease\n```")
        screen = chat.nvim.screen()
        assert "Both are fine." in screen
        assert "read_file a.txt" in screen
        assert "<rules>AGENTS.md</rules>" in screen
        assert "· 1 %" in screen
        request = sent(server)
        assert [m["role"] for m in request] == ["system", "user", "user", "assistant", "tool", "tool"]
        assert request[2]["content"] == "## Compare\na.txt and b.txt\n```\nplease\n```"
        assert "alpha" in request[4]["content"]
        assert server.refusals == []
        view = chat.view()
        assert [m.role for m in view.messages] == ["user", "user", "assistant", "tool", "tool", "assistant"]


@pytest.mark.slow("a long chat in a small window")
def test_the_context_is_edited_then_compacted_and_never_overflows(nvim_factory, tmp_path):
    """The server refuses requests over its window, and never has to: this is the purpose of the plugin."""
    window = 12_000
    big = "".join(f"{i}: the quick brown fox number {i} jumps\n" for i in range(110))

    def answer(received):
        messages = received.json["messages"]
        if "nine headings" in str(messages[0]["content"])[:3000]:
            return reply(nine_sections("Read everything."))
        if messages[-1]["role"] == "tool":
            return reply("Read. " + "More words about it. " * 20)
        return reply(calls=[read("big.txt", f"call_{len(messages)}")])

    with ChatServerThread(key=KEY, window=window, default=answer) as server:
        options = {
            "interactions": {"chat": {"opts": {"context_management": {"compaction": {"min_token_savings": 500}}}}}
        }
        chat = start_chat(
            nvim_factory, tmp_path, server, options=options, opts={"context_window": window},
            files=[("big.txt", big), ("AGENTS.md", "Rule one.\n")], size=(110, 60), trusted=True,
        )  # fmt: skip
        for number in range(14):
            chat.say(f"question {number} " + "with some words " * 60)
        assert server.refusals == []
        changes = [e.payload for e in chat.log() if isinstance(e.payload, ViewChanged)]
        kinds = [change.kind for change in changes]
        assert "edited" in kinds
        assert "compacted" in kinds
        assert all(change.tokens_after < change.tokens_before for change in changes)
        final = sent(server)
        asked = [request.json for request in server.requests if request.method == "POST"]
        assert any(m["content"] == TOOL_RESULT_CLEARED for body in asked for m in body["messages"])
        assert any(str(m["content"]).startswith(SUMMARY_PREFIX) for m in final)
        assert "Rule one." in final[1]["content"]
        text = chat.text()
        assert "Summary · " in text
        assert "question 0" in text
        assert chat.nvim.lua("return _G.cc_edits") == kinds.count("edited")
        assert violations(chat.view().messages) == []


def test_the_preview_shows_the_changes_without_a_request(nvim_factory, tmp_path):
    """R-546."""
    with ChatServerThread([reply("Answer. " * 300)], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.say("first")
        chat.nvim.feed("gp")
        screen = chat.nvim.wait_screen("If you run /compact now: compacted")
        assert "Before the next request: nothing changes" in screen
        assert "- user" in screen
        assert "+ compact_summary" in screen
        assert len(server.requests) == 1
        chat.nvim.feed("q")
        chat.say("second")
        assert [m["content"][:5] for m in sent(server)[1:]] == ["first", "Answe", "secon"]


def test_compact_with_instructions_by_slash_command(nvim_factory, tmp_path):
    """R-533."""
    with ChatServerThread(key=KEY) as server:
        server.script = [reply("Answer. " * 300), reply(nine_sections("THE SUMMARY")), reply("Going on.")]
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.say("first")
        before = chat.finished()
        chat.send("/compact keep the file names")
        chat.nvim.wait_screen(r"Compact now\? .*ontinue")
        chat.nvim.feed("c")
        chat.nvim.wait_for(lambda: chat.finished() > before, "the model going on")
        assert "keep the file names" in sent(server, 1)[0]["content"]
        (summary,) = [m["content"] for m in sent(server, 2)[1:]]
        assert summary.startswith(SUMMARY_PREFIX + "1. **Primary Request and Intent**\nTHE SUMMARY")
        assert "6. **All User Messages**\n> first\n" in summary
        assert "\n- Word for word in the log: recall r" in summary
        assert summary.removeprefix(SUMMARY_PREFIX).rstrip() in chat.text(), "what is sent can be read"
        assert "Going on." in chat.nvim.screen()


@pytest.mark.parametrize("when", ["streaming", "running_tools", "idle"])
def test_a_killed_host_loses_nothing_that_was_shown_as_sent(nvim_factory, tmp_path, when):
    """Lessons 36, 44: after `kill -9` the next message works, with a valid history."""
    never = reply("half of the answer and more", chunk_chars=5, delay_s=0.2)
    sleep = reply(calls=[Call("run_command", json.dumps({"command": "sleep 300"}), id="call_s")])
    script = {"streaming": [never], "running_tools": [sleep], "idle": [reply("whole")]}[when]
    with ChatServerThread([*script, reply("back again")], key=KEY) as server:
        options = {"interactions": {"chat": {"tools": {"opts": {"yolo": True}}}}}
        chat = start_chat(nvim_factory, tmp_path, server, options=options)
        chat.send("precious words")
        chat.nvim.wait_screen(r"## Me +\(\d+ tokens\)")
        if when == "idle":
            chat.wait_state("idle")
            chat.nvim.wait_screen("whole")
        else:
            chat.nvim.wait_screen("half" if when == "streaming" else "… run_command sleep 300")
        chat.type("a draft in the making")
        os.kill(chat.host_pid(), signal.SIGKILL)
        chat.nvim.wait_lua("return require('codecompanion.host').status() ~= 'ready'")
        assert "precious words" in chat.text()
        assert chat.draft() == "a draft in the making"
        before = chat.finished()
        chat.nvim.feed("<CR>")
        chat.nvim.wait_for(lambda: chat.finished() > before, "the next turn")
        assert "back again" in chat.text()
        assert chat.text().count("precious words") == 1
        messages = chat.view().messages
        typed = [m.text for m in messages if m.role == "user" and not m.tag]
        assert typed == ["precious words", "a draft in the making"]
        assert violations(messages) == []
        assert server.refusals == []
        if when == "running_tools":
            assert any(m.text == INTERRUPTED for m in messages)


def test_a_killed_editor_loses_nothing_that_was_shown_as_sent(nvim_factory, tmp_path):
    """Lesson 36: after `kill -9` of Neovim, the chat resumes in the next Neovim, with its draft and partial reply."""
    with ChatServerThread(
        [reply("first answer"), reply("second ans" * 40, chunk_chars=4, delay_s=0.05)], key=KEY
    ) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.say("one")
        chat.send("two")
        chat.nvim.wait_screen("second ans")
        chat.type("unsent thought")
        chat_id = chat.id
        chat.nvim.wait_for(lambda: saved_draft(tmp_path, chat_id) == "unsent thought", "the saved draft")
        chat.nvim.kill9()
        again = start_chat(nvim_factory, tmp_path, server, opened=False)
        again.nvim.lua("require('codecompanion').resume(...)", chat_id)
        again.wait_ready()
        again.nvim.wait_screen("unsent thought")
        for expected in ("one", "first answer", "two"):
            again.nvim.wait_for(lambda expected=expected: expected in again.text(), expected)
        assert again.draft() == "unsent thought"
        view = project(read_log(tmp_path, chat_id))
        assert [m.text for m in view.messages if m.role == "user"] == ["one", "two"]
        server.script = [reply("continued")]
        again.nvim.feed("G<CR>")
        again.nvim.wait_screen("continued")
        assert [m["content"] for m in sent(server) if m["role"] == "user"][-1] == "unsent thought"
        assert server.refusals == []


def saved_draft(root: Path, chat: str) -> str:
    store = open_store(root / "data" / "nvim" / "codecompanion")
    try:
        return store.load_draft(chat)
    finally:
        store.close()


def test_a_rate_limit_is_shown_and_retried(nvim_factory, tmp_path):
    """Lesson 38: the retry is visible, no prompt blocks, and there is one answer."""
    limit = failure(429, "Rate limit reached", headers={"retry-after": "4"})
    with ChatServerThread([limit, reply("made it")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.send("hello")
        chat.nvim.wait_screen("(?i)retry|again in")
        chat.nvim.wait_screen("made it")
        assert not chat.nvim.blocked()
        assert chat.nvim.messages() == ""


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (failure(401, "Incorrect API key provided: " + KEY), "LOOP_KEY"),
        (failure(404, "The model `test-model` does not exist", code="model_not_found"), "test-model"),
        (failure(400, "This model's maximum context length is 10", code="context_length_exceeded"), "context"),
        (plain(b"<html>proxy says no</html>", content_type="text/html"), "(?i)html"),
        (plain(b"data: {garbage\n\n"), "(?i)loop"),
    ],
)
def test_an_error_is_one_sentence_in_the_buffer(nvim_factory, tmp_path, answer, said):
    """Lessons 37, 38: there is no raw JSON and no hit-enter prompt.

    The next message is sent together with the failed one.
    """
    with ChatServerThread([answer, reply("recovered")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, opts={"max_retries": 0})
        chat.say("first try")
        screen = chat.nvim.wait_screen(said)
        assert "Traceback" not in screen
        assert '{"error"' not in screen
        assert not chat.nvim.blocked()
        chat.say("second try")
        assert "recovered" in chat.text()
        assert [m["content"] for m in sent(server) if m["role"] == "user"] == ["first try", "second try"]


def test_a_reply_cut_off_is_kept_and_marked(nvim_factory, tmp_path):
    """Lesson 39."""
    with ChatServerThread([reply("half a sentence that", break_after=5)], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, opts={"max_retries": 0})
        chat.say("hello")
        assert chat.view().messages[-1].cut
        assert "half" in chat.text()
        chat.nvim.wait_screen("(?i)cut|ended before|incomplete|lost")


def test_no_endpoint_is_one_clear_sentence(nvim_factory, tmp_path):
    with ChatServerThread(key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, opts={"max_retries": 0}, opened=False)
    chat.open()
    chat.say("anybody there?")
    chat.nvim.wait_screen("(?i)loop.*(connect|reach)")
    assert "anybody there?" in chat.text()


def test_a_missing_key_names_the_searched_places(nvim_factory, tmp_path):
    with ChatServerThread(key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, key="")
        chat.say("hello")
        chat.nvim.wait_screen("LOOP_KEY")
        assert server.requests == []


def test_everything_on_disk_is_private(nvim_factory, tmp_path):
    """Lesson 44: files have mode 0600, folders 0700."""
    with ChatServerThread([reply("ok")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.say("hello")
    ours = [p for p in (tmp_path / "data").rglob("*") if "codecompanion" in str(p)]
    ours += (tmp_path / "state").rglob("codecompanion*")
    assert ours
    assert [p for p in ours if p.stat().st_mode & 0o077] == []


def test_two_neovims_share_the_history_but_not_a_chat(nvim_factory, tmp_path):
    with ChatServerThread([reply("one"), reply("two")], key=KEY) as server:
        first = start_chat(nvim_factory, tmp_path, server)
        first.say("mine")
        second = start_chat(nvim_factory, tmp_path, server, opened=False)
        second.nvim.lua("require('codecompanion').resume(...)", first.id)
        second.nvim.wait_screen("mine")
        second.nvim.wait_screen("open in another Neovim; close it there")
        assert second.text().count("another Neovim") == 1  # one event, one message
        second.send("can I write here?")
        second.nvim.wait_for(lambda: second.draft() == "can I write here?", "the message in the input again")
        second.nvim.wait_for(lambda: "another Neovim" in second.nvim.messages(), "why it was not sent")
        assert second.text().count("another Neovim") == 1
        first.say("still mine")
        assert [m.text for m in first.view().messages] == ["mine", "one", "still mine", "two"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_a_read_only_data_folder_still_gives_a_chat(nvim_factory, tmp_path):
    data = tmp_path / "data" / "nvim" / "codecompanion"
    data.mkdir(parents=True)
    data.chmod(0o500)
    with ChatServerThread([reply("works")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.say("hello")
        assert "works" in chat.text()


def test_a_file_in_place_of_the_data_folder_still_gives_a_chat_with_a_warning(nvim_factory, tmp_path):
    """Nothing can be stored, but the user is notified and the chat works."""
    data = tmp_path / "data" / "nvim"
    data.mkdir(parents=True)
    (data / "codecompanion").write_text("in the way")
    with ChatServerThread([reply("works")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.say("hello")
        assert "works" in chat.text()
        assert "not be saved" in chat.nvim.messages() + chat.nvim.screen()


def test_a_damaged_database_is_set_aside_and_reported(nvim_factory, tmp_path):
    data = tmp_path / "data" / "nvim" / "codecompanion"
    data.mkdir(parents=True)
    (data / "sessions.db").write_bytes(b"this is not a database" * 500)
    with ChatServerThread([reply("works")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.say("hello")
        assert "works" in chat.text()
        assert "Damaged chat history" in chat.nvim.messages() + chat.nvim.screen()
    assert any(content.startswith(b"this is not") for _, content in contents_below(data))


def test_an_unreadable_rule_file_is_named_and_the_others_load(nvim_factory, tmp_path):
    """R-549."""
    with ChatServerThread([reply("ok")], key=KEY) as server:
        (tmp_path / "work").mkdir()
        (tmp_path / "work" / "CLAUDE.md").write_bytes(b"\0\1\2binary\0" * 50)
        chat = start_chat(nvim_factory, tmp_path, server, files=[("AGENTS.md", "Be brief.\n")], trusted=True)
        chat.nvim.wait_screen("CLAUDE.md")
        chat.say("hello")
        assert "Be brief." in str(sent(server))


def test_rules_are_sent_again_if_their_file_changes(nvim_factory, tmp_path):
    """R-549: the file is read again if it has changed."""
    with ChatServerThread([reply("a"), reply("b")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, files=[("AGENTS.md", "Old rule.\n")], trusted=True)
        chat.say("one")
        (tmp_path / "work" / "AGENTS.md").write_text("New rule, longer.\n")
        chat.say("two")
        assert "New rule" in sent(server)[1]["content"]
        assert "Old rule" not in str(sent(server))


def test_an_edit_is_approved_in_the_buffer_and_applied(nvim_factory, tmp_path):
    edit = Call("create_file", json.dumps({"path": "new.txt", "content": "fresh\n"}), id="call_e")
    with ChatServerThread([reply(calls=[edit]), reply("created")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        before = chat.finished()
        chat.send("make it")
        chat.nvim.wait_screen("g2 accept")
        assert not (tmp_path / "work" / "new.txt").exists()
        chat.press_on_approval("g2")
        chat.nvim.wait_for(lambda: chat.finished() > before, "the end")
        assert (tmp_path / "work" / "new.txt").read_text() == "fresh\n"


def test_a_message_typed_during_a_reply_is_queued_and_sent_once(nvim_factory, tmp_path):
    """Lesson 16."""
    with ChatServerThread(
        [reply("slow answer " * 10, chunk_chars=6, delay_s=0.03), reply("second")], key=KEY
    ) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.send("one")
        chat.nvim.wait_screen("slow")
        chat.send("two")
        chat.nvim.wait_screen("queued")
        chat.nvim.wait_screen("second")
        chat.wait_state("idle")
        assert [m["content"] for m in sent(server) if m["role"] == "user"] == ["one", "two"]
        assert chat.text().count("two") == 1


def test_the_stop_key_ends_a_hanging_summariser_at_once(nvim_factory, tmp_path):
    """Lesson 41."""
    with ChatServerThread([reply("Answer. " * 200), silence(), reply("still here")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.say("first")
        chat.nvim.command("CodeCompanionCompact!")
        chat.wait_state("compacting")
        chat.nvim.wait_for(lambda: len(server.requests) == 2, "the summary request")
        chat.nvim.feed("q")
        chat.wait_state("idle")
        events = chat.log()
        assert any(isinstance(e.payload, CompactionStarted) for e in events)
        assert [e for e in events if isinstance(e.payload, ViewChanged)] == []
        chat.say("second")
        assert "still here" in chat.text()
        assert sum(isinstance(e.payload, MessageAdded) for e in chat.log()) == 4
