"""Which edition of a package is installed, without reading its metadata: 10 ms, for an e-mail parser and zip files."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def edition_of(name: str) -> str:
    """Return the version of a package by the name of its folder of metadata, "" when that does not tell."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        return ""
    found = list(Path(spec.origin).parents[1].glob(f"{name}-*.dist-info"))
    return found[0].stem.partition("-")[2] if len(found) == 1 else ""
