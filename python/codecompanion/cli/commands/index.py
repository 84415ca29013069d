"""`index`: bring the code index of a project up to date (`:help codecompanion-cli`).

A stable contract, used by external tests. Prints one JSON object: `files`, `chunks`, `symbols`, `vectors`, `seconds`,
`bytes`; on standard error, it lists files that are skipped for reasons other than their names. The editor uses the same
index for the folder. `--embed` computes the missing vectors; the exit status is 1 if that was not finished.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path
from typing import TextIO

import msgspec

from codecompanion.cli.arguments import existing_folder
from codecompanion.cli.embed_option import CommandVectors, add_embed
from codecompanion.cli.environment import cache_dir
from codecompanion.cli.index_update import update_index
from codecompanion.errors import CodeCompanionError
from codecompanion.session.code.left_out_files import left_out_files, left_out_sentence
from codecompanion.store.code_index.index_tables import index_path
from codecompanion.store.code_index.reader import IndexReader
from codecompanion.workspace.project_files import Choice


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand to the command line."""
    parser = commands.add_parser("index", help="build or update the code index of a project")
    parser.add_argument("--root", metavar="DIR", default=".", help="the project's folder (default: this one)")
    parser.add_argument("--rebuild", action="store_true", help="from scratch")
    add_embed(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Run the subcommand and return the exit status.

    Raises:
        InputError: the folder does not exist, or the SPEC of the vectors is invalid.
        CodeCompanionError: the index cannot be written, or another process is building it.
    """
    root = existing_folder(arguments.root, "--root").resolve()
    path = index_path(cache_dir(), root)
    started = time.monotonic()
    vectors = CommandVectors()
    if arguments.embed is not None:
        vectors.of(arguments.embed)  # an invalid SPEC is reported before any work starts
    built = update_index(root, path, Choice(), is_rebuild=arguments.rebuild)
    if built.is_busy:
        raise CodeCompanionError(f"another process is building the index of {root}; wait for it, then try again")
    is_whole = arguments.embed is None or asyncio.run(_embed(vectors, arguments.embed, root, path))
    reader = IndexReader(path)
    counts, by_content = reader.counts(), reader.left_out()
    reader.close()
    unexpected = [(name, why) for name, why in by_content if why != "binary"]
    if left_out := left_out_sentence(left_out_files({}, unexpected)):
        print(f"codecompanion: {left_out}", file=sys.stderr)
    answer = {
        "files": counts.files,
        "chunks": counts.chunks,
        "symbols": counts.symbols,
        "vectors": counts.vectors,
        "seconds": round(time.monotonic() - started, 3),
        "bytes": counts.bytes,
    }
    print(msgspec.json.encode(answer).decode(), file=out)
    return 0 if is_whole else 1


async def _embed(vectors: CommandVectors, spec: str, root: Path, path: Path) -> bool:
    """Compute the missing vectors; return whether all code chunks have been embedded."""
    try:
        run = await vectors.fill(spec, root, path, Choice())
        return not (run.why or run.is_busy)
    finally:
        await vectors.aclose()
