"""Runs `python -m codecompanion …`, also installed as `codecompanion` (`:help codecompanion-cli`).

Exit status 0, 1 (failure, with one line for the reason) or 2 (bad input: file, line, expected value; without a command,
the help). Only the answer goes to standard output; commands that take longer than two seconds show their progress on
standard error, if it is a terminal.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from codecompanion import __version__
from codecompanion.cli.commands import (
    audit,
    classify,
    context,
    demo,
    doctor,
    fim,
    gather,
    import_,
    index,
    recall,
    replay,
    search,
    select,
    sessions,
    summarize,
)
from codecompanion.cli.environment import hold_secrets
from codecompanion.cli.progress import Progress
from codecompanion.errors import CodeCompanionError, ConfigError, InputError


class Parser(argparse.ArgumentParser):
    """Reports an error in the arguments, or in those of a subcommand, on one line like all other errors."""

    def error(self, message: str) -> NoReturn:
        """Print the error on one line and exit with status 2."""
        self.exit(2, f"codecompanion: {message}; `{self.prog} --help` shows the expected arguments\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    parser = Parser(prog="codecompanion", description="Context management without Neovim.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    subcommands = (
        context,
        replay,
        recall,
        summarize,
        import_,
        demo,
        sessions,
        doctor,
        classify,
        index,
        search,
        select,
        gather,
        fim,
        audit,
    )
    for command in subcommands:
        command.add_parser(commands)
    if not (sys.argv[1:] if arguments is None else arguments):
        parser.print_help(sys.stderr)
        return 2
    chosen = parser.parse_args(arguments)
    try:
        with Progress(f"codecompanion {chosen.command}", sys.stderr) as progress:
            status: int = chosen.run(chosen, progress.wrap(sys.stdout))
            sys.stdout.flush()
        return status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (InputError, ConfigError) as error:
        print(f"codecompanion: {error}", file=sys.stderr)
        return 2
    except (CodeCompanionError, OSError) as error:
        print(f"codecompanion: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def run_program() -> int:
    """Run the command line as a separate program, which keeps no keys in its environment."""
    hold_secrets()
    return main()


if __name__ == "__main__":
    sys.exit(run_program())
