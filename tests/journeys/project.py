"""The project in which the stories take place: small files to read, edit and break."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.journeys.desk import Desk

STACK = '''"""A stack that remembers how high it was."""


class Stack:
    def __init__(self):
        self.items = []
        self.highest = 0

    def push(self, item):
        self.items.append(item)
        self.highest = max(self.highest, len(self.items))

    def pop(self):
        return self.items[-1]

    def __len__(self):
        return len(self.items)
'''

NOTES = """# Berths

- N1 is closed in winter
- N4 takes ships of up to 90 m
- ask Ægir before a booking at night
"""


def ledger(lines: int) -> str:
    """Return a long file of numbered ledger entries."""
    return "".join(
        f"{number:04d} berth N{number % 7 + 1} ship Vala-{number * 37 % 1000:03d} from {number % 24:02d}:00\n"
        for number in range(1, lines + 1)
    )


def lay_out(desk: Desk, *, lines: int = 160) -> None:
    """Create the project's files."""
    desk.write("src/stack.py", STACK)
    desk.write("notes.md", NOTES)
    desk.write("AGENTS.md", "Answer briefly. Never touch the file called production.env.\n")
    for name in ("a", "b", "c", "d", "e", "f"):
        desk.write(f"ledger_{name}.txt", ledger(lines))
