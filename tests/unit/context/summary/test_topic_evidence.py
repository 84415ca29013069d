"""Whether text is about a history, judged by names, repeated words and word pairs, in any form or language (R-526)."""

from __future__ import annotations

import time

import pytest

from codecompanion.context.summary.judge_reply import accept_reply
from codecompanion.context.summary.summary_run import Question, subject_texts, summary_prompt
from codecompanion.context.summary.topic_evidence import ANYWHERE, ELSEWHERE, History, cut_evenly, why_not_about
from codecompanion.context.summary_text.sections import load_schema
from codecompanion.context.work import Failed, SummaryReply, SummaryRequest
from tests.unit.context.builders import assistant, chat, tool, user

KITCHEN = chat(
    user("I want to bake a sourdough bread with rye flour this weekend. My starter is three days old."),
    assistant("Feed the starter twice a day with equal parts of rye flour and water until it doubles in four hours."),
    user("It doubled yesterday. How much flour and water does the dough need, and how much salt?"),
    assistant(
        "Take 500 g of flour, 350 g of water, 100 g of starter and 10 g of salt; fold the dough every half hour."
    ),
    user("The crust of my last loaf was pale and the crumb too dense. I have a cast-iron pot."),
    assistant(
        "Preheat the pot to 250 degrees, bake the loaf with the lid for 25 minutes, then without it for 20 minutes."
    ),
    user("Fine. Tomorrow I want to try olives in the dough; remind me to drain them."),
)
GARAGE = chat(
    user("Please make src/config/loader.py read TOML instead of JSON, and never touch the command line interface."),
    assistant("I read the loader first.", ("c1", "read_file")),
    tool("c1", "def load_config(path):\n    return json.loads(path.read_text())\n" * 20),
    assistant(
        "load_config parses JSON. I replaced json.loads by tomllib.loads; the defaults have no timeout any more."
    ),
    user("The tests fail with KeyError: 'timeout' in test_defaults. Keep the old default of 30 seconds."),
    assistant("The default timeout of 30 seconds is back in DEFAULTS, and test_defaults passes again."),
    user("Now the migration: existing users have settings.json. Convert it once, leave the old file where it is."),
    assistant("I am writing convert_settings in src/config/migration.py; it renames nothing and writes settings.toml."),
    user("The installer copies presets into the profile folder. Do these have to be converted as well?"),
    assistant("No: presets are read by the wizard alone, which understands both formats since last summer."),
)
ABOUT_BREAD = (
    "The user bakes a sourdough bread with rye flour. The starter doubled after it was fed twice a day.",
    "The dough has 500 g of flour, 350 g of water and 10 g of salt and is folded every half hour.",
    "The last loaf had a pale crust and a dense crumb; the cast-iron pot is preheated, the lid taken off later.",
    "Olives shall be drained and put into the dough tomorrow.",
)
ABOUT_THE_LOADER = (
    "The loader in src/config/loader.py reads TOML now instead of JSON; the command line must not be touched.",
    "KeyError 'timeout' in test_defaults: the default of 30 seconds was missing and is back.",
    "Users with a settings.json shall have it converted once; the old file stays.",
    "convert_settings in src/config/migration.py is being written.",
)
GENERIC = (
    "The user requested several modifications to the codebase, and the assistant implemented them.",
    "The relevant files were identified, opened and edited, and some errors were fixed.",
    "All tests pass, and the solution works as expected.",
    "The next step is to review the changes.",
)
TWO_NAMES = (
    *GENERIC[:1],
    "The relevant files src/config/loader.py and test_defaults were opened and edited.",
    *GENERIC[2:],
)
GERMAN = (
    "Der Benutzer möchte, dass src/config/loader.py TOML statt JSON liest; die Kommandozeile bleibt unverändert.",
    "Der Fehler KeyError 'timeout' in test_defaults wurde behoben, der Vorgabewert beträgt wieder 30 Sekunden.",
    "Eine vorhandene settings.json wird einmal umgewandelt, und zwar von convert_settings.",
)
CHINESE = (
    "用户希望 src/config/loader.py 读取 TOML，而不是 JSON，并且不得修改命令行。",
    "test_defaults 因 KeyError 'timeout' 失败，现已恢复默认的三十秒。",
    "正在编写 src/config/migration.py 中的 convert_settings，旧的 settings.json 保留。",
)
GERMAN_BREAD = (
    "Die Nutzerin backt ein Brot aus Sauerteig mit Roggenmehl und füttert den Ansatz zweimal am Tag.",
    "Der Teig wird alle dreißig Minuten gefaltet und geht über Nacht im Kühlschrank.",
    "Beim letzten Mal war die Kruste zu hell, deshalb wird der Topf länger vorgeheizt.",
)


def told(messages):
    return subject_texts(messages)


def in_form(lines, name):
    """Return the lines as prose, or in the first sections of a form."""
    schema = load_schema(name)
    if not schema.section:
        return " ".join(lines)
    bodies = [*lines, *["None"] * 9][: len(schema.section)]
    if schema.headings == "labels":
        bodies = [*lines[: len(schema.section) - 1], " ".join(lines[len(schema.section) - 1 :])]
    return "\n\n".join(f"{schema.heading(n)}\n{body}" for n, body in enumerate(bodies, 1))


def judged(lines, name, messages):
    schema = load_schema(name)
    found = accept_reply(SummaryReply(text=in_form(lines, name)), schema, summary_prompt(name, ""), told(messages))
    return found.reason if isinstance(found, Failed) else ""


@pytest.mark.parametrize("form", ["brief", "cc_9", "cw_9", "flush"])
def test_a_summary_of_the_chat_counts_and_does_not_count_for_another(form):
    """R-526: a chat about bread may have a summary about bread; in a coding chat nine sections of it do not count."""
    for lines in (ABOUT_THE_LOADER, GERMAN, CHINESE):
        assert judged(lines, form, GARAGE) == "", lines
        assert judged(lines, form, KITCHEN) in (ELSEWHERE, ANYWHERE), lines
    assert judged(ABOUT_BREAD, form, KITCHEN) == ""
    for lines in (ABOUT_BREAD, GERMAN_BREAD):
        assert judged(lines, form, GARAGE) == ELSEWHERE, lines


@pytest.mark.parametrize("form", ["brief", "cc_9", "cw_9", "flush"])
def test_generic_prose_is_not_a_summary_even_with_two_names(form):
    """R-526: two file names are easily copied."""
    for messages in (GARAGE, KITCHEN):
        assert judged(GENERIC, form, messages) == ANYWHERE
    assert judged(TWO_NAMES, form, GARAGE) == ANYWHERE


def test_remarks_about_empty_sections_do_not_count():
    """R-526: a small model writes them instead of `None`."""
    remarks = ["No errors were encountered.", "There are no pending tasks.", "The session has ended."]
    assert why_not_about([*ABOUT_THE_LOADER, *remarks * 2], History(told(GARAGE))) == ""
    assert why_not_about(remarks, History(told(GARAGE)))


def test_a_text_about_one_of_many_subjects_counts():
    """R-526: in a long history a word repeated in only one stretch is rare."""
    others = [f"We discussed item{n} of the {topic} again. " * 60 for n, topic in enumerate(["garden", "roof"] * 60)]
    assert why_not_about(ABOUT_THE_LOADER, History((*others, *told(GARAGE), *others))) == ""
    assert why_not_about(ABOUT_BREAD, History((*others, *told(GARAGE), *others))) == ELSEWHERE


def test_the_summary_of_a_part_is_judged_by_that_part():
    """R-120: the rest of the history may be about other things."""
    request = SummaryRequest(prompt="P", subject=GARAGE, max_output_tokens=500, part=1, parts=2)
    part = tuple(message.text for message in KITCHEN)
    assert Question(request, load_schema("brief"), "P", 500, part=part).about(told) == (*part, *told(GARAGE))
    assert Question(request, load_schema("brief"), "P", 500).about(told) == told(GARAGE)


def test_of_a_long_history_a_limited_part_is_read():
    """Messages and calls come first, tool results get the rest; long texts keep head and tail."""
    long = chat(user("begin " + "a" * 400_000 + " end"), tool("c1", "b" * 400_000), user("Rename the harbour."))
    texts = subject_texts(long)
    assert sum(map(len, texts)) <= 240_002
    assert "Rename the harbour." in texts
    assert texts[0].startswith("begin ")
    assert texts[0].endswith(" end")
    assert cut_evenly(["ab", "cdefgh", "ijklmnop"], 10) == ["ab", "cd\ngh", "ij\nop"]
    assert cut_evenly(["ab", "cd"], 4) == ["ab", "cd"]


def test_a_million_tokens_are_judged_in_a_moment():
    """50 ms on an idle machine; the bound here allows for a busy one."""
    lines = [
        f"In module_{n % 977} the harbour {n % 613} of the {'north' if n % 2 else 'south'} is dredged. " * 20
        for n in range(4000)
    ]
    messages = chat(*(user(line) if n % 2 else tool("c", line) for n, line in enumerate(lines)))
    assert sum(len(message.text) for message in messages) > 4_000_000
    texts = subject_texts(messages)
    begun = time.process_time()
    why_not_about(ABOUT_THE_LOADER, History(texts))
    assert time.process_time() - begun < 1.0


@pytest.mark.parametrize("text", ["-" * 200_000, "a_" * 100_000, "A" * 200_000, "用" * 100_000, "\n" * 100_000])
def test_a_text_without_words_takes_no_longer(text):
    begun = time.process_time()
    assert why_not_about([text], History(told(GARAGE)))
    History([text])
    assert time.process_time() - begun < 2.0
