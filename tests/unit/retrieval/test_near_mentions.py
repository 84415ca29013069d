"""Lookalikes of mentions are reported, ordinary text is not (R-213)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from codecompanion.retrieval.mentions import CODEBASE, mentions_in
from codecompanion.retrieval.near_mentions import MAX_LISTED, corrections, known_mentions, near_mentions

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("how does #codebase work?", "Sent as plain text: #codebase · write #{codebase}"),
        ("how does it work? #codebase.", "Sent as plain text: #codebase · write #{codebase}"),
        ("#code_base", "Sent as plain text: #code_base · write #{codebase}"),
        ("(#Codebase)", "Sent as plain text: #Codebase · write #{codebase}"),
        ("@codebase how?", "Sent as plain text: @codebase · write #{codebase}"),
        ("how, @codebase?", "Sent as plain text: @codebase · write #{codebase}"),
        ("@{codebase} how?", "Sent as plain text: @{codebase} · write #{codebase}"),
        ("@workspace how?", "Sent as plain text: @workspace · write #{codebase}"),
        ("#{codebse}", "Sent as plain text: #{codebse} · write #{codebase}"),
        ("#{code base} why", "Sent as plain text: #{code base} · write #{codebase}"),
        ("#{ codebase }", "Sent as plain text: #{ codebase } · write #{codebase}"),
        ("#{codebase:src}", "Sent as plain text: #{codebase:src} · write #{codebase}"),
        ("#{project}", "Sent as plain text: #{project} · write #{codebase}"),
        ("#{buffer}", "Sent as plain text: #{buffer} · switched off in interactions.chat.editor_context"),
        ("fix #buffer please", "Sent as plain text: #buffer · write #{buffer}"),
        ("#{bufer:a.py}", "Sent as plain text: #{bufer:a.py} · write #{buffer:a.py}"),
        ("see #file:src/a.py.", "Sent as plain text: #file:src/a.py · write #{file:src/a.py}"),
        ("see #{files}", "Sent as plain text: #{files} · write #{file:path} for each of them"),
        ("#{diagnostic}", "Sent as plain text: #{diagnostic} · write #{diagnostics}"),
        ("#{gitdiff}", "Sent as plain text: #{gitdiff} · write #{diff}"),
        ("#{nothing}", "Sent as plain text: #{nothing} · #{codebase} gathers code, @path shows a file"),
        ("#{bufer} and #buffer", "Sent as plain text: #{bufer}, #buffer · write #{buffer}"),
        ("why does #{codebase} use #{symbols}?", "Sent as plain text: #{symbols} · paste its content"),
    ],
)
def test_a_near_miss_is_reported_with_the_correct_form(text, told):
    assert corrections(near_mentions(text)) == (told,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "how does the codebase work?",
        "#{codebase} and #{Codebase}",
        "#include <stdio.h>",
        "#define BUFFER 1\n#if X\n#endif",
        "fixes #123, see #4",
        "# codebase\n## buffer",
        "#!/usr/bin/env bash",
        "the channel #general, colour #fff and #codeine",
        "#file and #diff and #messages and #selected",
        "a Clojure set #{1 2} and #{:a :b}",
        "#buffer { color: red }",
        "#buffer.active, a#codebase, /page#codebase and x#{codebse}",
        'puts "Hello #{name}" and "in #{buffer} #{file}"',
        "say 'x#{name}', Hello #{user.name}, #{x + 1}",
        "${#buffer} and $#{x} and \\#{codebse}",
        "`#codebase`, `#{buffer}` and `@codebase`",
        "```ruby\n#{buffer}\n@codebase\n#codebase\n```",
        "@decorator\n@property\n@pytest.fixture\n@dataclass(frozen=True)",
        "@buffer.setter, @codebase(1), @codebase/pkg and @workspace/pkg",
        "me@codebase.org, me@codebase, a@@codebase, see @codebase.py",
        "@param {file} x\n@file the description\n@selection",
        "@media print { #a { } }",
        "ask @person about @types/node",
    ],
)
def test_ordinary_text_causes_no_warning(text):
    assert near_mentions(text) == ()


def test_an_existing_file_of_that_name_is_meant():
    assert near_mentions("see @codebase", files=("codebase",)) == ()


def test_reports_are_limited_and_a_long_text_costs_nothing():
    many = " ".join(f"#{{unknown{chr(97 + i % 26)}}}" for i in range(100_000)) + "#{codebse}" * 1000
    (told,) = corrections(near_mentions(many))
    assert told.count("#{unknown") == MAX_LISTED
    assert " … · " in told
    assert len(corrections(near_mentions("#{lsp} #{buffer} #codebase #{file:x} #{nothing}"))) == MAX_LISTED
    assert len(corrections(near_mentions("#{file:" + "x" * 150 + "}"))[0]) < 260


def test_the_names_are_defined_once():
    """Completion in the input offers exactly the possible mentions."""
    assert CODEBASE in known_mentions()
    assert mentions_in(f"see {CODEBASE}?")
    items = (ROOT / "lua/codecompanion/editor_context/items").glob("*.lua")
    named = [name for path in items for name in re.findall(r'(?m)^    name = "(\w+)"', path.read_text("utf-8"))]
    assert {f"#{{{name}}}" for name in named} == set(known_mentions())
    options = (ROOT / "lua/codecompanion/config/options/editor_context.lua").read_text("utf-8")
    listed = re.findall(r'(?m)^  "(\w+)",$', options)
    assert {*listed, "codebase"} == set(named), "each can be switched off"
