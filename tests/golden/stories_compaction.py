"""The context under each policy: editing, compaction, a summariser that fails, undo, and requests that are too long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.golden.desk import CHAT, Desk, story
from tests.providers.chat.answers import Call, failure, reply

WINDOW = 6_000
TITLES = {
    "cc_9": (
        *("Primary Request and Intent", "Key Technical Concepts", "Files and Code Sections", "Errors and Fixes"),
        *("Problem Solving", "All User Messages", "Pending Tasks", "Current Work", "Optional Next Step"),
    ),
    "cw_9": (
        *("Primary Request and Intent", "User Messages", "Work Completed", "Errors and Fixes"),
        *(
            "Key Technical Details",
            "Decisions Made",
            "Pending/Incomplete Work",
            "Current State",
            "Recommended Next Step",
        ),
    ),
}
FULL = failure(
    400,
    "This model's maximum context length is 4000 tokens. However, your messages resulted in 5000 tokens.",
    code="context_length_exceeded",
)


def summary(schema: str = "cc_9", text: str = "The user asks about parts of a.txt.") -> str:
    """Return a summary in nine sections, as a model writes it."""
    bodies = (text, "Words.", *["None"] * 7)
    titled = zip(TITLES[schema], bodies, strict=True)
    return "\n\n".join(f"{number}. **{title}**\n{body}" for number, (title, body) in enumerate(titled, 1))


def text_of_last(body: dict[str, Any]) -> str:
    """Return the text of the last message of a request."""
    return str(body["messages"][-1]["content"])


def is_summary(body: dict[str, Any]) -> bool:
    """Return whether a request asks for a summary."""
    return "tools" not in body and "summar" in text_of_last(body).lower()


def reading_model(summaries: Callable[[dict[str, Any]], Any], sentences: int = 1) -> Callable[[dict[str, Any]], Any]:
    """Return a model that reads the file for every question, and answers summary requests with `summaries`."""
    numbers = iter(range(1, 1_000))

    def answer(body: dict[str, Any]) -> Any:
        if is_summary(body):
            return summaries(body)
        if body["messages"][-1]["role"] == "tool":
            return reply("It says word, again and again. " * sentences, one_chunk=True)
        call = Call("read_file", '{"path": "a.txt"}', f"c{next(numbers)}")
        return reply("I read it.", calls=[call], one_chunk=True)

    return answer


async def fill(
    desk: Desk, turns: int, summaries: Callable[[dict[str, Any]], Any], sentences: int = 1, *, words: int = 900
) -> None:
    """Ask about a file of `words` words in each turn, and get answers of `sentences` sentences."""
    desk.write("a.txt", "word " * words)
    desk.model_by(reading_model(summaries, sentences))
    for number in range(1, turns + 1):
        await desk.say(
            f"Question {number}: what does part {number} say?" + (" Never change it." if number == 1 else "")
        )


async def look_back(desk: Desk) -> None:
    """Undo and redo the newest change of the context, and request the data kept beside the log."""
    await desk.chat("undo_change")
    await desk.chat("redo_change")
    await desk.chat("inspect")
    await desk.send("list_checkpoints", of=CHAT)


def good(schema: str = "cc_9") -> Callable[[dict[str, Any]], Any]:
    """Return a summariser that follows its prompt."""
    return lambda body: reply(summary(schema), one_chunk=True)


def rambling(body: dict[str, Any]) -> Any:
    """Answer a summary request with unrelated text."""
    return reply("I would rather talk about the weather.", one_chunk=True)


def refusing(body: dict[str, Any]) -> Any:
    """Refuse a request for a summary."""
    return failure(400, "Bad request.")


SHORT = {"chat": {"window": 4, "trigger_messages": 8, "refresh_messages": 6}}
LOW = {"compaction": {"min_token_savings": 500}}


@story(window=WINDOW, chat={"context_management": LOW})
async def policy_codecompanion(desk: Desk) -> None:
    """Old tool results are cleared, then the chat is summarised."""
    await fill(desk, 6, good(), 40)
    await look_back(desk)


@story(window=WINDOW, chat={"context_management": LOW})
async def policy_codecompanion_failing(desk: Desk) -> None:
    """The summariser returns unrelated text twice; nothing changes, and the user sees the reason."""
    await fill(desk, 6, rambling, 40)
    desk.model_by(reading_model(refusing))
    await desk.chat("compact")
    await desk.until("compaction_failed")
    await desk.until("state", state="idle")


@story(window=WINDOW, policy="adaptive")
async def policy_adaptive(desk: Desk) -> None:
    """Old results are cleared where it pays, then a summary is written and recent work is kept."""
    await fill(desk, 6, good())
    await look_back(desk)


@story(window=WINDOW, policy="adaptive")
async def policy_adaptive_failing(desk: Desk) -> None:
    """If no model writes the summary, code writes it from the log."""
    await fill(desk, 6, refusing)


@story(window=WINDOW, policy="cowork")
async def policy_cowork(desk: Desk) -> None:
    """A handoff with its checkpoint, its notes and its snapshot."""
    await fill(desk, 7, good("cw_9"))
    await look_back(desk)


@story(window=WINDOW, policy="cowork", chat={"checkpoint_every_messages": 0})
async def policy_cowork_failing(desk: Desk) -> None:
    """If no model writes the handoff, it has the old messages; only the policy's own checkpoints are on."""
    await fill(desk, 7, rambling)
    await desk.send("list_checkpoints", of=CHAT)


@story(window=8_000, policy="cowork_chat", tools=(), chat={"context_management": SHORT})
async def policy_cowork_chat(desk: Desk) -> None:
    """A chat without tools: a cached summary and the newest messages."""
    desk.model_by(lambda body: reply(summary("cw_9") if is_summary(body) else "Some words. " * 100, one_chunk=True))
    for number in range(1, 12):
        await desk.say(f"Question {number}: " + "why so many words? " * 60)
    await look_back(desk)


@story(window=8_000, policy="cowork", tools=())
async def policy_cowork_chat_failing(desk: Desk) -> None:
    """A chat without tools whose summariser fails."""
    desk.model_by(lambda body: failure(400, "No.") if is_summary(body) else reply("Some words. " * 100, one_chunk=True))
    for number in range(1, 12):
        await desk.say(f"Question {number}: " + "why so many words? " * 60)


@story(window=WINDOW, policy="codebuddy")
async def policy_codebuddy(desk: Desk) -> None:
    """Old results are stripped first, then the chat is summarised in chunks."""
    await fill(desk, 4, lambda body: reply("The user asks about a.txt, which says word.", one_chunk=True), 150)
    await desk.chat("compact", instructions="keep the words")
    await desk.until("state", state="idle")
    await look_back(desk)


@story(window=WINDOW, policy="codebuddy")
async def policy_codebuddy_failing(desk: Desk) -> None:
    """No tier gets a summary from a model, so the chat is only described."""
    desk.model_by(lambda body: failure(400, "No.") if is_summary(body) else reply("Some words. " * 100, one_chunk=True))
    for number in range(1, 12):
        await desk.say(f"Question {number}: " + "why so many words? " * 40)


@story(window=WINDOW, policy="kodacode")
async def policy_kodacode(desk: Desk) -> None:
    """Every request is shaped; finished turns become one durable summary."""
    await fill(desk, 6, good())
    await look_back(desk)


@story(window=WINDOW, policy="kodacode", chat={"context_management": {"compaction": {"overlay": "always"}}})
async def policy_kodacode_overlay_failing(desk: Desk) -> None:
    """A utility model that should improve the summary refuses."""
    await fill(desk, 6, refusing)


@story(window=WINDOW, policy="kodacode")
async def policy_kodacode_raw_tail(desk: Desk) -> None:
    """Results of finished turns are cleared, oldest first, until the rest is within its share of the limit."""
    await fill(desk, 8, good(), words=120)


@story()
async def compacted_on_request(desk: Desk) -> None:
    """/compact after a forecast and with instructions, then once more, after which the model continues."""
    desk.write("a.txt", "word " * 200)
    desk.model_by(reading_model(good()))
    await desk.say("Question 1: what does it say?")
    await desk.chat("forecast_compaction")
    await desk.chat("preview")
    await desk.chat("compact", instructions="keep the file names")
    await desk.until("compacted")
    await desk.until("state", state="idle")
    await desk.say("Question 2?")
    await desk.chat("compact", go_on=True)
    await desk.until("turn_finished")
    await desk.chat("undo_change")
    await desk.chat("preview", against="last_request")
    await desk.chat("redo_change")
    await desk.chat("redraw_chat")


@story()
async def compaction_cancelled(desk: Desk) -> None:
    """The user stops a compaction while the summary is written; nothing has changed."""
    gate = asyncio.Event()
    desk.model(reply("Something long. " * 40, one_chunk=True))
    await desk.say("Tell me something")
    desk.model(reply(summary(), gate=gate, gate_after=3))
    await desk.chat("compact")
    await desk.until("compaction_started")
    await desk.until_asked(2)
    await desk.chat("cancel")
    await desk.until("compaction_failed")
    gate.set()
    desk.model(reply("Still here."))
    await desk.say("Are you there?")


@story(window=WINDOW)
async def results_cleared_manually(desk: Desk) -> None:
    """A tool result is cleared, found by its words and restored; a pinned one cannot be cleared; undo and redo work."""
    desk.write("a.txt", "a needle and " + "word " * 100)
    desk.model_by(reading_model(good()))
    await desk.say("Read it")
    await desk.say("And again")
    await desk.chat("clear_message", item="c1")
    await desk.chat("undo_change")
    await desk.chat("redo_change")
    await desk.chat("show_original", item="c1")
    await desk.chat("recall", words="needle")
    await desk.chat("restore_message", item="c1")
    await desk.chat("pin", item="c2")
    await desk.chat("clear_message", item="c2")
    await desk.chat("inspect")


@story(window=WINDOW, tools=("read_file", "recall"), chat={"context_management": LOW})
async def recalled_after_compaction(desk: Desk) -> None:
    """Messages removed by a compaction are found by words: by the user, and by the model with its tool."""
    desk.write("a.txt", "a needle and " + "word " * 900)
    desk.model_by(reading_model(good()))
    await desk.say("Read it, the secret is xylophone")
    await desk.chat("compact")
    await desk.until("compacted")
    await desk.until("state", state="idle")
    await desk.chat("recall", words="xylophone")
    desk.model(reply(calls=[Call("recall", '{"query": "xylophone"}', "r1")]), reply("It was xylophone."))
    await desk.say("What was the secret?")


@story(window=8_000)
async def too_long_recovered(desk: Desk) -> None:
    """The provider refuses a request as too long; it is shrunk and sent again."""
    desk.write("a.txt", "word " * 900)
    desk.model_by(reading_model(good()))
    await desk.say("Question 1: read it")
    await desk.say("Question 2: read it")
    desk.model(FULL)
    await desk.say("Question 3: read it")


@story(window=8_000, policy="cowork")
async def too_long_recovered_cowork(desk: Desk) -> None:
    """The policy's own recovery shrinks the request to its share of the window; it is refused again, twice."""
    desk.write("a.txt", "word " * 900)
    desk.model_by(reading_model(good("cw_9")))
    await desk.say("Question 1: read it")
    await desk.say("Question 2: read it")
    desk.model(FULL)
    await desk.say("Question 3: read it")


@story(window=2_000)
async def too_long_to_send(desk: Desk) -> None:
    """A message that cannot fit is not sent, and can be edited."""
    desk.model(reply("Short."))
    await desk.say("Read this: " + "many words " * 2_500)
    await desk.say("Hello?")


@story(window=WINDOW, chat={"on_compact": "stop", "context_management": LOW})
async def stops_after_compaction(desk: Desk) -> None:
    """The turn stops after a compaction, as configured, so that the user can decide."""
    await fill(desk, 6, good(), 40)
    desk.model(reply("On I go."))
    await desk.say("Go on")
