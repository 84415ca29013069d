"""`sessions list|show|export` and `doctor`: the stored chats without Neovim (`:help codecompanion-cli`)."""

from __future__ import annotations

import json

import pytest

from codecompanion.context.policy.policy_catalog import policy_names
from codecompanion.model.history import (
    ChatCreated,
    Insertion,
    MessageAdded,
    TitleSet,
    TurnEnded,
    TurnStarted,
    ViewChanged,
)
from codecompanion.model.messages import Message, ToolCall
from codecompanion.store.opening import open_store
from tests.contract.command_line import run


@pytest.fixture
def data_dir(tmp_path):
    """Return a data folder whose store has one compacted chat and one short chat."""
    folder = tmp_path / "data"
    store = open_store(folder)
    call = ToolCall("c1", "read_file", '{"path": "a.py"}')
    summary = Message(id="s", role="user", tag="compact_summary", content="Below is a summary", cycle=1)
    messages = [
        Message(id="u", role="user", content="Why — ünïcode?", cycle=1),
        Message(id="a", role="assistant", content="Because.", tool_calls=(call,), cycle=1),
        Message(id="t", role="tool", tool_call_id="c1", content="text of a.py", cycle=1),
    ]
    change = ViewChanged(change_id="k", kind="compacted", removed=("u", "a", "t"), inserted=(Insertion(summary, "t"),))
    created = ChatCreated(adapter="openai", model="gpt-4o", policy="codecompanion", cwd="/work")
    added = [MessageAdded(message=message) for message in messages]
    turn = [TurnStarted(turn_id="1", cycle=1), *added, change, TurnEnded(turn_id="1", reason="done")]
    store.append("chat-abc", [created, TitleSet(title="Why — ünïcode?"), *turn]).result()
    store.append("chat-xyz", [created, MessageAdded(message=Message(id="o", role="user", content="other"))]).result()
    store.close()
    return str(folder)


def test_list_shows_the_chats_newest_first(data_dir):
    status, out, _ = run("sessions", "--data-dir", data_dir, "list")
    assert status == 0
    assert [line.split()[0] for line in out.splitlines()] == ["chat-xyz", "chat-abc"]
    assert "Why — ünïcode?" in out


def test_an_empty_list_is_reported(tmp_path):
    """The message is on stderr, because stdout contains only the answer; the exit status is 0."""
    open_store(tmp_path).close()
    status, out, err = run("sessions", "--data-dir", str(tmp_path), "list")
    assert (status, out, err) == (0, "", f"codecompanion: no chats in {tmp_path / 'sessions.db'}\n")
    (tmp_path / "transcripts").mkdir()
    status, out, err = run("sessions", "--data-dir", str(tmp_path), "restore", "--state-dir", str(tmp_path))
    assert (status, out, err) == (0, "", f"codecompanion: no checkpoints in {tmp_path}\n")


def test_list_as_json_has_one_object_per_line(data_dir):
    _, out, _ = run("sessions", "--data-dir", data_dir, "list", "--json", "--limit", "1")
    chat = json.loads(out)
    assert (chat["id"], chat["adapter"], chat["model"], chat["owned"]) == ("chat-xyz", "openai", "gpt-4o", False)


def test_export_returns_the_whole_history_in_the_transcript_format(data_dir):
    """R-003: compacted messages are still included; the export can be prepared again."""
    status, out, _ = run("sessions", "--data-dir", data_dir, "export", "chat-abc")
    messages = [json.loads(line) for line in out.splitlines()]
    assert status == 0
    assert [m["role"] for m in messages] == ["user", "assistant", "tool"]
    assert messages[1]["tool_calls"][0]["function"] == {"name": "read_file", "arguments": '{"path": "a.py"}'}
    status, again, _ = run("context", "--window", "1000", "-", stdin=out)
    assert status == 0
    assert json.loads(again)["messages"] == messages


def test_export_of_the_view_returns_the_models_input(data_dir):
    _, out, _ = run("sessions", "--data-dir", data_dir, "export", "--view", "chat-a")
    assert [json.loads(line)["meta"]["tag"] for line in out.splitlines()] == ["compact_summary"]


def test_show_prints_a_readable_chat(data_dir):
    _, out, _ = run("sessions", "--data-dir", data_dir, "show", "chat-abc")
    for expected in ("Why — ünïcode?", "> read_file", "text of a.py", "view_changed"):
        assert expected in out


def test_search_also_finds_words_in_compacted_messages(data_dir):
    status, out, err = run("sessions", "--data-dir", data_dir, "search", "text", "of")
    assert (status, err) == (0, "")
    assert out.startswith("chat-abc ")
    assert "«text» of a.py" in out
    nothing = (0, "", "codecompanion: nothing found for 'nowhere'\n")
    assert run("sessions", "--data-dir", data_dir, "search", "nowhere") == nothing


def test_search_as_json_keeps_to_the_chat_and_the_limit(data_dir):
    _, out, _ = run("sessions", "--data-dir", data_dir, "search", "--json", "--chat", "chat-x", "--limit", "1", "oth")
    hit = json.loads(out)
    assert (hit["chat_id"], hit["message_id"], hit["role"]) == ("chat-xyz", "o", "user")
    assert run("sessions", "--data-dir", data_dir, "search", "--chat", "chat-a", "oth")[1] == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("search", "?!"), "'?!' contains no searchable word"),
        (("search", "--chat", "nope", "x"), "no stored chat 'nope'"),
        (("search", "--limit", "0", "x"), "--limit 0"),
        (("show", "nope"), "no stored chat 'nope'"),
        (("export", "chat-"), "2 chat ids begin with 'chat-'"),
        (("list", "--limit", "0"), "--limit 0"),
    ],
)
def test_a_missing_chat_is_bad_input(data_dir, arguments, said):
    status, out, err = run("sessions", "--data-dir", data_dir, *arguments)
    assert (status, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1


def test_a_folder_without_a_store_is_bad_input_and_stays_empty(tmp_path):
    status, _, err = run("sessions", "--data-dir", str(tmp_path), "list")
    assert status == 2
    assert "sessions.db does not exist" in err
    assert list(tmp_path.iterdir()) == []


def test_the_data_folder_is_neovims_own(data_dir, tmp_path):
    home = tmp_path / "xdg" / "nvim"
    home.mkdir(parents=True)
    (home / "codecompanion").symlink_to(data_dir)
    status, out, _ = run("sessions", "list", XDG_DATA_HOME=str(tmp_path / "xdg"))
    assert status == 0
    assert "chat-abc" in out


def test_doctor_names_python_packages_and_history(tmp_path):
    status, out, _ = run("doctor", XDG_DATA_HOME=str(tmp_path))
    assert status == 0
    assert "FAIL" not in out
    for expected in ("python:", "httpx2:", "modules: all", "history:", f"policies: {', '.join(policy_names())}"):
        assert expected in out


def test_doctor_fails_if_the_history_cannot_be_used(tmp_path):
    folder = tmp_path / "nvim" / "codecompanion"
    (folder / "sessions.db").mkdir(parents=True)
    status, out, _ = run("doctor", XDG_DATA_HOME=str(tmp_path))
    assert status == 1
    assert "FAIL  history" in out


def test_rename_sets_another_title(data_dir):
    """A prefix of the id is enough; a blank title is refused."""
    status, out, _ = run("sessions", "--data-dir", data_dir, "rename", "chat-a", "The", "parser")
    assert (status, out.split()) == (0, ["chat-abc", "The", "parser"])
    _, listed, _ = run("sessions", "--data-dir", data_dir, "list")
    assert "The parser" in listed
    assert run("sessions", "--data-dir", data_dir, "rename", "chat-a", " ")[0] == 2


def test_delete_asks_for_yes_and_deletes_permanently(data_dir, tmp_path):
    """Without `--yes` or a terminal for the question, the exit status is 2 and nothing is deleted.

    The other chat is unchanged.
    """
    place = ("--state-dir", str(tmp_path / "state"))
    status, _, error = run("sessions", "--data-dir", data_dir, "delete", "chat-abc", *place)
    assert status == 2
    assert "--yes" in error
    status, out, _ = run("sessions", "--data-dir", data_dir, "delete", "chat-abc", "--yes", *place)
    assert status == 0
    assert out.startswith("deleted: chat-abc")
    _, listed, _ = run("sessions", "--data-dir", data_dir, "list")
    assert [line.split()[0] for line in listed.splitlines()] == ["chat-xyz"]
    assert run("sessions", "--data-dir", data_dir, "show", "chat-abc")[0] == 2
