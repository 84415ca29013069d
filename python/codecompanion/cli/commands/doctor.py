"""`doctor`: what is wrong with the Python side, without Neovim."""

from __future__ import annotations

import argparse
from typing import Any, TextIO

from codecompanion.cli.commands.sessions import data_dir
from codecompanion.engine.doctor import examine_environment
from codecompanion.engine.finding import Finding
from codecompanion.errors import StoreError
from codecompanion.store.opening import open_store


def add_parser(commands: Any) -> None:
    """Add the sub-command to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser("doctor", help="check Python, packages and the chat history")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Print one line per finding; returns 1 when something is wrong."""
    findings = [*examine_environment(), _history()]
    for finding in findings:
        print(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.name}: {finding.text}", file=out)
        if not finding.ok and finding.advice:
            print(f"      {finding.advice}", file=out)
    return 0 if all(finding.ok for finding in findings) else 1


def _history() -> Finding:
    path = data_dir() / "sessions.db"
    if not path.exists():
        return Finding("history", True, f"{path} (none yet)")
    problems: list[str] = []
    try:
        store = open_store(path.parent, report=lambda problem: problems.append(str(problem)))
    except StoreError as error:
        return Finding("history", False, str(error), "See the sentence above")
    try:
        problems += store.check()
    finally:
        store.close()
    return Finding("history", not problems, problems[0] if problems else str(path), "Open a chat: it is repaired")
