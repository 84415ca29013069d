"""How much of the information an agent needs next is in the model-free summary (lesson 21, R-526).

    python bench/bench_summary.py [--form sections|below] [--budget 4000] [--next 40] [--json] [FILE|DIR …]

A recorded chat is cut at several places. A summary of at most `--budget` tokens is written from the part before the
cut. Of the file names and identifiers in the arguments of the following tool calls, those count **that had occurred
before** (no summary can contain unseen names); the share found in the summary is printed. `all` counts the unseen ones
too. Files count by their base name; identifiers are camelCase, snake_case or contain digits.

`--form below` measures only the ledger below a model's prose (`append_ledger`). Goals at 4000 tokens of sections:
`all_files` ≥ 0.73, `all_names` ≥ 0.66. A file is a chat in the project's transcript format;
`python -m codecompanion import` makes one of other agents' transcripts.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from codecompanion.context.ledger import facts as ledger_facts
from codecompanion.context.ledger.append_ledger import write_ledger
from codecompanion.context.ledger.ledger import summarise
from codecompanion.counting.tokens import MessageCounter, estimate_text
from codecompanion.model.messages import Message
from codecompanion.model.transcript_format import read_bytes

DEFAULT = Path(__file__).resolve().parents[2] / "shared" / "data" / "transcripts"
SMALLEST_PREFIX = 8_000  # tokens: below twice the budget there is no choice
FEWEST_CALLS = 8


def wanted(messages: Sequence[Message], calls: int) -> tuple[set[str], set[str]]:
    """Return the base names of files and the identifiers in the arguments of the next calls."""
    files: set[str] = set()
    names: set[str] = set()
    upcoming = [call for message in messages for call in message.tool_calls][:calls]
    for call in upcoming:
        for _, value in ledger_facts.strings_in(ledger_facts.read_arguments(call.arguments)):
            files |= {path.rsplit("/", 1)[-1] for path in ledger_facts.PATH.findall(value)}
            names |= {name for name in ledger_facts.NAME.findall(value) if 4 <= len(name) <= 60}
    return files, {name for name in names if ledger_facts.is_code_name(name)}


def cuts(messages: Sequence[Message], calls: int, cut_every: int) -> Iterator[int]:
    """Yield the places to cut at: before an assistant message, with enough before and after."""
    counter = MessageCounter()
    tokens, after_last, left = 0, 0, sum(len(message.tool_calls) for message in messages)
    for index, message in enumerate(messages):
        if message.role == "assistant" and tokens >= SMALLEST_PREFIX and after_last >= cut_every:
            if left < min(calls, FEWEST_CALLS):
                return
            yield index
            after_last = 0
        tokens += counter.message(message)
        after_last += len(message.tool_calls)
        left -= len(message.tool_calls)


Summariser = Callable[[Sequence[Message], int], str]
FORMS: dict[str, Summariser] = {
    "sections": lambda messages, budget: summarise(messages, budget, estimate_text),
    "below": lambda messages, budget: write_ledger(ledger_facts.gather(messages), budget, "", estimate_text),
}


def measure(path: Path, budget: int, calls: int, cut_every: int, write: Summariser) -> list[dict[str, float]]:
    """Return one row per cut: shares of files and identifiers found, tokens, milliseconds."""
    messages = read_bytes(path.read_bytes().split(b"\n"), str(path)).messages
    rows = []
    for cut in cuts(messages, calls, cut_every):
        start = time.perf_counter()
        text = write(messages[:cut], budget)
        took = (time.perf_counter() - start) * 1000
        past = "\n".join(message.text for message in messages[:cut]) + "\n".join(
            call.arguments for message in messages[:cut] for call in message.tool_calls
        )
        held = {
            "files": {found.rsplit("/", 1)[-1] for found in ledger_facts.PATH.findall(text)},
            "names": set(ledger_facts.NAME.findall(text)),
        }
        row: dict[str, float] = {"tokens": estimate_text(text), "ms": took}
        for kind, needed in zip(("files", "names"), wanted(messages[cut:], calls), strict=True):
            known = {name for name in needed if name in past}
            for label, names in ((kind, known), (f"all_{kind}", needed)):
                if names:
                    row[label] = len(names & held[kind]) / len(names)
        rows.append(row)
    return rows


def mean(rows: Sequence[dict[str, float]], key: str) -> float:
    """Return the mean of a column over the rows that have it."""
    values = [row[key] for row in rows if key in row]
    return statistics.fmean(values) if values else float("nan")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=[DEFAULT])
    parser.add_argument("--form", choices=sorted(FORMS), default="sections")
    parser.add_argument("--budget", type=int, default=4000)
    parser.add_argument("--next", type=int, default=40)
    parser.add_argument("--every", type=int, default=5, help="calls between two cuts")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = [
        path for given in options.paths for path in (sorted(given.rglob("*.jsonl")) if given.is_dir() else [given])
    ]
    if not found:
        sys.exit(f"bench_summary: no recorded chats in {', '.join(map(str, options.paths))}")
    by_tool: dict[str, list[dict[str, float]]] = {}
    for path in found:
        rows = measure(path, options.budget, options.next, options.every, FORMS[options.form])
        by_tool.setdefault(path.parent.name, []).extend(rows)
    by_tool["ALL"] = [row for rows in by_tool.values() for row in rows]
    columns = ("files", "names", "all_files", "all_names", "tokens", "ms")
    table = {name: {"cuts": len(rows)} | {key: round(mean(rows, key), 3) for key in columns}
             for name, rows in by_tool.items() if rows}  # fmt: skip
    if options.json:
        print(json.dumps(table))
        return
    print(f"{'':18}{'cuts':>6}" + "".join(f"{column:>11}" for column in columns))
    for name, row in table.items():
        print(f"{name:18}{row['cuts']:6}" + "".join(f"{row[column]:11.3g}" for column in columns))


if __name__ == "__main__":
    main()
