"""One event, one story: the whole screen after every way an action can end.

A scene plays an action with the real host and a scripted provider. The plugin's lines on the screen are the story: the
event, the kept messages, the remedy. They are compared line by line, and `disagreements` checks every screen in the
same way: no sentence appears twice, none in the command line is also in the buffer, and none is shown next to a
contradicting one.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from real_chat import KEY, RealChat, start_chat
from tests.providers.chat.answers import Answer, Call, plain, reply, silence
from tests.providers.chat.thread import ChatServerThread
from tests.summaries import nine_sections

ALL_TOOLS = {"default_tools": ["full"]}
"""Offers all tools, even in a small window, which offers fewer by default."""
SIZE = (290, 60)
"""Wide enough that no sentence wraps."""
LONG = "Answer. " * 300
SPEAKS = re.compile(r"[!·✗✂▸▎⊘] |undone · ")
"""Pattern for the beginning of the plugin's lines; questions and replies of the scenes do not match it."""
PART_OF_CARD = re.compile(r"▸ \d\. |▸ \d+ sections")
OPPOSITES = (
    (r"Nothing was (changed|compacted)", r"▎ Summary"),
    (r"Compaction failed", r"written without a model"),
    (r"is paused", r"no longer paused"),
    (r"is paused", r"▎ Summary"),
)
"""Pairs of patterns of which only one may match a screen."""


def spoken(screen: str) -> list[str]:
    """Return the plugin's lines on a screen, with figures replaced by N; a card is represented by its title."""
    lines = [line for line in screen.split("\n")[:-1] if SPEAKS.match(line) and not PART_OF_CARD.match(line)]
    return [figures(" ".join(line.split())) for line in lines]


def figures(text: str) -> str:
    """Return the text with N for every figure."""
    return re.sub(r"\d(?:[\d.,]*\d)?k?", "N", text)


def disagreements(screen: str, told: str) -> list[str]:
    """Return the errors on a screen and in the message below it that do not depend on the scene."""
    wrong = [f"{one} beside {other}" for one, other in OPPOSITES if re.search(one, screen) and re.search(other, screen)]
    lines = [line for line in screen.split("\n") if re.match("[!·✗] ", line)]
    said = [part.strip(" .") for line in lines for part in re.split(r"(?<=[.?!])\s| · |\s{3,}", line[2:])]
    sentences = [part for part in said if len(part) > 12]
    wrong += sorted({f"twice: {one}" for one in sentences if sentences.count(one) > 1})
    wrong += [f"also on the command line: {one}" for one in sentences if one in told]
    parts = [part for part in re.split(r" · |\s{2,}", screen.rstrip().split("\n")[-1].strip()) if part]
    return wrong + sorted({f"twice in the bar: {part}" for part in parts if parts.count(part) > 1})


class Provider:
    """Answers summary requests from one list and all others from a second; the last entry of each list repeats."""

    def __init__(self, replies: Sequence[Callable[[], Answer]], summaries: Sequence[Callable[[], Answer]]) -> None:
        self.replies, self.summaries = list(replies), list(summaries)

    def __call__(self, request: Any) -> Answer:
        """Return the answer for a request."""
        asks_summary = "nine headings" in str(request.json["messages"][0]["content"])[:3000]
        waiting = self.summaries if asks_summary else self.replies
        return (waiting.pop(0) if len(waiting) > 1 else waiting[0])()


def refusal(status: int, message: str, **headers: str) -> Callable[[], Answer]:
    body = json.dumps({"error": {"message": message}}).encode()
    return lambda: plain(body, status=status, headers=headers, content_type="application/json")


def says(text: str) -> Callable[[], Answer]:
    return lambda: reply(text, chunk_chars=400)


def calls(*made: Call) -> Callable[[], Answer]:
    return lambda: reply(calls=list(made))


def shell(command: str) -> Call:
    return Call("run_command", json.dumps({"command": command}), id="call_1")


FINE = says("Fine answer.")
FILLS = says(LONG)
GOOD = says(nine_sections("THE SUMMARY"))
BAD = says("I am sorry, I cannot do that.")
BROKEN = refusal(500, "boom")
REFUSED = refusal(400, "Unsupported value: temperature")
OVERFLOW = refusal(400, "the maximum context length is 16000 tokens.")
LIMITED = refusal(429, "slow down", **{"retry-after": "0"})


def reads(number: int) -> Callable[[], Answer]:
    return calls(Call("read_file", json.dumps({"path": "big.txt", "start_line": number}), id=f"call_{number}"))


READS = (reads(1), FINE, reads(2), FINE, reads(3), FINE)


def slow() -> Answer:
    return reply("word " * 400, chunk_chars=5, delay_s=0.05)


def half() -> Answer:
    return reply("half an answer of it", break_after=4)


# ---- what the user does


def talks(times: int) -> Callable[[RealChat], None]:
    return lambda chat: talk(chat, times)


def talk(chat: RealChat, times: int = 3) -> None:
    for number in range(times):
        chat.say(f"question {number}")


def compact(chat: RealChat) -> None:
    ended = chat.nvim.lua("return _G.cc_compactions")
    chat.nvim.command("CodeCompanionCompact!")
    chat.nvim.wait_for(lambda: chat.nvim.lua("return _G.cc_compactions") > ended, "the end of the compaction")
    chat.wait_state("idle")


COUNT_COMPACTIONS = """
_G.cc_compactions = 0
vim.api.nvim_create_autocmd("User", {
  pattern = { "CodeCompanionChatCompacted", "CodeCompanionChatCompactFailed" },
  callback = function() _G.cc_compactions = _G.cc_compactions + 1 end,
})
"""


def press(chat: RealChat, keys: str, shown: str) -> None:
    chat.nvim.settle()
    chat.nvim.feed(keys)
    chat.nvim.wait_screen(shown)
    chat.wait_state("idle")


def resume(chat: RealChat, shown: str) -> None:
    """Close the chat and reopen it from the log."""
    chat_id = chat.id
    chat.nvim.command("bwipeout!")
    chat.nvim.settle()
    chat.nvim.lua("require('codecompanion').resume(...)", chat_id)
    chat.wait_ready()
    chat.nvim.wait_screen(shown)


def stop_while(chat: RealChat, state: str, shown: str) -> None:
    chat.wait_state(state)
    chat.nvim.wait_screen(shown)
    press(chat, "q", r"Stopped\.|Compaction stopped")


def manual(chat: RealChat) -> None:
    talk(chat)
    compact(chat)


def manual_and_more(chat: RealChat) -> None:
    manual(chat)
    talk(chat)
    compact(chat)


def manual_twice(chat: RealChat) -> None:
    manual(chat)
    compact(chat)


def manual_stopped(chat: RealChat) -> None:
    talk(chat)
    chat.nvim.command("CodeCompanionCompact!")
    stop_while(chat, "compacting", "compacting")


def nothing_to_compact(chat: RealChat) -> None:
    chat.nvim.command("CodeCompanionCompact!")
    chat.nvim.wait_screen("Nothing was compacted")


def undone(chat: RealChat) -> None:
    manual(chat)
    press(chat, ":CodeCompanionUndo<CR>", "Undone|undone;")


def redone(chat: RealChat) -> None:
    undone(chat)
    press(chat, ":CodeCompanionRedo<CR>", "Redone")


def asks(chat: RealChat) -> None:
    chat.say("question")


def asks_again(chat: RealChat) -> None:
    chat.say("question")
    chat.wait_state("idle")
    press(chat, "gr", "Fine answer")


def pauses_then_compacts(chat: RealChat) -> None:
    talk(chat, 7)
    compact(chat)


def waits_and_goes_on(chat: RealChat) -> None:
    talk(chat, 5)
    ended = chat.finished()
    chat.send("/continue")
    chat.nvim.wait_for(lambda: chat.finished() > ended, "the end of the answer")


def resumed_and_answered(chat: RealChat) -> None:
    chat.say("question")
    resume(chat, "gr retries")
    press(chat, "gr", "Fine answer")


def reads_twice(chat: RealChat) -> None:
    (chat.root / "work" / "big.txt").write_text("a line of a long file\n" * 300)
    talk(chat, 3)
    chat.nvim.wait_screen("✂")


def reads_and_undoes(chat: RealChat) -> None:
    reads_twice(chat)
    press(chat, ":CodeCompanionUndo<CR>", "Undone|undone;")


def asks_again_and_fails(chat: RealChat) -> None:
    chat.say("question")
    ended = chat.finished()
    chat.nvim.settle()
    chat.nvim.feed("gr")
    chat.nvim.wait_for(lambda: chat.finished() > ended, "the second end")


def another_question(chat: RealChat) -> None:
    chat.say("question")
    chat.say("another question")


def continues(chat: RealChat) -> None:
    chat.say("question")
    chat.send("/continue")
    chat.nvim.wait_screen("Fine answer")
    chat.wait_state("idle")


def stopped(chat: RealChat) -> None:
    chat.send("question")
    stop_while(chat, "streaming", "word word")


def stopped_and_asked_again(chat: RealChat) -> None:
    stopped(chat)
    press(chat, "gr", "Fine answer")


def answered_after_resume(chat: RealChat) -> None:
    asks_again(chat)
    resume(chat, "Fine answer")


def killed(chat: RealChat) -> None:
    chat.send("question")
    chat.nvim.wait_screen("word word")
    os.kill(chat.host_pid(), signal.SIGKILL)
    chat.nvim.wait_screen("The Python process ended")


def rejects(reason: str) -> Callable[[RealChat], None]:
    def play(chat: RealChat) -> None:
        chat.send("question")
        chat.nvim.wait_lua("return #require('codecompanion.chat').current().approvals > 0")
        chat.nvim.lua(
            """local chat, reason = require('codecompanion.chat').current(), ...
               require('codecompanion.host').notify('approve', {
                 chat = chat.id, call_id = chat.approvals[1].call_id, decision = 'reject', reason = reason,
               })""",
            reason,
        )
        chat.nvim.wait_screen("Fine answer")
        chat.wait_state("idle")

    return play


def call_stopped(chat: RealChat) -> None:
    chat.send("question")
    stop_while(chat, "running_tools", "running run_command")


def smaller_window(chat: RealChat) -> None:
    talk(chat, 4)
    chat.nvim.lua(
        """local chat = require('codecompanion.chat').current()
           require('codecompanion.chat.state.session').notify(chat, 'set_model', { adapter = 'small', model = '' })"""
    )
    chat.nvim.wait_lua("return vim.b.codecompanion_chat.adapter == 'small'")
    chat.say("another question")


def fetch_refused(chat: RealChat) -> None:
    chat.send("/fetch http://127.0.0.1:1/")
    chat.nvim.wait_screen("is not fetched")


@dataclass(frozen=True)
class Scene:
    """An action, the provider's response, and the expected story on the screen."""

    name: str
    play: Callable[[RealChat], None]
    story: tuple[str, ...]
    told: str = ""
    """The final text of the command line."""
    replies: tuple[Callable[[], Answer], ...] = (FILLS,)
    summaries: tuple[Callable[[], Answer], ...] = (GOOD,)
    trigger: int | bool = False
    editing: int | bool = False
    window: int = 128_000
    on_compact: str = "auto"
    retries: int = 0
    savings: int = 100
    asks_before: bool = False
    tool_timeout: int = 60_000


CARD = "▎ Summary · N messages · N → N u undo · K details"
OLD = "▸ your messages N–N · N messages summarised"
PAUSED = "! Automatic compaction is paused after N tries. It retries with increasing delays; /compact still works."
FAILED = "! Compaction failed: loop: the provider failed (N). The provider says: boom. Nothing was changed."
NO_MODEL = (
    "! The summary was written without a model: loop: the provider refused the request (N)."
    " The provider says: Unsupported value: temperature."
)
NOT_TAKEN = (
    "✗ loop: the provider refused the request (N). The provider says: Unsupported value: temperature. · gr retries"
)
CUT_OFF = "✗ loop: the connection was lost. The partial reply is kept; /continue continues it. · gr retries"
CLEARED = "▸ ✓ read_file big.txt N- · cleared"
READ = "▸ ✓ read_file big.txt N- · N lines"
EDITED = "✂ N tool result cleared · N → N tokens"
SMALL: dict[str, Any] = {"trigger": 5000, "window": 16_000}

SCENES = [
    # ---- /compact
    Scene("compacted", manual, (OLD, CARD)),
    Scene("summary refused", manual, (OLD, CARD, NO_MODEL), summaries=(REFUSED,)),
    Scene(
        "summary malformed",
        manual,
        (
            "! Compaction failed: the summariser refused, asked a question or returned an error instead of a summary."
            " Nothing was changed.",
        ),
        summaries=(BAD,),
    ),
    Scene("summariser fails", manual, (FAILED,), summaries=(BROKEN,)),
    Scene(
        "summariser silent",
        manual,
        ("! Compaction failed: test-model did not answer within N s. Nothing was changed.",),
        summaries=(silence,),
    ),
    Scene("compaction stopped", manual_stopped, ("· Compaction stopped. Nothing was changed.",), summaries=(silence,)),
    Scene("nothing to compact", nothing_to_compact, ("· Nothing was compacted: nothing to summarise yet.",)),
    Scene("summary fails, then succeeds", manual_twice, (OLD, CARD), summaries=(BROKEN, GOOD)),
    Scene("summary refused, then accepted", manual_and_more, (OLD, CARD), summaries=(REFUSED, GOOD)),
    Scene("summary fails twice", manual_twice, (FAILED,), summaries=(BROKEN, BROKEN, GOOD)),
    Scene(
        "compaction undone",
        undone,
        ("▸ undone · <C-r> redo · Summary · N messages · N → N",),
        told="Compaction undone; N messages are back.",
    ),
    Scene("compaction redone", redone, (OLD, CARD), told="Redone: N messages compacted (cycles N to N)."),
    # ---- compaction before a request
    Scene("compacts by itself", talks(5), (OLD, CARD), **SMALL),
    Scene(
        "summary refused by itself",
        talks(5),
        (FAILED.replace("failed (N)", "refused the request (N)").replace("boom", "Unsupported value: temperature"),),
        summaries=(REFUSED,),
        **SMALL,
    ),
    Scene(
        "compacts and waits",
        talks(5),
        (OLD, CARD, '! Waiting for you (on_compact = "stop"). /continue lets the model answer.'),
        on_compact="stop",
        **SMALL,
    ),
    Scene("compacts, waits, goes on", waits_and_goes_on, (OLD, CARD), on_compact="stop", **SMALL),
    Scene("cannot compact", talks(5), (FAILED,), summaries=(BROKEN,), **SMALL),
    Scene("cannot compact twice", talks(6), (FAILED,), summaries=(BROKEN,), **SMALL),
    Scene("cannot compact thrice", talks(7), (FAILED, PAUSED), summaries=(BROKEN,), **SMALL),
    Scene(
        "paused, then compacted", pauses_then_compacts, (OLD, CARD), summaries=(BROKEN, BROKEN, BROKEN, GOOD), **SMALL
    ),
    Scene(
        "gain too small",
        talks(5),
        (PAUSED.replace("tries.", "tries: compacting would free N tokens; the minimum is N."),),
        savings=100_000,
        trigger=3200,
        window=16_000,
    ),
    Scene(
        "overflow of a short chat",
        asks,
        (
            "✗ loop: the request is too long for the model (N). The provider says: the maximum context length is N"
            " tokens. Nothing more can be removed: system prompt and tools take N. Offer fewer tools (/tools), or"
            " choose a model with a larger window (ga). · gr retries",
        ),
        replies=(OVERFLOW, FINE),
        window=16_000,
    ),
    Scene(
        "overflow with compaction off",
        talks(4),
        (
            "✗ loop: the request is too long for the model (N). The provider says: the maximum context length is N"
            " tokens. The chat takes N. Automatic compaction is off: /compact makes room. · gr retries",
        ),
        replies=(FILLS, FILLS, FILLS, OVERFLOW, FINE),
        window=16_000,
    ),
    Scene(
        "overflow", talks(4), (OLD, CARD), replies=(FILLS, FILLS, FILLS, OVERFLOW, FINE), window=16_000, trigger=15_000
    ),
    Scene(
        "overflow without a summary",
        talks(4),
        (
            OLD,
            CARD,
            "! The summary was written without a model: loop: the provider failed (N). The provider says: boom.",
        ),
        replies=(FILLS, FILLS, FILLS, OVERFLOW, FINE),
        summaries=(BROKEN,),
        window=16_000,
        trigger=15_000,
    ),
    Scene("smaller window", smaller_window, (OLD, CARD), replies=(FILLS, FILLS, FILLS, FILLS, FINE), trigger=100_000),
    Scene(
        "smaller window without a summary",
        smaller_window,
        (OLD, CARD),
        replies=(FILLS, FILLS, FILLS, FILLS, FINE),
        summaries=(BROKEN,),
        trigger=100_000,
    ),
    Scene(
        "results cleared",
        reads_twice,
        (CLEARED, EDITED, CLEARED, f"{EDITED} · u undo", READ),
        replies=READS,
        editing=2000,
    ),
    Scene(
        "results cleared, undone",
        reads_and_undoes,
        (
            CLEARED,
            f"{EDITED} · u undo",
            READ,
            f"undone · <C-r> redo · {EDITED}",
            READ,
            "· Editing and compaction are paused until you /compact, redo or choose a policy.",
        ),
        told="Undone: N tool result restored.",
        replies=READS,
        editing=2000,
    ),
    # ---- sending
    Scene("refused", asks, (NOT_TAKEN,), replies=(REFUSED,)),
    Scene("refused, asked again", asks_again, (), replies=(REFUSED, FINE)),
    Scene("refused, asked again, refused", asks_again_and_fails, (NOT_TAKEN,), replies=(REFUSED,)),
    Scene(
        "refused, another question",
        another_question,
        (NOT_TAKEN.removesuffix(" · gr retries"),),
        replies=(REFUSED, FINE),
    ),
    Scene("refused, answered, resumed", answered_after_resume, (), replies=(REFUSED, FINE)),
    Scene("refused, resumed, answered", resumed_and_answered, (), replies=(REFUSED, FINE)),
    Scene("rate limit", asks, (), replies=(LIMITED, FINE), retries=2),
    Scene(
        "rate limit to the end",
        asks,
        ("✗ loop: too many requests (N). The provider says: slow down. · gr retries",),
        replies=(LIMITED,),
        retries=1,
    ),
    Scene("dropped", asks, (CUT_OFF,), replies=(half,)),
    Scene("dropped, continued", continues, ("· Asked the model to continue its reply.",), replies=(half, FINE)),
    Scene("stopped", stopped, ("· Stopped. · gr retries",), replies=(slow,)),
    Scene(
        "stopped, asked again",
        stopped_and_asked_again,
        ("▸ replaced by a new reply · u undo · K original · N lines",),
        replies=(slow, FINE),
    ),
    Scene(
        "host killed",
        killed,
        ("! The Python process ended (status N). The reply was interrupted. · gr retries",),
        replies=(slow,),
    ),
    Scene(
        "page not fetched",
        fetch_refused,
        ("! N is not fetched: it is this machine itself (N). Save the page and attach it with /file.",),
    ),
    # ---- tools
    Scene(
        "call rejected",
        rejects("not now"),
        ("▸ ⊘ run_command npm test · rejected: not now",),
        replies=(calls(shell("npm test")), FINE),
        asks_before=True,
    ),
    Scene(
        "call rejected without a reason",
        rejects(""),
        ("▸ ⊘ run_command npm test · rejected",),
        replies=(calls(shell("npm test")), FINE),
        asks_before=True,
    ),
    Scene(
        "call failed",
        asks,
        ("▸ ✗ read_file no.txt · failed: There is no file. file_search finds files by name",),
        replies=(calls(Call("read_file", '{"path": "no.txt"}', id="c")), FINE),
    ),
    Scene(
        "call stopped",
        call_stopped,
        ("▸ ⊘ run_command sleep N · cancelled", "· Stopped. · gr retries"),
        replies=(calls(shell("sleep 100")), FINE),
    ),
    Scene(
        "call timed out",
        asks,
        ("▸ ✗ run_command sleep N · failed: stopped after N s · N lines",),
        replies=(calls(shell("sleep 100")), FINE),
        tool_timeout=1000,
    ),
]


@pytest.mark.slow("48 stories in a real Neovim")
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_the_screen_tells_one_consistent_story(nvim_factory, tmp_path, scene):
    command = {"require_approval_before": scene.asks_before, "timeout": scene.tool_timeout}
    managed = {
        "editing": {"trigger": scene.editing, "keep_cycles": 1},
        "compaction": {"trigger": scene.trigger, "min_token_savings": scene.savings},
    }
    opts = {"context_management": managed, "on_compact": scene.on_compact, "compaction_timeout": 2000}
    with ChatServerThread(key=KEY, default=Provider(scene.replies, scene.summaries)) as server:
        small = {
            "extends": "openai_compatible",
            "env": {"url": server.url.removesuffix("/v1"), "api_key": "LOOP_KEY"},
            "schema": {"model": {"default": "test-model"}},
            "opts": {"context_window": 5000, "max_retries": 0, "alternate_roles": False},
        }
        chat = start_chat(
            nvim_factory,
            tmp_path,
            server,
            options={
                "interactions": {
                    "chat": {"tools": {"run_command": {"opts": command}, "opts": ALL_TOOLS}, "opts": opts}
                },
                "adapters": {"http": {"small": small}},
            },
            opts={"max_retries": scene.retries, "context_window": scene.window},
            size=SIZE,
        )
        chat.nvim.lua(COUNT_COMPACTIONS)
        scene.play(chat)
        chat.nvim.settle()
        screen = chat.nvim.screen()
        last = screen.rstrip("\n").split("\n")[-1]
        told = last.removeprefix("codecompanion: ") if last in chat.nvim.messages() else ""
        assert spoken(screen) == list(scene.story), screen
        assert figures(told) == scene.told, screen
        assert disagreements(screen, told) == [], screen


SEEN = """\
## CodeCompanion (Loop · test-model)
! Compaction failed: loop: refused. Nothing was changed.
· Nothing was compacted: there is nothing to clear.
· Nothing was compacted: there is nothing to clear.
▎ Summary · 6 messages · 17.3k → 2.7k          u undo · K details
 offline · offline · 4 %                                        All
"""


def test_a_contradictory_screen_is_detected() -> None:
    """The screen from the bug report has a failure next to a card, a sentence twice, and a name twice in the bar."""
    told = "codecompanion: Compaction failed: loop: refused."
    assert disagreements(SEEN, told) == [
        "Nothing was (changed|compacted) beside ▎ Summary",
        "twice: Nothing was compacted: there is nothing to clear",
        "also on the command line: Compaction failed: loop: refused",
        "twice in the bar: offline",
    ]
