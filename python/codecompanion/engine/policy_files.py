"""Reads the user's own policies from `policies/*.toml` in the configuration folder; each policy has its file's name.

A file has the content of a table in `interactions.chat.opts.policies`. Errors are reported by file and line. Only the
user's own configuration folder is read, never a project's.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from codecompanion.formats.outside_text import NOT_READABLE

FOLDER = "policies"
_MAX_BYTES = 1_000_000


class PolicyFiles(msgspec.Struct, frozen=True):
    """The policies in the files: tables and file paths by policy name, and a sentence for each file left out."""

    tables: dict[str, Any]
    paths: dict[str, Path]
    mistakes: tuple[str, ...] = ()


def read_policy_files(config_dir: str, configured: Mapping[str, Any]) -> PolicyFiles:
    """Return the policies from the files in the configuration folder, except those that are also in `configured`."""
    tables, paths, mistakes = dict[str, Any](), dict[str, Path](), list[str]()
    for path in sorted((Path(config_dir) / FOLDER).glob("*.toml")) if config_dir else ():
        name = path.stem
        try:
            if path.stat().st_size > _MAX_BYTES:
                raise ValueError(f"it is larger than {_MAX_BYTES:,} bytes")
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            mistakes.append(f"{path}: it is not UTF-8 text. The policy {name} is left out.")
        except tomllib.TOMLDecodeError as error:
            mistakes.append(f"{_with_line(path, str(error))}. The policy {name} is left out.")
        except (OSError, *NOT_READABLE) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            mistakes.append(f"{path}: {why}. The policy {name} is left out.")
        else:
            if name in configured:
                mistakes.append(f"{path}: not used, because interactions.chat.opts.policies.{name} has the same name.")
            else:
                tables[name], paths[name] = table, path
    return PolicyFiles(tables, paths, tuple(mistakes))


def _with_line(path: Path, problem: str) -> str:
    """Return tomllib's message with its line first: `mine.toml, line 3: …`."""
    found = re.fullmatch(r"(.*?) \(at (?:line (\d+), column \d+|end of document)\)", problem, re.DOTALL)
    if found is None:
        return f"{path}: {problem}"
    return f"{path}, {f'line {found[2]}' if found[2] else 'at its end'}: {found[1]}"


def with_file_location(sentence: str, key: str, path: Path | None) -> str:
    """Rewrite an error that begins with a key path to name file and line: `mine.toml, line 3: stage[1].trigger: …`.

    `key`: the path of the whole policy; a sentence about anything else is returned unchanged.
    """
    found = re.match(rf"{re.escape(key)}(?:\.([^:]*))?: ", sentence)
    if found is None or path is None:
        return sentence
    inner, rest = found[1] or "", sentence[found.end() :]
    try:
        line = _line_of(path.read_text(encoding="utf-8"), inner)
    except (OSError, UnicodeDecodeError):
        line = 0
    where = f"{path}, line {line}" if line else str(path)
    return f"{where}: {inner}: {rest}" if inner else f"{where}: {rest}"


def _line_of(text: str, key: str) -> int:
    """Return the 1-based line of the longest part of a key path that is found in the file, or 0 if there is none."""
    lines = text.splitlines()
    at, found = 0, 0
    for name, number in re.findall(r"([\w-]+)(?:\[(\d+)\])?", key):
        heading = re.compile(rf"\s*\[+[^\]#]*\b{re.escape(name)}\b[^\]]*\]")
        entry = re.compile(rf"(?:.*[{{,\s])?[\"']?{re.escape(name)}[\"']?\s*=|\s*id\s*=\s*[\"']{re.escape(name)}[\"']")
        wanted = int(number or 1)
        for place in range(at, len(lines)):
            line = lines[place]
            if not line.lstrip().startswith("#") and (heading.match(line) or entry.match(line)):
                wanted -= 1
                if wanted == 0:
                    at, found = place, place + 1
                    break
    return found
