"""A judge must not share code with the code it judges."""

from __future__ import annotations

import ast
from pathlib import Path

PROVIDERS = Path(__file__).parents[1]
JUDGES = [path for path in PROVIDERS.rglob("*.py") if "tests" not in path.relative_to(PROVIDERS).parts]


def test_the_fake_providers_import_nothing_of_the_plugin() -> None:
    """They do not import other tests either, because all tests may use them."""
    imported = {
        (path.name, name)
        for path in JUDGES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }
    assert len(JUDGES) > 30
    assert not [
        (file, name)
        for file, name in imported
        if name.startswith("codecompanion")
        or (name.startswith("tests") and not name.startswith(("tests.providers", "tests.patience")))
    ]
