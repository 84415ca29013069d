"""`audit`: print the audit log (`:help codecompanion-audit`). The output format is stable."""

from __future__ import annotations

import argparse
import sys
from typing import Any, TextIO

from codecompanion.cli.commands.sessions import data_dir
from codecompanion.cli.json_lines import json_line
from codecompanion.reports.audit_page import audit_page
from codecompanion.store.audit import read_audit


def add_parser(commands: Any) -> None:
    """Add the subcommand to the command line."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "audit", help="print the tools and commands that ran, where, and under which grant"
    )
    parser.add_argument("--chat", default="", metavar="ID", help="only the entries of this chat")
    parser.add_argument("--json", action="store_true", help="print the records as JSON Lines")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Print the log; return 1 if a record was changed or removed."""
    folder = data_dir()
    audit = read_audit(folder, arguments.chat)
    if arguments.json:
        for record in audit.records:
            print(json_line(record), file=out)
    else:
        print(audit_page(audit.records, audit.broken, str(folder)).rstrip("\n"), file=out)
    if audit.broken:
        print(f"codecompanion: the audit log was changed or damaged: {audit.broken}", file=sys.stderr)
    return 1 if audit.broken else 0
