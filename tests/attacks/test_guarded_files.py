"""Every change of a file that a program runs or an agent follows asks for approval, whatever was granted (4).

The names come from the documentation of the tools (cited in `guarded_files.toml`); the spellings from the variants of a
name that file systems and models produce; the rest from first lines that programs recognize.
"""

# ruff: noqa: E501 - tables of attacks are read across
from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from codecompanion.formats.package_table import package_table
from codecompanion.settings_sections import ToolSettings
from codecompanion.tools.approval import Approvals
from codecompanion.tools.builtin import CREATE_FILE, DELETE_FILE, INSERT_EDIT
from codecompanion.tools.files.code_files import GUARDED, groups, why_it_becomes_code, why_it_runs_code
from codecompanion.tools.tool import ApprovalQuestion, Tool
from tests.attacks.conftest import Tally
from tests.attacks.sizes import amount

ROOT = "/home/me/project"
_TOOLS: tuple[Tool, ...] = (CREATE_FILE, INSERT_EDIT, DELETE_FILE)


def _names() -> list[str]:
    """Return one file name for each pattern."""
    return [
        (pattern.rstrip("/") + "/x" if pattern.endswith("/") else pattern).replace("*", "x")
        for _, patterns in groups()
        for pattern in patterns
    ]


def _spellings(name: str) -> list[str]:
    first, _, rest = name.partition("/")
    tail = f"/{rest}" if rest else ""
    return [
        name, f"a/b/{name}", f"./a/../{name}", name.upper(), name.swapcase(), f"{ROOT}/{name}", f"x//{name}",
        f"{first}.{tail}", f"{first} {tail}", f"{first}\u200c{tail}", f"{first}::$DATA{tail}", f"\ufeff{name}",
        f"{first[0]}\u00ad{first[1:]}{tail}", name.replace("e", "\uff45"), f"a/./{name}", f"../project/{name}",
    ]  # fmt: skip


def test_no_spelling_of_a_guarded_name_evades_the_question(tally: Tally) -> None:
    every = [(name, one) for name in _names() for one in _spellings(name)]
    tried = random.Random(20).sample(every, min(len(every), amount(1500, full=1_000_000)))
    passed = [one for _, one in tried if not why_it_runs_code((one,), ROOT)]
    tally("guarded files: names × spellings", tried=len(tried), held=len(tried) - len(passed))
    assert not passed


_FOUND_OUTSIDE = (
    "Tupfile toxfile.py rakefile.rb project/Build.scala build.boot paket.dependencies vendor/autoload.php vendor/bin/phpunit dvc.yaml MLproject"
    " dbt_project.yml nextflow.config drizzle.config.ts knexfile.js ormconfig.json liquibase.properties rush.json pm2.config.js protractor.conf.js"
    " .taprc .size-limit.js .spectral.yml openapitools.json Anchor.toml Scarb.toml melos.yaml uwsgi.ini ipython_config.py pyrefly.toml heroku.yml"
    " .actrc .ycm_extra_conf.py .nlsp-settings/x.json .overseer/x.lua omnisharp.json guix.scm manifest.scm .envrc.local .idx/dev.nix .kilocode/rules/x.md"
).split()


def test_names_from_a_list_that_knew_no_patterns_are_guarded(tally: Tally) -> None:
    """Of the 669 names in a list written from memory for 120 tools, these had been missed."""
    passed = [name for name in _FOUND_OUTSIDE if not why_it_runs_code((name,), ROOT)]
    tally("guarded files: names found outside", tried=len(_FOUND_OUTSIDE), held=len(_FOUND_OUTSIDE) - len(passed))
    assert not passed


def test_nothing_that_was_granted_covers_a_guarded_file(tally: Tally) -> None:
    """Neither "always" for the tool, nor YOLO, nor a tool that never asks otherwise covers it."""
    tried = held = 0
    for name in random.Random(21).sample(_names(), min(len(_names()), amount(100, full=10_000))):
        for tool in _TOOLS:
            for ask in (True, False):
                setting = ToolSettings(
                    enabled=True, require_approval_before=ask, allowed_in_yolo_mode=True, timeout_s=1
                )
                key = tool.spec.name
                approvals = Approvals({key: setting}, frozenset({key}), yolo=True)
                question = ApprovalQuestion(key=key, title="", body="", path=f"{ROOT}/{name}")
                seen = approvals.with_reason(question, name, ROOT)
                tried += 1
                held += approvals.needs_question(tool, seen) and approvals.after(seen, "always") == approvals
    tally("guarded files: tools × grants", tried=tried, held=held)
    assert held == tried


_CONTENTS = [
    ("bin/tool", "", "#!/bin/sh\nrm x\n"), ("tool", "", "#!/usr/bin/env python3\n"), ("src/bin/run.py", "", "#!/usr/bin/python\n"),
    ("templates/hooks/any", "", "#!/bin/sh\n"), ("bin/tool", "x\n", "#!/bin/sh\n"), ("a.txt", "", "-*- mode: x; eval: (shell-command \"x\") -*-\n"),
    ("a.md", "text\n", "text\n<!-- Local Variables:\neval: (shell-command \"x\")\nEnd: -->\n"), ("a.go", "package a\n", "package a\n//go:generate sh x\n"),
    ("docs/HEAD", "", "ref: refs/heads/main\n"), ("docs/head", "", "0" * 40 + "\n"), ("docs/config", "", "[core]\n\tfsmonitor = ./x\n"),
    ("docs/config", "[user]\n", "[user]\n[CORE]\nbare=true\n"), ("unit/x", "", "[Unit]\nDescription=x\n[Service]\nExecStart=x\n"),
    ("x.txt", "", "# c\n[Desktop Entry]\nExec=x\n"), ("json.py", "", "x = 1\n"), ("src/typing.py", "", "x = 1\n"), ("JSON.py", "", "x = 1\n"),
    ("tools/random.py", "", ""), ("x.go", "//go:generate a\n", "//go:generate a\n//go:generate b\n"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "before", "after"), _CONTENTS)
def test_a_file_that_becomes_one_that_something_runs_is_asked_about(
    path: str, before: str, after: str, tally: Tally
) -> None:
    why = why_it_becomes_code(path, before, after, is_new=not before)
    tally("guarded files: by their content", tried=1, held=int(bool(why)))
    assert why


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("scripts/build.sh", "", "#!/bin/sh\nmake\n"), ("src/main.py", "", "import json\n"), ("bin/tool", "#!/bin/sh\n", "#!/bin/sh\nx\n"),
        ("config", "", "a = 1\n"), ("head", "", "a head\n"), ("src/parser.c", "", "#include <stdio.h>\n"), ("a.ini", "", "[core]\nx=1\n"),
        ("a.go", "//go:generate x\n", "//go:generate x\n\nfunc a() {}\n"), ("README.md", "", "evaluate: yes\n"), ("app.rs", "", "#![no_std]\n"),
    ],
)  # fmt: skip
def test_ordinary_changes_do_not_make_a_file_guarded(path: str, before: str, after: str) -> None:
    assert not why_it_becomes_code(path, before, after, is_new=not before)


def test_a_module_of_a_package_shadows_nothing() -> None:
    assert not why_it_becomes_code("app/types.py", "", "x = 1\n", is_new=True, is_in_package=True)


@pytest.mark.parametrize(
    "name",
    [
        "src/main.py", "lua/codecompanion/init.lua", "app/models.rb", "src/lib.rs", "cmd/main.go", "pkg/server.go", "index.html",
        "src/app.tsx", "src/components/Button.vue", "styles.css", "README.md", "docs/guide.md", "tests/test_x.py", "data/users.json",
        "locales/en.json", "src/Main.java", "lib/foo.ex", "a.c", "include/a.h", "src/config.ts", "app/settings.py", "notes.txt",
        "schema.sql", "src/build/rule.py", "LICENSE", "src/path.py", "main.tf", "Program.cs", "src/hooks/useX.ts", "x.svg", "table.csv",
        "src/tasks/list.py", "query.graphql", "src/deploy.py", "values.yaml", "app/plugin.py", "tests/fixtures/a.json", "a.ipynb",
    ],
)  # fmt: skip
def test_a_source_file_is_never_guarded(name: str) -> None:
    assert not why_it_runs_code((f"{ROOT}/{name}",), ROOT)


def test_every_entry_names_its_source() -> None:
    table: dict[str, dict[str, dict[str, Any]]] = package_table(GUARDED)
    tools = [tool for kind in table.values() for tool in kind.values()]
    assert all(set(tool) == {"source", "files"} and tool["source"] for tool in tools)
    assert Path(GUARDED).suffix == ".toml"
