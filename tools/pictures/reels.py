"""The scenes of the pictures: each function plays a short scene and films it."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path

from codecompanion.model.messages import Usage
from codecompanion.store.opening import open_store
from tests.journeys.project import STACK
from tests.providers.chat.answers import Call, reply
from tests.providers.chat.thread import ChatServerThread
from tests.providers.loopback.answers import Answer
from tests.unit.reports.logs import LogWriter
from tools.pictures.stage import Stage, stage

TESTS = """from src.stack import Stack


def test_pop_makes_the_stack_shorter():
    stack = Stack()
    stack.push("anchor")
    assert stack.pop() == "anchor"
    assert len(stack) == 0
"""
SLOW = '''"""Prime numbers, one by one."""


def is_prime(number):
    for divisor in range(2, number):
        if number % divisor == 0:
            return False
    return number > 1


def primes(limit):
    return [number for number in range(limit) if is_prime(number)]
'''
FASTER = '''def is_prime(number):
    """Return whether the number is prime."""
    for divisor in range(2, int(number**0.5) + 1):
        if number % divisor == 0:
            return False
    return number > 1
'''
MONTHS = ("january", "february", "march", "april")


def bookings(month: int, lines: int = 130) -> str:
    """Return a file of numbered bookings."""
    return "".join(
        f"{month:02d}-{1 + number * 28 // lines:02d}  berth N{(number * 5 + month) % 7 + 1}  ship Vala-"
        f"{(number * 37 + month * 11) % 1000:03d}  from {number * 7 % 24:02d}:00  {'paid' if number % 3 else 'open'}\n"
        for number in range(1, lines + 1)
    )


HARBOUR = {f"bookings/{name}.txt": bookings(number) for number, name in enumerate(MONTHS, 1)}


def reading(*answers: str) -> list[Answer]:
    """Return model answers that read a month's file for every question and then answer it."""
    script = []
    for month, answer in zip(MONTHS, answers, strict=False):
        arguments = json.dumps({"path": f"bookings/{month}.txt"})
        script += [reply("", calls=[Call("read_file", arguments, id=f"call_{month}")]), reply(answer)]
    return script


ON_THE_CHANGE = """
local chat = require("codecompanion.chat").current()
for row = 0, vim.api.nvim_buf_line_count(0) - 1 do
  local change = require("codecompanion.chat.draw.view_marks").at(chat, row)
  if change and change.id == chat.next_undo then
    vim.api.nvim_win_set_cursor(0, { row + 1, 0 })
  end
end
"""
"""Puts the cursor on the newest change."""
ANSWERS = (
    "N4 is booked **19 times** in January, five of them unpaid. The 12th has two ships at once.",
    "In February N4 is free from the 20th on. Nothing overlaps.",
    "March is the busiest month: 19 bookings of N4, and again **two ships on the 12th**.",
    "April looks like January, without the double booking.",
)
EDITS = {
    "interactions": {
        "chat": {
            "opts": {
                "context_management": {"editing": {"trigger": 0.65, "keep_cycles": 1}, "compaction": {"trigger": 0.95}}
            }
        }
    }
}


def undo(out: Path, root: Path) -> None:
    """Film context editing, then its undo and redo."""
    with stage(root, HARBOUR, size=(92, 25), script=reading(*ANSWERS), options=EDITS, window=16_000) as scene:
        scene.open()
        scene.chat.say("Read bookings/january.txt. Is N4 ever booked twice?")
        scene.chat.say("And in february.txt?")
        scene.keys("G")
        scene.frame(1500, "A chat reads files, and its context fills: the meter below says how far.")
        scene.type("And in march.txt?", "The next question …")
        scene.keys("<CR>")
        scene.nvim.wait_screen("busiest month")
        scene.nvim.wait_lua("return vim.b.codecompanion_chat.state == 'idle'")
        scene.keys("G")
        scene.frame(2600, "Before the request, old results were cleared: the line with ✂ says what and how much.")
        scene.nvim.lua(ON_THE_CHANGE)
        scene.frame(1400, "Nothing is lost:")
        scene.keys("u")
        scene.nvim.wait_screen("undone")
        scene.frame(2400, "undone: the model gets everything again, the meter says so", "u")
        scene.keys("<C-r>")
        scene.nvim.wait_screen("u undo")
        scene.frame(2400, "and back", "Ctrl-R")
        scene.film.save(out)


def inspector(out: Path, root: Path) -> None:
    """Take a picture of the next request in the inspector, message by message."""
    with stage(root, HARBOUR, size=(104, 22), script=reading(*ANSWERS), options=EDITS, window=16_000) as scene:
        scene.open()
        for question in (
            "Read bookings/january.txt. Is N4 ever booked twice?",
            "And in february.txt?",
            "And in march.txt?",
        ):
            scene.chat.say(question)
        scene.keys("gd")
        scene.nvim.wait_screen("Next request")
        scene.save(out)


def asked(root: Path, size: tuple[int, int] = (110, 26)) -> AbstractContextManager[Stage]:
    """Return a stage on which the model is about to fix a bug in the file beside the chat."""
    texts = {"old_text": "        return self.items[-1]\n", "new_text": "        return self.items.pop()\n"}
    edit = Call("insert_edit", json.dumps({"path": "src/stack.py", **texts}), id="call_edit")
    script = [
        reply("`pop` reads the last item and leaves it where it is.", calls=[edit]),
        reply("Done: `pop` now removes what it returns, and an empty stack raises `IndexError`."),
    ]
    layout = {"display": {"chat": {"window": {"layout": "vertical", "width": 0.56}}}}
    return stage(root, {"src/stack.py": STACK, "tests/test_stack.py": TESTS}, size=size, script=script, options=layout)


def approval(out: Path, root: Path) -> None:
    """Film an approval: an edit is shown as a diff, accepted, and at once appears in the open file."""
    with asked(root) as scene:
        scene.keys(":edit src/stack.py<CR>")
        scene.open()
        scene.type("The test of pop() is red. Fix it.", "A bug in the file on the left.")
        scene.keys("<CR>")
        scene.nvim.wait_screen("g2 accept")
        scene.frame(1800, "An edit waits for you: nothing is changed yet.")
        scene.keys("]aK")
        scene.nvim.wait_screen("items.pop")
        scene.frame(2600, "the proposal as a diff, which you may edit", "K")
        scene.keys("q")
        scene.nvim.lua("require('codecompanion.chat.question.next_question').UNREAD_MS = 0")  # a film moves fast
        scene.keys("g2")
        scene.nvim.wait_screen("✓")
        scene.nvim.wait_lua("return vim.b.codecompanion_chat.state == 'idle'")
        scene.frame(3000, "accepted: it is in the open file at once", "g2")
        scene.film.save(out)


def edit(out: Path, root: Path) -> None:
    """Film an edit in place: a change is described in words, shown in the buffer and accepted."""
    said = "placement: replace\n```python\n" + FASTER + "```\n"
    with stage(root, {"src/primes.py": SLOW}, size=(92, 21), script=[reply(said)]) as scene:
        scene.keys(":edit src/primes.py<CR>")
        scene.keys("4GV8G")
        scene.frame(1200, "Select what shall change …")
        command = "CodeCompanion only test up to the square root, and say what it returns"
        scene.keys(":")
        for at in range(0, len(command), 12):
            scene.keys(command[at : at + 12])
            scene.frame(140, "… and say how.")
        scene.keys("<CR>")
        scene.nvim.wait_lua("return (vim.b.codecompanion_edit or {}).state == 'proposed'")
        scene.frame(3200, "The proposal stands in the buffer. Nothing is changed yet.")
        scene.keys("g2")
        scene.nvim.wait_lua("return not vim.b.codecompanion_edit")
        scene.frame(2600, "accepted, as one undo step", "g2")
        scene.film.save(out)


def diff(out: Path, root: Path) -> None:
    """Take a picture of an edit shown as a diff before it is made."""
    with asked(root) as scene:
        scene.keys(":edit src/stack.py<CR>")
        scene.open()
        scene.chat.send("The test of pop() is red. Fix it.")
        scene.nvim.wait_screen("g2 accept")
        scene.keys("]aK")
        scene.nvim.wait_screen("items.pop")
        scene.save(out)


BERTHS = '''"""Berths of the harbour, and which ship lies where."""

from harbour.bookings import Booking, find_booking

LONGEST = {"N1": 40, "N2": 55, "N4": 90}


class BerthTaken(Exception):
    """Somebody else has booked the berth for that night."""


def book_berth(berth: str, ship: str, night: int) -> Booking:
    """Book a berth for one night, unless it is taken."""
    if find_booking(berth, night):
        raise BerthTaken(berth)
    return Booking(berth, ship, night)
'''
BOOKINGS = '''"""Bookings: who pays for which night."""

from dataclasses import dataclass

BOOKINGS: list["Booking"] = []


@dataclass
class Booking:
    """One ship, one berth, one night."""

    berth: str
    ship: str
    night: int
    paid: bool = False


def find_booking(berth: str, night: int) -> Booking | None:
    """Return the booking of a berth for a night, None when it is free."""
    return next((one for one in BOOKINGS if (one.berth, one.night) == (berth, night)), None)


def unpaid_bookings() -> list[Booking]:
    """Return what has to be paid still."""
    return [one for one in BOOKINGS if not one.paid]
'''
TEST_BERTHS = """import pytest

from harbour.berths import BerthTaken, book_berth
from harbour.bookings import BOOKINGS


def test_a_berth_is_booked_once_a_night():
    BOOKINGS.append(book_berth("N4", "Vala", 12))
    with pytest.raises(BerthTaken):
        book_berth("N4", "Ran", 12)
"""
PROJECT = {
    "harbour/__init__.py": "",
    "harbour/berths.py": BERTHS,
    "harbour/bookings.py": BOOKINGS,
    "tests/test_berths.py": TEST_BERTHS,
    "README.md": "# Harbour\n\nBooks berths by the night. `harbour/berths.py` is where to begin.\n",
}


def adapters(out: Path, root: Path) -> None:
    """Take a picture of the available adapters and their requirements, with one local server found."""
    keys = ("ANTHROPIC", "OPENAI", "GROQ", "GEMINI", "OPENROUTER", "DEEPSEEK", "MISTRAL", "AZURE_OPENAI")
    with ChatServerThread(key="", models=("qwen3:14b", "llama3.3")) as ollama:
        env = {**{f"{name}_API_KEY": "" for name in keys}, "OLLAMA_HOST": ollama.url.removesuffix("/v1")}
        with stage(root, {}, size=(100, 34), env=env, scripted=False) as scene:
            scene.nvim.command("CodeCompanion adapter")
            scene.nvim.wait_screen("qwen3")
            scene.save(out)


def context(out: Path, root: Path) -> None:
    """Take a picture of the code that would be sent with a question, and why."""
    with stage(root, PROJECT, size=(104, 24)) as scene:
        scene.open()
        scene.nvim.command("CodeCompanion index")
        scene.nvim.wait_screen("files")
        scene.chat.send("/context how does #{codebase} keep book_berth from booking a berth twice?")
        scene.nvim.wait_screen("berths.py")
        scene.save(out)


def long_log() -> LogWriter:
    """Return the log of a chat of 96 requests: occasional edits, and a compaction when the window is nearly full."""
    log = LogWriter()
    log.now = 1_790_000_000.0
    size = 9_000
    questions = ("Why is the parser slow?", "Make it stream", "Now the tests", "And the documents", "Release it")
    limits = {"window": 128_000, "edit": 83_200, "compaction": 108_800}
    for number in range(96):
        if number % 20 == 0:
            if number:
                log.end()
            log.begin(questions[number // 20])
        size += 2_400 + 900 * (number * 7 % 5)
        if size > limits["compaction"]:
            log.change("compacted", size, 15_000)
            size = 15_000
        elif size > limits["edit"] and number in (20, 48, 72):
            log.change("edited", size, size - 38_000)
            size -= 38_000
        fresh = max(3_000, size // 12)
        log.call(Usage(fresh, cache_read_tokens=size - fresh, output_tokens=350 + number % 7 * 60), limits=limits)
    log.end()
    return log


def cost(out: Path, root: Path) -> None:
    """Take a picture of the tokens that a long chat has sent, and would have sent without context management."""
    log = long_log()
    with stage(root, {}, size=(100, 29)) as scene:
        scene.open()
        store = open_store(root / "data" / "nvim" / "codecompanion")
        store.append("stored", [event.payload for event in log.events]).result()
        store.close()
        scene.nvim.lua("require('codecompanion.chat.reports').cost({ id = 'stored' })")
        scene.nvim.wait_screen("Cost of this chat")
        scene.keys("<C-w>o")
        scene.put_cursor("## Tokens per request")
        scene.keys("zt")
        scene.nvim.wait_screen("without management")
        scene.save(out)
