"""The help file as a user reads it: its code examples, and the plugins that it names."""

from __future__ import annotations

import re
from pathlib import Path

HELP = Path(__file__).resolve().parents[1] / "doc" / "codecompanion.txt"


def snippet(tag: str, number: int = 1) -> str:
    """Return the first code block after a tag in the help file, or the one with the given number."""
    text = HELP.read_text(encoding="utf-8")
    assert f"*{tag}*" in text, f"no *{tag}* in the help"
    blocks = re.findall(r">(?:lua|vim)\n(.*?)^<", text.partition(f"*{tag}*")[2], re.MULTILINE | re.DOTALL)
    return blocks[number - 1]


def option_entries() -> set[str]:
    """Return the full paths of the options and sections that have an entry or a heading in the help file."""
    text = HELP.read_text(encoding="utf-8").partition("*codecompanion-options*")[2].partition("\n=====")[0]
    found, section = set(), ""
    for line in text.splitlines():
        heading = re.match(r"(?:[a-z][\w.<>]* +)?\*codecompanion\.(\S+)\*$", line)
        if heading:
            section = f"{heading[1]}."
            found.add(heading[1])
        elif line.startswith("    `"):
            found |= {section + name for name in re.findall(r"`([\w.<>]+)`(?=[,: ])", line)}
        elif line.startswith("        `"):
            found |= {section + name for name in re.findall(r"`([\w.<>]+)`(?=[,:])", line)}
    return found
