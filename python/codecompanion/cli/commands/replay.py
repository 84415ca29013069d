"""`replay`: compare the cost of recorded sessions under each policy (`:help codecompanion-cli`). A stable contract.

`--json` prints one object: `{"window", "cache", "files": [{"file", "policies": […]}], "total": [{"policy", "requests",
"prompt_tokens", "peak", "edits", "compactions", "cost", "relative_cost", "faults", "text_edits", …}]}`. The first entry
of each list is `"(none)"`, without context management, to which all relative costs refer. They compare
`compared_requests`, the requests that fit the window even without management: a request that could not have been sent
does not count as saved. `--html FILE` also writes the result as a page with charts.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from codecompanion import __version__
from codecompanion.cli import progress
from codecompanion.cli.arguments import read_transcript, source_of, token_count
from codecompanion.cli.json_lines import json_line
from codecompanion.context.policy.policy import Policy
from codecompanion.context.policy.policy_catalog import load_policy, policy_names
from codecompanion.context.policy.strict import strict
from codecompanion.errors import InputError
from codecompanion.formats.plural import counted
from codecompanion.reports.cache_price import LIFETIME_S, READ_PRICE, WRITE_PRICE, CacheKind
from codecompanion.reports.replay import Figures, read_recording, relative_cost, walk_requests

WINDOW = 200_000
UNMANAGED = "(none)"
HEADINGS = ("policy", "requests", "prompt tokens", "peak", "edits", "compactions", "cost", "faults")
ROW = "{:<16} {:>8} {:>14} {:>9} {:>6} {:>11} {:>7} {:>14}"


def add_parser(commands: Any) -> None:
    """Add the subcommand to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "replay", help="replay recorded sessions under each policy: tokens, edits, compactions, cost, faults"
    )
    parser.add_argument("--policy", action="append", default=[], help="a policy; repeatable (default: all)")
    parser.add_argument("--strict", action="store_true", help="follow the policies' documents, without our additions")
    parser.add_argument(
        "--window", type=token_count, metavar="N|Nk", default=WINDOW, help=f"context window (default: {WINDOW})"
    )
    parser.add_argument("--cache", choices=list(LIFETIME_S), default="5m", help="lifetime of the prompt cache")
    parser.add_argument("--json", action="store_true", help="print one JSON object, including the figures of each file")
    parser.add_argument("--html", type=Path, metavar="PAGE", help="also write a page with charts to this file")
    parser.add_argument("file", nargs="+", metavar="FILE|-", help="a transcript in JSON Lines")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Run the subcommand and return the exit status. Bad input raises before anything is printed."""
    if arguments.window < 1:
        raise InputError(f"--window {arguments.window}: expected 1 or more tokens")
    chosen = [load_policy(name) for name in dict.fromkeys(arguments.policy or policy_names())]
    if arguments.strict:  # restricted to policies that follow a document
        chosen = [strict(policy, "--strict") for policy in chosen if arguments.policy or not policy.ours]
    policies: list[tuple[str, Policy | None]] = [(UNMANAGED, None), *((policy.name, policy) for policy in chosen)]
    walks = [replay_file(name, policies, arguments.window, arguments.cache) for name in arguments.file]
    per_file = [[sum(requests, Figures()) for requests in by_policy] for by_policy in walks]
    totals = [sum((figures[row] for figures in per_file), Figures()) for row in range(len(policies))]
    labels = [name for name, _ in policies]
    if arguments.html:
        _write_page(arguments, labels, walks, totals)
    if arguments.json:
        files = [
            {"file": name, "policies": describe(labels, figures)}
            for name, figures in zip(arguments.file, per_file, strict=True)
        ]
        answer = {"window": arguments.window, "cache": arguments.cache, "files": files}
        print(json_line({**answer, "total": describe(labels, totals)}), file=out)
    else:
        print_table(labels, totals, len(per_file), arguments.window, arguments.cache, out)
    return 0


def replay_file(
    name: str, policies: Sequence[tuple[str, Policy | None]], window: int, cache: CacheKind
) -> list[tuple[Figures, ...]]:
    """Return the figures of each request of one file, under each policy.

    Raises:
        InputError: the file cannot be read, or contains no message.
    """
    recording = read_recording(read_transcript(name).messages)
    figures = []
    for label, policy in policies:
        progress.step(f"{name} under {label}")
        figures.append(walk_requests(recording, policy, window, cache))
    return figures


def _write_page(
    arguments: argparse.Namespace,
    labels: Sequence[str],
    walks: Sequence[Sequence[Sequence[Figures]]],
    totals: Sequence[Figures],
) -> None:
    """Write the HTML page.

    Raises:
        InputError: the file cannot be written.
    """
    from codecompanion.reports.pages.replay_page import Replayed, Session, replay_page

    sessions = [Session(source_of(name), walked) for name, walked in zip(arguments.file, walks, strict=True)]
    command = shlex.join(["codecompanion", "replay", *_options(arguments, labels[1:]), *arguments.file])
    replayed = Replayed(labels, sessions, totals, arguments.window, arguments.cache, command, __version__)
    try:
        arguments.html.write_text(replay_page(replayed), encoding="utf-8")
    except OSError as error:
        raise InputError(f"--html {arguments.html}: {error.strerror}; expected a writable file") from error


def _options(arguments: argparse.Namespace, policies: Sequence[str]) -> list[str]:
    """Return the command-line options that reproduce the page."""
    named = [part for name in policies for part in ("--policy", name)] if arguments.policy else []
    return [*named, "--window", str(arguments.window), "--cache", arguments.cache, "--html", str(arguments.html)]


def describe(labels: Sequence[str], figures: Sequence[Figures]) -> list[dict[str, Any]]:
    """Return the figures as objects; the first object is the reference for relative costs."""
    return [
        {
            "policy": label,
            "requests": row.requests,
            "prompt_tokens": row.prompt_tokens,
            "peak": row.peak,
            "edits": row.edits,
            "compactions": row.compactions,
            "cost": round(row.cost, 1),
            "relative_cost": round(relative_cost(row, figures[0]), 4),
            "compared_requests": row.compared_requests,
            "summary_tokens": row.summary_tokens,
            "summary_output_tokens": row.summary_output_tokens,
            "text_edits": row.text_edits,
            "faults": row.faults,
            "fault_rate": round(row.faults / row.text_edits, 4) if row.text_edits else 0.0,
            "overflows": row.overflows,
        }
        for label, row in zip(labels, figures, strict=True)
    ]


def print_table(
    labels: Sequence[str], totals: Sequence[Figures], files: int, window: int, cache: CacheKind, out: TextIO
) -> None:
    """Print one row per policy, followed by the meaning of the columns."""
    print(ROW.format(*HEADINGS), file=out)
    for label, row in zip(labels, totals, strict=True):
        faults = f"{row.faults} of {row.text_edits}" if row.text_edits else "-"
        cost = f"{relative_cost(row, totals[0]):.3f}" if row.compared_requests else "-"
        cells = (
            label, row.requests, f"{row.prompt_tokens:,}", f"{row.peak:,}", row.edits, row.compactions, cost, faults,
        )  # fmt: skip
        print(ROW.format(*cells), file=out)
    priced = "no prompt cache" if cache == "none" else f"prompt cache {cache}: read {READ_PRICE}, write {WRITE_PRICE}"
    print(
        f"\n{counted(files, 'session')}, window {window:,} tokens, {priced}. cost: everything sent, including"
        " summaries and files read again after a fault, relative to no management. faults: edits of files whose text"
        " had been cleared, out of all edits that quote the old text." + _not_compared(totals[0]),
        file=out,
    )


def _not_compared(unmanaged: Figures) -> str:
    """Return a note on the requests without a comparable cost, or ""."""
    compared = unmanaged.compared_requests
    if compared == unmanaged.requests:
        return ""
    too_large = counted(unmanaged.requests - compared, "request is", "requests are")
    only = f"cost compares the other {compared:,}" if compared else "so there is no cost to compare with"
    return f"\nWithout management {too_large} larger than the window and could not be sent; {only}."
