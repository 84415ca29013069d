"""The whole stack under bad input: strange text, strange providers, impatient keys."""

from __future__ import annotations

import json
import os

import pytest

from codecompanion.model.invariants import violations
from real_chat import KEY, start_chat
from tests.providers.chat.answers import Answer, Call, plain, reply, silence
from tests.providers.chat.thread import ChatServerThread
from tests.providers.loopback.server import CERTIFICATE

UNASKED = {"interactions": {"chat": {"tools": {"run_command": {"opts": {"require_approval_before": False}}}}}}
STRANGE = "emoji 👩‍👩‍👧 🇩🇪, CJK 漢字かな, RTL שלום مرحبا, combining e\u0301 n\u0303, zero\u200bwidth \ufeffbom"


def sent(server, index=-1):
    """Return the messages of a request to the server."""
    return [r.json["messages"] for r in server.requests if r.path.endswith("/chat/completions")][index]


def bodies(server):
    """Return the last message of each request, in order."""
    return [r.json["messages"][-1]["content"] for r in server.requests if r.path.endswith("/chat/completions")]


def typed(chat):
    """Return the user's messages as stored."""
    return [m.text for m in chat.view().messages if m.role == "user" and not m.tag]


def chunk(delta, finish=None, **more):
    """Return one event with the given delta."""
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "test-model"}
    body["choices"] = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return b"data: " + json.dumps(body | more).encode() + b"\n\n"


def raw(*events):
    return Answer(parts=(*events, b"data: [DONE]\n\n"))


def test_every_script_reaches_the_model_and_the_buffer(nvim_factory, tmp_path):
    with ChatServerThread([reply(STRANGE + " back", chunk_chars=1)], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.say(STRANGE)
        assert sent(server)[-1]["content"] == STRANGE
        assert STRANGE + " back" in chat.text()
        assert chat.view().messages[-1].text == STRANGE + " back"


WRONG_SHAPES = [
    chunk({"content": "half \ud83d"}),
    chunk({"content": "nul \x00 esc \x1b[31m bell \x07 return \r end"}),
    b'data: {"choices":[{"index":0,"delta":{"content":"bad \xff\xfe bytes"}}]}\n\n',
    chunk({"content": 5}),
    chunk({"content": ["a", {"text": "b"}]}),
    chunk({"content": {"text": "b"}}),
    chunk({"tool_calls": "none"}),
    chunk({"tool_calls": [None]}),
    chunk({"tool_calls": [{"index": "x", "function": {"name": 3, "arguments": {}}}]}),
    chunk({"tool_calls": {"index": 0}}),
    chunk("text"),
    chunk({"content": "x"}, finish=7),
    chunk({"content": "x"}, usage="many"),
    chunk({"content": "x"}, usage={"prompt_tokens": "9", "completion_tokens": None, "total_tokens": -4}),
    chunk({"content": "x"}, usage={"prompt_tokens": 10**400, "completion_tokens": 1, "total_tokens": 1}),
    b'data: {"choices":"none"}\n\n',
    b'data: {"choices":[7]}\n\n',
    b"data: []\n\n",
    b"data: 3\n\n",
    b"data: null\n\n",
    b"data: " + b"[" * 100_000 + b"\n\n",
]
"""Events of which each appears once in the middle of a reply."""


@pytest.mark.slow("many broken replies")
@pytest.mark.parametrize("first", range(0, len(WRONG_SHAPES), 7))
def test_malformed_chunks_never_break_the_chat(nvim_factory, tmp_path, first):
    """Each chunk ends clearly without a traceback, and the next message works; a chat receives seven of them."""
    with ChatServerThread(key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, opts={"max_retries": 0})
        for number, event in enumerate(WRONG_SHAPES[first : first + 7]):
            begun, ended = chunk({"role": "assistant", "content": "start "}), chunk({"content": "end"})
            server.script = [raw(begun, event, ended, chunk({}, "stop")), reply(f"recovered {number}")]
            chat.say(f"go {number}")
            seen = f"{event[:200]!r}\n{chat.nvim.screen()}"
            assert "Traceback" not in seen
            assert "internal error" not in seen
            assert not chat.nvim.blocked(), seen
            assert chat.nvim.messages() == "", seen
            chat.say(f"again {number}")
            assert f"recovered {number}" in chat.text(), seen
            assert server.script == [], seen
            assert server.refusals == [], seen
            assert violations(chat.view().messages) == [], seen


@pytest.mark.slow("many tools in a real chat")
def test_odd_tool_results_are_shown_and_sent(nvim_factory, tmp_path):
    """Lesson 47: the results have invalid UTF-8, 5 MB of text, and a line of 2 MB."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "latin.txt").write_bytes(b"caf\xe9 \xff\xfe\n")
    (tmp_path / "work" / "big.txt").write_text("line of a big file\n" * 270_000)
    (tmp_path / "work" / "line.txt").write_text("x" * 2_000_000)
    shell = Call("run_command", json.dumps({"command": "printf 'a\\377b\\n'; head -c 5000000 /dev/urandom"}), id="c4")
    calls = [Call("read_file", json.dumps({"path": p}), id=f"c_{p}") for p in ("latin.txt", "big.txt", "line.txt")]
    with ChatServerThread([reply(calls=[*calls, shell]), reply("done")], key=KEY, window=0) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=UNASKED)
        chat.say("read")
        assert "done" in chat.text()
        results = [m["content"] for m in sent(server) if m["role"] == "tool"]
        assert len(results) == 4
        assert max(map(len, results)) < 100_000
        assert len(chat.text()) < 100_000
        assert server.refusals == []


def test_a_line_of_two_megabytes_streams_without_a_stall(nvim_factory, tmp_path):
    with ChatServerThread([reply("y" * 2_000_000, chunk_chars=20_000)], key=KEY, window=0) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.say("go")
        assert len(chat.view().messages[-1].text) == 2_000_000


@pytest.mark.slow("a hundred turns")
def test_a_hundred_queued_messages_are_each_sent_once_in_order(nvim_factory, tmp_path):
    """Lesson 16."""
    with ChatServerThread([reply("slow " * 200, chunk_chars=5, delay_s=0.03)], key=KEY, window=0) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.send("start")
        chat.nvim.wait_screen("slow")
        for number in range(100):
            chat.nvim.feed(f"Giq{number}<Esc><CR>")
        wanted = ["start", *(f"q{n}" for n in range(100))]
        # Neovim may still be at the keys when the first turn ends: the end is when the last message has arrived.
        chat.nvim.wait_for(lambda: typed(chat)[-1] == wanted[-1] and chat.state() == "idle", "the end")
        assert typed(chat) == wanted
        assert [m["content"] for m in sent(server) if m["role"] == "user"] == wanted


def test_stopping_returns_queued_messages_in_order(nvim_factory, tmp_path):
    with ChatServerThread([silence()], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.send("slow")
        chat.nvim.wait_screen("waiting for the model")
        for text in ("first queued", "second queued"):
            chat.send(text)
            chat.nvim.wait_screen(f"queued\\n{text}")
        chat.nvim.feed("q")
        chat.nvim.wait_for(lambda: chat.draft() == "first queued\n\nsecond queued", "both messages in the input")


def test_a_double_return_sends_once(nvim_factory, tmp_path):
    with ChatServerThread([reply("one answer")], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.type("hello")
        chat.nvim.feed("<CR><CR><CR>")
        chat.nvim.wait_screen("one answer")
        chat.wait_state("idle")
        assert typed(chat) == ["hello"]
        assert len(server.requests) == 1


@pytest.mark.slow("waits for a stop in every state")
@pytest.mark.parametrize("when", ["idle", "streaming", "running_tools", "awaiting_approval", "compacting", "retrying"])
def test_the_stop_key_works_in_every_state(nvim_factory, tmp_path, when):
    """Even if it is pressed repeatedly, the chat is soon idle and usable, with a valid history."""
    long = reply("word " * 400, chunk_chars=5, delay_s=0.02)
    tool = reply(calls=[Call("run_command", json.dumps({"command": "sleep 300"}), id="call_s")])
    limit = plain(b"{}", status=429, headers={"retry-after": "50"}, content_type="application/json")
    first = {"streaming": long, "compacting": reply("Answer. " * 300), "retrying": limit}.get(when, tool)
    script = [first] + ([silence()] if when == "compacting" else [])
    options = UNASKED if when == "running_tools" else {}
    with ChatServerThread(script, key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=options)
        if when == "compacting":
            chat.say("first")
            chat.nvim.command("CodeCompanionCompact!")
            chat.wait_state("compacting")
        elif when != "idle":
            chat.send("first")
            if when == "retrying":
                chat.nvim.wait_screen("(?i)retry|again in")
            else:
                chat.wait_state(when)
        chat.nvim.feed("<Esc>" + "q" * 60 + "<Esc>")
        chat.wait_state("idle")
        chat.nvim.settle()
        server.script[:] = [reply("fine again")]
        chat.say("next")
        assert "fine again" in chat.text()
        assert server.refusals == []
        assert violations(chat.view().messages) == []
        assert not chat.nvim.blocked()
        assert chat.nvim.messages() == ""


def test_a_buffer_can_be_wiped_during_a_stream(nvim_factory, tmp_path):
    with ChatServerThread([reply("word " * 400, chunk_chars=5, delay_s=0.02)], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server)
        chat.send("precious")
        chat.nvim.wait_screen("word")
        chat_id = chat.id
        chat.nvim.command("bwipeout!")
        chat.nvim.wait_for(chat.nvim.messages, "what became of the turn")
        assert chat.nvim.messages() == (
            "codecompanion: Chat closed, its turn stopped; :CodeCompanionChat Resume reopens it."
        )
        chat.nvim.lua("require('codecompanion').resume(...)", chat_id)
        chat.wait_ready()
        chat.nvim.wait_screen("precious")
        server.script[:] = [reply("fine again")]
        chat.say("next")
        assert "fine again" in chat.text()
        assert typed(chat) == ["precious", "next"]
        assert server.refusals == []


DRIP = Answer(parts=tuple(part for byte in chunk({"content": "drip"}) * 50 for part in (bytes([byte]), 1.0)))


SLOW = {
    "waits": (silence, "waiting for the model"),
    "breaks off in a line": (lambda: DRIP, "waiting for the model"),
    "breaks off between two words": (lambda: reply("word " * 400, chunk_chars=5, delay_s=0.2), "word word"),
}


def only_some_are_slow(request):
    """Return the answer chosen by the question, because a stopped request may never have reached the server."""
    asked = request.json["messages"][-1]["content"]
    return SLOW[asked][0]() if asked in SLOW else reply(f"fine: {asked}")


def stop_and_ask_on(chat, server, asked, begun):
    """Stop a slow reply, and check that its connection is dropped and the next answer arrives immediately."""
    ended = chat.finished()
    chat.send(asked)
    chat.nvim.wait_for(lambda: bodies(server)[-1:] == [asked], "the request at the server")
    chat.nvim.wait_screen(begun)
    slow = server.requests[-1]
    chat.nvim.feed("q")
    # The bug took as long as the slow reply, 40 s and more.
    chat.nvim.wait_for(lambda: chat.finished() == ended + 1, "the end")
    chat.say(f"after it {asked}")
    assert f"fine: after it {asked}" in chat.text()
    chat.nvim.wait_for(lambda: slow.aborted, "the first connection given up")


@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_a_slow_reply_is_stopped_and_the_next_arrives_at_once(nvim_factory, tmp_path, tls):
    """A slow provider has its own connection, and nothing waits for it."""
    trusted = {"SSL_CERT_FILE": str(CERTIFICATE)} if tls else {}
    with ChatServerThread(key=KEY, default=only_some_are_slow, tls=tls) as server:
        chat = start_chat(nvim_factory, tmp_path, server, env=trusted)
        for asked, (_, begun) in SLOW.items():
            stop_and_ask_on(chat, server, asked, begun)


def test_requests_stopped_before_sending_do_not_delay_the_next(nvim_factory, tmp_path):
    """Each leaves a waiting thread, here for a key command, elsewhere for a DNS lookup."""
    stored = tmp_path / "key"
    command = f"cmd:[ -e '{stored}' ] && exec cat '{stored}'; while kill -0 $PPID; do sleep 0.2; done"
    options = {"adapters": {"http": {"loop": {"env": {"api_key": command}}}}}
    with ChatServerThread(key=KEY, default=only_some_are_slow) as server:
        chat = start_chat(nvim_factory, tmp_path, server, options=options)
        for number in range(1, min(40, (os.cpu_count() or 1) + 6)):
            chat.send("waits")
            chat.wait_state("streaming")
            chat.nvim.feed("<Esc>q")
            chat.nvim.wait_for(lambda ended=number: chat.finished() == ended, "the end")
        assert server.requests == []
        stored.write_text(KEY)
        chat.send("next")
        chat.nvim.wait_screen("^fine: next")
        assert len(server.requests) == 1


@pytest.mark.slow("a gigabyte of answer")
def test_an_endless_stream_is_ended(nvim_factory, tmp_path):
    """Neither the memory nor the chat is affected."""
    endless = Answer(content_type="application/json", parts=(b'{"a": "', *((b"a" * 100_000,) * 10_000)))
    with ChatServerThread([endless, reply("fine")], key=KEY, window=0) as server:
        chat = start_chat(nvim_factory, tmp_path, server, opts={"max_retries": 0})
        chat.say("go")
        chat.nvim.wait_screen("larger than 16 MB")
        chat.say("next")
        assert "fine" in chat.text()


def test_a_redirect_is_one_sentence(nvim_factory, tmp_path):
    move = plain(b"", status=307, headers={"location": "http://127.0.0.1:9/elsewhere"})
    with ChatServerThread([move], key=KEY) as server:
        chat = start_chat(nvim_factory, tmp_path, server, opts={"max_retries": 0})
        chat.say("go")
        chat.nvim.wait_screen("(?i)redirect|307|moved")
