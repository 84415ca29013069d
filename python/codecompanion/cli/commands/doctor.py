"""`doctor`: check the Python installation, without Neovim."""

from __future__ import annotations

import argparse
import pkgutil
from importlib import import_module
from typing import Any, TextIO

import codecompanion
from codecompanion.cli.commands.sessions import data_dir
from codecompanion.engine.doctor import examine_environment
from codecompanion.engine.finding import Finding
from codecompanion.errors import StoreError
from codecompanion.store.opening import open_store

NOT_IMPORTED = frozenset({"codecompanion.tools.sandbox.inside.launcher"})
"""Modules that are separate programs: importing them would change the current process."""


def add_parser(commands: Any) -> None:
    """Add the subcommand to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser("doctor", help="check Python, packages and the chat history")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Print one line per finding; return 1 if there is a problem."""
    findings = [*examine_environment(), import_all(), _history()]
    for finding in findings:
        print(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.name}: {finding.text}", file=out)
        if not finding.ok and finding.advice:
            print(f"      {finding.advice}", file=out)
    return 0 if all(finding.ok for finding in findings) else 1


def import_all() -> Finding:
    """Import every module, because a damaged installation would otherwise show up only when a module is first used."""
    imported, broken = 0, []
    for found in pkgutil.walk_packages(codecompanion.__path__, "codecompanion.", onerror=lambda name: None):
        if found.name in NOT_IMPORTED or found.name.endswith(".__main__"):
            continue
        try:
            import_module(found.name)
            imported += 1
        except Exception as error:  # any error here would break the users of the module
            broken.append(f"{found.name}: {type(error).__name__}: {error}")
    if broken:
        text = f"{len(broken)} cannot be imported: {'; '.join(broken)}"
        return Finding("modules", False, text, "Update or reinstall the plugin, then run :CodeCompanion install")
    return Finding("modules", True, f"all {imported} can be imported")


def _history() -> Finding:
    path = data_dir() / "sessions.db"
    if not path.exists():
        return Finding("history", True, f"{path} (none yet)")
    problems: list[str] = []
    try:
        store = open_store(path.parent, report=lambda problem: problems.append(str(problem)))
    except StoreError as error:
        return Finding("history", False, str(error), "See the message above")
    try:
        problems += store.check()
    finally:
        store.close()
    return Finding("history", not problems, problems[0] if problems else str(path), "Open a chat to repair it")
