"""Imports outside the window (R-257)."""

from __future__ import annotations

import pytest

from codecompanion.completion.imports import imports_outside
from codecompanion.completion.window import cut_window
from codecompanion.model.code import ImportStatement

FILLER = "".join(f"value_{number} = {number}\n" for number in range(600))
PYTHON = (
    '"""A file.\n\nfrom here import nothing\n"""\n'
    "from __future__ import annotations\n"
    "import os, sys\n"
    "from a.b import (\n    one,\n    two,\n)\n"
    "if TYPE_CHECKING:\n    from c import Type\n"
    "try:\n    import fast\nexcept ImportError:\n    fast = None\n"
    "def f():\n    import inner\n"
)
WANTED = (
    "from __future__ import annotations\nimport os, sys\nfrom a.b import (\n    one,\n    two,\n)\n"
    "from c import Type\nimport fast\n"
)


def outside(path, before, after=""):
    return imports_outside(path, cut_window(before, after))


def test_a_file_entirely_in_the_window_has_no_imports_outside():
    assert outside("a.py", PYTHON, "x\n") == ""


def test_statements_above_the_window_are_included_verbatim_in_order():
    """Imports inside functions are not included; the cursor's line does not have to parse."""
    assert outside("a.py", PYTHON + FILLER + "if broken(") == WANTED


def test_an_unparsable_file_has_the_same_imports():
    assert (
        outside("a.py", "def broken(:\n" + PYTHON.replace("from here import nothing", "import this") + FILLER) == WANTED
    )


def test_prose_that_begins_like_an_import_is_not_one():
    text = "def broken(:\nimport this module first\nfrom there import is nothing\nimport os\n"
    assert outside("a.py", text + FILLER) == "import os\n"


def test_imports_in_the_window_are_not_repeated():
    """A statement that is only partly inside the window is still included."""
    shown = "import shown\n" + "x = 1\n" * 100
    before = PYTHON + FILLER + shown
    assert outside("a.py", before) == WANTED
    cut = "import os\nfrom long_name import " + "n" * 7_990
    assert outside("a.py", cut) == "import os\n"
    cut = "import os\nfrom some_name import thing\n"
    assert outside("a.py", cut + "y" * 7_990) == cut


def test_imports_below_the_window_count_too_but_not_those_in_the_suffix():
    after = "\nimport near\n" + FILLER[:3_000] + "\nimport far\n"
    assert outside("a.py", "", after) == "import far\n"


def test_imports_are_limited_to_a_thousand_characters():
    """Only complete statements are included.

    If not all fit, those used in the window take precedence, in file order.
    """
    many = "".join(f"import module_{number:03}\n" for number in range(200))
    found = outside("a.py", many + FILLER + "module_150.call(module_007")
    lines = found.splitlines()
    assert len(found) <= 1_000
    assert {"import module_150", "import module_007"} < set(lines)
    assert lines == sorted(lines)
    assert set(lines) <= set(many.splitlines())
    too_long = f"from a import {'n' * 1_000}\nimport b\n"
    assert outside("a.py", too_long + FILLER) == "import b\n"
    exact = f"import {'n' * 992}\n"
    assert outside("a.py", exact + FILLER) == exact


@pytest.mark.parametrize(
    "text", ["import a\nfrom b import (\n    c,\n)\n", 'import d from "d"\nimport { e,\n  f } from "e"\n']
)
def test_their_line_ends_are_those_of_the_file(text):
    """R-257: imports are copied verbatim; the command line receives texts with the line ends they have on disk."""
    path = "a.py" if "from b" in text else "a.ts"
    assert outside(path, text + FILLER) == text
    crlf = text.replace("\n", "\r\n")
    assert outside(path, crlf + FILLER.replace("\n", "\r\n")) == crlf


@pytest.mark.parametrize(
    ("path", "text", "wanted"),
    [
        ("a.lua", 'local a = require("b")\nlocal x = 1\nrequire "c"\n', 'local a = require("b")\nrequire "c"\n'),
        (
            "a.ts",
            'import a from "a";\nimport {\n  b,\n  c,\n} from "d";\nimport("lazy");\nconst e = require("e");\n',
            'import a from "a";\nimport {\n  b,\n  c,\n} from "d";\nconst e = require("e");\n',
        ),
        ("b.lua", "local x\nlocal a, b = require('a'), require('b')\n", "local a, b = require('a'), require('b')\n"),
        ("c.lua", "local ok, m = pcall(require, 'm')\nrequired(1)\n", "local ok, m = pcall(require, 'm')\n"),
        ("a.cpp", "using namespace std;\nusing std::a;\nusing T = int;\n", "using namespace std;\nusing std::a;\n"),
        ("a.mm", "#import <A/A.h>\n@import B;\nimports();\n", "#import <A/A.h>\n@import B;\n"),
        ("b.rb", "begin\n  require 'a'\nend\nload 'b.rb'\nloaded 1\n", "require 'a'\nload 'b.rb'\n"),
        ("b.sh", "if x; then\n  source y\nfi\n[ -f z ] && . z\n...\n", "source y\n[ -f z ] && . z\n"),
        ("a.rs", "use a::{\n  b,\n};\npub use c;\nfn f() {}\n", "use a::{\n  b,\n};\npub use c;\n"),
        ("a.go", 'package a\nimport "b"\nimport (\n\t"c"\n)\n', 'import "b"\nimport (\n\t"c"\n)\n'),
        ("a.h", '#include <b.h>\n# include "c.h"\n#define D\n', '#include <b.h>\n# include "c.h"\n'),
        ("A.java", "package a;\nimport b.C;\n", "import b.C;\n"),
        ("a.rb", "require 'b'\nrequire_relative 'c'\n", "require 'b'\nrequire_relative 'c'\n"),
        ("a.unknown", "import b\n", ""),
    ],
)
def test_imports_of_other_languages_are_recognised_by_their_form(path, text, wanted):
    assert outside(path, text + "//" * 5_000) == wanted
    assert outside(path, text.replace("\n", "\r\n") + "//" * 5_000) == wanted.replace("\n", "\r\n")


def test_parsed_imports_take_precedence_over_any_form():
    parsed = (ImportStatement(1, 1, "use a;"), ImportStatement(3, 3, "use shown;"))
    shown = cut_window("use a;\n\nuse shown;\n" + "x" * 7_985, "")
    assert imports_outside("a.x", shown, parsed) == "use a;\n"
