"""Checkpoints in a real Neovim: kill -9, a missing database, the picker, `/memory` (R-464…R-478)."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from codecompanion.model import checkpoint as payloads
from codecompanion.store.files.checkpoints import CheckpointFiles
from real_chat import KEY, read_log, start_chat
from tests.providers.chat.answers import reply, silence
from tests.providers.chat.thread import ChatServerThread

OFTEN = {"interactions": {"chat": {"opts": {"checkpoint_every_messages": 2}}}}
COWORK = {"interactions": {"chat": {"opts": {"policy": "cowork", "on_compact": "stop"}}}}
SUMMARY = (
    "1. **Primary Request and Intent**\nA chat.\n3. **Work Completed**\nNone\n4. **Errors and Fixes**\nNone\n"
    "6. **Decisions Made**\n- keep it small\n9. **Recommended Next Step**\nWrite it.\n"
)


def state_dir(chat) -> Path:
    return Path(chat.nvim.lua("return vim.fn.stdpath('state')")) / "codecompanion"


def stored(chat, chat_id):
    return CheckpointFiles(state_dir(chat)).payloads_of(chat_id)


def wait_for_messages(chat, chat_id, count):
    """Wait until the newest checkpoint, which is written after the turn, has `count` messages."""
    chat.nvim.wait_for(
        lambda: any(len((one.raw or {}).get("conversationHistory", ())) == count for one in stored(chat, chat_id)[:1]),
        f"a checkpoint of {count} messages",
    )


def test_a_chat_with_a_missing_database_is_restored(nvim_factory, tmp_path):
    """R-473, R-478: the chat is restored by and under its id, with a note about the source, and can be continued."""
    with ChatServerThread([reply("first answer"), reply("second answer"), reply("went on")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.say("question one")
        chat.say("question two")
        chat_id = chat.id
        wait_for_messages(chat, chat_id, 4)
        data = Path(chat.nvim.lua("return vim.fn.stdpath('data')")) / "codecompanion"
        chat.nvim.leave()
        for path in data.glob("sessions.db*"):
            path.unlink()
        again = start_chat(nvim_factory, tmp_path, server, opened=False)
        again.nvim.command(f"CodeCompanionRestore {chat_id}")
        again.wait_ready()
        assert again.id == chat_id
        again.nvim.wait_for(lambda: "Restored chat" in again.text(), "the note")
        shown = again.text()
        for text in ("question one", "first answer", "question two", "second answer"):
            assert text in shown
        assert f"Restored chat {chat_id} from the newest checkpoint" in shown
        assert "source 1 of 5" in shown
        again.say("and now?")
        assert "went on" in again.text()
        sent = server.requests[-1].json["messages"]
        asked = ["question one", "question two", "and now?"]
        assert [message["content"] for message in sent if message["role"] == "user"] == asked
        assert server.refusals == []


def test_the_picker_restores_a_chosen_checkpoint_as_a_new_chat(nvim_factory, tmp_path):
    """The list shows the kind, time and number of messages; the old chat is unchanged."""
    with ChatServerThread([reply("first answer"), reply("second answer")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=OFTEN)
        chat.say("question one")
        chat_id = chat.id
        wait_for_messages(chat, chat_id, 2)
        chat.say("question two")
        wait_for_messages(chat, chat_id, 4)
        before = chat.log()
        chat.nvim.lua(
            """vim.ui.select = function(items, opts, done)
                 _G.rows = vim.tbl_map(opts.format_item, items)
                 done(items[#items])
               end"""
        )
        chat.nvim.command("CodeCompanionRestore")
        chat.nvim.wait_lua("return vim.b.codecompanion_chat and vim.b.codecompanion_chat.meter ~= nil")
        chat.nvim.wait_for(lambda: chat.id != chat_id, "another chat")
        chat.nvim.wait_for(lambda: "Restored chat" in chat.text(), "the note")
        rows = chat.nvim.lua("return _G.rows")
        assert [" ".join(row.split()[2:]) for row in rows] == [
            "periodic 4 messages · question one",
            "periodic 2 messages · question one",
        ]
        assert "question two" not in chat.text()
        assert "first answer" in chat.text()
        assert [event.payload for event in before] == [
            event.payload for event in read_log(tmp_path, chat_id)[: len(before)]
        ]


def test_leaving_neovim_completes_a_chat_that_did_something(nvim_factory, tmp_path):
    """R-466: `:qa` is enough and takes no longer than usual."""
    with ChatServerThread([reply("a long answer " * 20)], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.say("question one")
        folder, chat_id = state_dir(chat), chat.id
        chat.nvim.leave()
        files = CheckpointFiles(folder)
        chat.nvim.wait_for(
            lambda: [one.kind for one in files.list_checkpoints(chat_id)] == ["completion"],
            "the checkpoint",
        )


def test_a_host_killed_during_a_reply_leaves_complete_files(nvim_factory, tmp_path):
    """R-478: the state after the last complete turn is kept, and every file is readable."""
    slow = reply("word " * 400, chunk_chars=5, delay_s=0.02)
    with ChatServerThread([reply("first answer"), slow], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=OFTEN)
        chat.say("question one")
        wait_for_messages(chat, chat.id, 2)
        chat.send("question two")
        chat.wait_state("streaming")
        os.kill(chat.host_pid(), signal.SIGKILL)
        found = stored(chat, chat.id)
        assert not any(one.problem for one in found)
        assert payloads.form_of(found[0].raw) == "v2"


def test_a_compaction_is_remembered_and_can_be_viewed(nvim_factory, tmp_path):
    """R-447, R-472: a checkpoint is written before the compaction, and memory and daily log after it.

    `/memory` opens the entry.
    """
    answers = [*[reply("answer " * 900) for _ in range(4)], reply(SUMMARY)]
    with ChatServerThread(answers, key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=COWORK, opts={"context_window": 9_000})
        for number in range(4):
            chat.say(f"question {number}")
        chat.nvim.command("CodeCompanionCompact!")
        chat.nvim.wait_for(lambda: "keep it small" in chat.text(), "the summary")
        chat_id = chat.id
        kinds = [one.raw["checkpointKind"] for one in stored(chat, chat_id) if one.raw and "checkpointKind" in one.raw]
        assert "pre_compaction" in kinds
        chat.nvim.wait_for(lambda: list(state_dir(chat).rglob("daily/*/*.md")), "the daily log")
        chat.send("/memory")
        chat.nvim.wait_screen(r"compaction · question 0")
        assert "compaction · Daily log" in chat.nvim.screen()
        chat.nvim.feed("/· question 0<CR>")
        chat.nvim.feed("<CR>")
        chat.nvim.wait_lua("return vim.api.nvim_buf_get_name(0):match('memories/projects/.*/summaries/.*%.md$') ~= nil")
        assert "keep it small" in "\n".join(chat.nvim.lines())
        chat.nvim.wait_for(lambda: not any(state_dir(chat).rglob("*.new")), "no drafts left behind")


def test_an_unusable_state_folder_costs_one_sentence(nvim_factory, tmp_path):
    """R-472: the chat works as usual."""
    with ChatServerThread([reply("first answer"), silence()], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, opened=False)
        folder = state_dir(chat)
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.write_text("a file where the folder should be")
        chat.open()
        chat.say("question one")
        assert "first answer" in chat.text()
        chat.nvim.wait_for(
            lambda: "Checkpoint not written" in chat.text() + chat.nvim.lua("return vim.fn.execute('messages')"),
            "the sentence",
        )
