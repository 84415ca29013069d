"""`:CodeCompanion commit`: from the staged changes into the commit buffer, above the comments, as one undo step."""

from __future__ import annotations

import os
import subprocess

import pytest

from real_chat import KEY, start_chat
from tests.providers.chat.answers import failure, reply, silence
from tests.providers.chat.thread import ChatServerThread

MESSAGE = "feat(list): keep the order\n\nTwo lists were joined by a set, which forgets it."
TEMPLATE = "\n# Please enter the commit message for your changes.\n# Changes to be committed:\n#\tmodified:   a.txt\n"


def git(folder, *arguments):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    who = ("-c", "user.name=x", "-c", "user.email=x@y", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *who, *arguments], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


def start(nvim_factory, tmp_path, server, *, staged=True, opts=None, options=None, **more):
    chat = start_chat(
        nvim_factory, tmp_path, server, opened=False, files=[("a.txt", "one\n")], opts=opts, options=options, **more
    )
    work = tmp_path / "work"
    git(work, "init", "-q")
    git(work, "add", "a.txt")
    git(work, "commit", "-q", "-m", "fix(list): no crash on an empty one")
    (work / "a.txt").write_text("one\ntwo\n")
    if staged:
        git(work, "add", "a.txt")
    (work / "b.txt").write_text("not staged\n")
    (work / ".git" / "COMMIT_EDITMSG").write_text(TEMPLATE)
    return chat.nvim


def asked(server, index=-1):
    request = [r.json for r in server.requests if r.path.endswith("/chat/completions")][index]
    assert "tools" not in request
    assert request["messages"][0]["content"].startswith("You write a git commit message")
    return request["messages"][-1]["content"]


def test_the_message_is_above_the_comments_and_one_undo_removes_it(nvim_factory, tmp_path):
    """The request has the staged diff and the style; after one `u` the buffer is as git left it."""
    with ChatServerThread([reply(f"```\n{MESSAGE}\n```")], key=KEY) as server:
        nvim = start(nvim_factory, tmp_path, server)
        nvim.command("edit .git/COMMIT_EDITMSG")
        before = nvim.lines()
        nvim.command("CodeCompanion commit")
        nvim.wait_lua("return vim.api.nvim_buf_get_lines(0, 0, 1, false)[1] == 'feat(list): keep the order'")
        assert nvim.lines() == [*MESSAGE.split("\n"), "", *before[1:]]
        text = asked(server)
        assert "fix(list): no crash on an empty one" in text
        assert "+two" in text
        assert "not staged" not in text
        nvim.feed("u")
        assert nvim.lines() == before
        nvim.feed("<C-r>")
        nvim.command("write")
        git(tmp_path / "work", "commit", "-q", "-F", ".git/COMMIT_EDITMSG", "--cleanup=strip")
        assert git(tmp_path / "work", "log", "-1", "--format=%B").strip() == MESSAGE


def test_typed_text_stays_also_text_typed_in_the_meantime(nvim_factory, tmp_path):
    """The model sees the existing text, its message is inserted below it, and typing continues in insert mode."""
    with ChatServerThread([reply("Because of the order.")], key=KEY) as server:
        nvim = start(nvim_factory, tmp_path, server)
        nvim.command("edit .git/COMMIT_EDITMSG")
        nvim.feed("iMy own subject")
        nvim.lua("require('codecompanion.headless.commit_message').run()")
        nvim.feed(", and more")
        nvim.wait_lua("return vim.tbl_contains(vim.api.nvim_buf_get_lines(0, 0, -1, false), 'Because of the order.')")
        assert nvim.lines()[:4] == ["My own subject, and more", "", "Because of the order.", ""]
        assert "The user has started the message with this" in asked(server)
        assert "My own subject" in asked(server)
        nvim.feed("<Esc>u")
        assert nvim.lines()[:2] == ["My own subject, and more", "# Please enter the commit message for your changes."]


def test_the_text_of_a_key_file_is_not_sent(nvim_factory, tmp_path):
    """The omission is reported and the model sees only the file's name.

    This includes files that had such a name before (R-266).
    """
    with ChatServerThread([reply(MESSAGE)], key=KEY) as server:
        nvim = start(nvim_factory, tmp_path, server)
        (tmp_path / "work" / ".env").write_text("KEY=planted\n")
        git(tmp_path / "work", "add", "-f", ".env")
        nvim.command("edit .git/COMMIT_EDITMSG")
        nvim.command("CodeCompanion commit")
        nvim.wait_lua("return vim.api.nvim_buf_get_lines(0, 0, 1, false)[1] == 'feat(list): keep the order'")
        text = asked(server)
        assert "+two" in text
        assert "a/.env" in text
        assert "planted" not in text
        assert ".env is staged and may contain keys or passwords" in nvim.messages()


def test_without_a_commit_buffer_the_message_is_shown(nvim_factory, tmp_path):
    """It is shown in its own window, which is not connected to a file."""
    with ChatServerThread([reply(MESSAGE)], key=KEY) as server:
        nvim = start(nvim_factory, tmp_path, server)
        nvim.command("edit a.txt")
        nvim.command("CodeCompanion commit")
        nvim.wait_lua("return vim.bo.filetype == 'gitcommit'")
        assert nvim.lines() == MESSAGE.split("\n")
        assert nvim.lua("return vim.bo.buftype") == "nofile"
        assert git(tmp_path / "work", "log", "--format=%s").strip() == "fix(list): no crash on an empty one"


def test_a_closed_commit_buffer_loses_nothing(nvim_factory, tmp_path):
    """If the buffer is closed before the answer arrives, a window shows the message."""
    with ChatServerThread([reply(MESSAGE)], key=KEY) as server:
        nvim = start(nvim_factory, tmp_path, server)
        nvim.command("edit .git/COMMIT_EDITMSG")
        nvim.lua("require('codecompanion.headless.commit_message').run() vim.cmd('enew | bwipeout! #')")
        nvim.wait_lua("return vim.bo.filetype == 'gitcommit' and vim.bo.buftype == 'nofile'")


@pytest.mark.parametrize("answer", [failure(500, "down"), silence(), reply("  \n")])
def test_a_failure_leaves_the_buffer_as_it_was(nvim_factory, tmp_path, answer):
    """An error, a missing answer and an empty answer are each reported in one sentence."""
    with ChatServerThread([answer] * 5, key=KEY) as server:
        options = {"interactions": {"commit": {"timeout": 2000}}}
        nvim = start(nvim_factory, tmp_path, server, options=options, opts={"max_retries": 0})
        nvim.command("edit .git/COMMIT_EDITMSG")
        before = nvim.lines()
        nvim.command("CodeCompanion commit")
        nvim.wait_for(
            lambda: any(said in nvim.messages() for said in ("down", "did not answer within 2 s", "reply was empty")),
            "one sentence",
        )
        nvim.settle()
        assert nvim.lines() == before
        assert not nvim.lua("return vim.bo.modified")


def test_nothing_staged_and_no_repository_are_reported(nvim_factory, tmp_path):
    """No request is made."""
    with ChatServerThread([], key=KEY) as server:
        nvim = start(nvim_factory, tmp_path, server, staged=False)
        nvim.command("CodeCompanion commit")
        nvim.wait_for(lambda: "Nothing is staged" in nvim.messages(), "the word")
        nvim.lua("vim.fn.mkdir('/tmp/cc-no-repo', 'p') vim.cmd.cd('/tmp/cc-no-repo')")
        nvim.command("CodeCompanion commit")
        nvim.wait_for(lambda: "No commit message: " in nvim.messages(), "git's word")
        assert server.requests == []


def test_a_large_diff_is_truncated_with_a_note_and_small_files_stay_whole(nvim_factory, tmp_path):
    """A model with a window of 4,000 tokens receives a request that fits."""
    with ChatServerThread([reply("chore: much")], key=KEY) as server:
        nvim = start(nvim_factory, tmp_path, server, opts={"context_window": 4000})
        work = tmp_path / "work"
        (work / "big.txt").write_text("".join(f"a long line number {i} of a file\n" for i in range(5000)))
        git(work, "add", "big.txt")
        nvim.command("edit .git/COMMIT_EDITMSG")
        nvim.command("CodeCompanion commit")
        nvim.wait_lua("return vim.api.nvim_buf_get_lines(0, 0, 1, false)[1] == 'chore: much'")
        text = asked(server)
        assert len(text) < 9000
        assert "+two" in text
        assert "more lines of this file omitted]" in text
        assert "big.txt" in text
        assert "1 of 2 files were cut for the model" in nvim.messages()


def test_a_truncated_diff_keeps_the_beginning_of_every_file(nvim_factory, tmp_path):
    """For any file sizes, the budget is nearly used up and every file is named."""
    with ChatServerThread([], key=KEY) as server:
        nvim = start(nvim_factory, tmp_path, server)
        for sizes in ([], [1], [3, 4000], [2000, 2000, 2000], [1] * 300, [5, 9000, 40, 700], [30_000]):
            diff = "\n".join(
                f"diff --git a/f{number} b/f{number}\n" + "\n".join(f"+line {line}" for line in range(size))
                for number, size in enumerate(sizes)
            )
            text, cut, files = nvim.lua(
                "return { require('codecompanion.headless.staged_changes').cut(...) }", diff, 20_000
            )
            assert files == max(1, len(sizes))
            assert len(text) <= 20_000 + 100 * files
            assert all(f"diff --git a/f{number} " in text for number in range(len(sizes)))
            assert cut == text.count("more lines of this file omitted]")
            assert cut > 0 or text == diff


def test_a_dying_host_is_reported_and_changes_nothing(nvim_factory, tmp_path):
    """If the host is killed during the request, one sentence reports it and the buffer is unchanged."""
    with ChatServerThread([silence()], key=KEY) as server:
        nvim = start(nvim_factory, tmp_path, server)
        nvim.command("edit .git/COMMIT_EDITMSG")
        before = nvim.lines()
        nvim.command("CodeCompanion commit")
        nvim.wait_for(lambda: server.requests, "the request")
        nvim.command("CodeCompanion restart")
        nvim.wait_for(lambda: "The Python process is being restarted" in nvim.messages(), "the word")
        assert nvim.lines() == before


def test_an_unknown_adapter_is_reported(nvim_factory, tmp_path):
    """It is reported before anything is sent."""
    with ChatServerThread([], key=KEY) as server:
        options = {"interactions": {"commit": {"adapter": "nowhere"}}}
        nvim = start(nvim_factory, tmp_path, server, options=options)
        nvim.command("CodeCompanion commit")
        nvim.wait_for(lambda: "nowhere" in nvim.messages(), "the word")
        nvim.command("CodeCompanion cancel")
        nvim.wait_for(lambda: "Nothing is running outside of chats" in nvim.messages(), "that it is over")


def test_two_messages_at_once_do_not_mix(nvim_factory, tmp_path):
    """A streaming chat continues, and each message is inserted into the buffer it was requested for."""

    def answer(received):
        is_commit = received.json["messages"][0]["content"].startswith("You write a git commit message")
        return reply("fix: one") if is_commit else reply("A long answer. " * 50)

    with ChatServerThread(key=KEY, default=answer) as server:
        nvim = start(nvim_factory, tmp_path, server)
        nvim.command("CodeCompanionChat what is this?")
        nvim.command("split .git/COMMIT_EDITMSG")
        nvim.command("CodeCompanion commit")
        nvim.wait_lua("return vim.tbl_contains(vim.api.nvim_buf_get_lines(0, 0, -1, false), 'fix: one')", timeout=30)


def test_review_attaches_the_chosen_changes(nvim_factory, tmp_path):
    """`/review` asks which changes to attach; staged and unstaged changes are distinguished."""
    with ChatServerThread(key=KEY, default=lambda received: reply("All is well.")) as server:
        nvim = start(nvim_factory, tmp_path, server)
        (tmp_path / "work" / "a.txt").write_text("one\ntwo\nthree\n")
        nvim.command("edit a.txt")
        nvim.command("CodeCompanion /review staged")
        nvim.wait_screen("All is well.")
        request = [r.json for r in server.requests if r.path.endswith("/chat/completions")][-1]
        text = "\n".join(str(message["content"]) for message in request["messages"][1:])
        assert "+two" in text
        assert "+three" not in text
        assert "Review these changes" in text
