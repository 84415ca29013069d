"""Typed values are decoded in several threads, and only through `formats.typed`."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[3] / "python" / "codecompanion"
READERS = ("msgspec.convert", "msgspec.json.Decoder", "msgspec.msgpack.Decoder", "msgspec.msgpack.decode")
FRESH = """
import sys, threading
import msgspec
from codecompanion.formats import typed

sys.setswitchinterval(1e-6)
text = b'{"a": {"value": 1}, "b": [{"value": 2}], "c": {"x": {"value": 3}}}'
for number in range(60):
    names = {"msgspec": msgspec}
    exec(
        "class Inner(msgspec.Struct):\\n    value: 'int'\\n"
        "class Outer(msgspec.Struct):\\n    a: 'Inner'\\n    b: 'list[Inner]'\\n    c: 'dict[str, Inner]'\\n",
        names,
    )
    kind = names["Outer"]
    kind.__module__ = names["Inner"].__module__ = "__main__"
    globals().update(Inner=names["Inner"])
    start, found = threading.Barrier(4), []

    def read():
        start.wait()
        found.append(typed.read_json(text, type=kind))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert len(found) == 4 and all(one == found[0] for one in found), found
print("read")
"""


def test_a_type_first_used_by_several_threads_is_prepared_by_one() -> None:
    """A host ended with a segmentation fault; with msgspec's own functions this program does, too."""
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "read\n"), done.stderr


def typed_readers(source: str) -> list[str]:
    """Return the calls that decode typed values without `formats.typed`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = ast.unparse(node.func)
            has_type = len(node.args) > 1 or any(keyword.arg == "type" for keyword in node.keywords)
            is_reader = name in READERS and (bool(node.args) or bool(node.keywords))
            if is_reader or (name == "msgspec.json.decode" and has_type):
                found.append(f"{node.lineno}: {name}")
    return found


@pytest.mark.parametrize(
    ("line", "is_told"),
    [
        ("msgspec.json.decode(x, type=K)", True),
        ("msgspec.json.decode(x)", False),
        ("msgspec.convert(x, K)", True),
        ("msgspec.json.Decoder(K)", True),
        ("msgspec.json.Decoder()", False),
        ("typed.read_json(x, type=K)", False),
    ],
)
def test_a_direct_decode_is_found(line: str, is_told: bool) -> None:
    assert bool(typed_readers(line)) == is_told


def test_there_is_no_direct_decode() -> None:
    files = [path for path in PACKAGE.rglob("*.py") if path.name != "typed.py"]
    assert len(files) > 500
    past = {str(path.relative_to(PACKAGE)): typed_readers(path.read_text(encoding="utf-8")) for path in files}
    assert {name: calls for name, calls in past.items() if calls} == {}
