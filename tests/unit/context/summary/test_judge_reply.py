"""Replies that count as summaries, and replies that do not (R-526, R-433; lessons 14, 15, 56)."""

from __future__ import annotations

import re
import time

import pytest

from codecompanion import prompts
from codecompanion.context.summary.judge_reply import accept_reply
from codecompanion.context.summary.summary_run import Question, ask_all, summary_prompt
from codecompanion.context.summary_text.sections import load_schema
from codecompanion.context.work import Failed, SummaryReply, SummaryRequest
from tests.unit.context.builders import assistant, chat, tool, user

HISTORY = chat(
    user("Please make the loader in src/config/loader.py read TOML instead of JSON, and never touch the CLI."),
    assistant("I read the file first.", ("c1", "read_file")),
    tool("c1", "def load_config(path):\n    return json.loads(path.read_text())\n" * 20),
    assistant("The function load_config parses JSON. I replaced json.loads by tomllib.loads and ran the tests."),
    user("Good. The tests fail with KeyError: 'timeout' in test_defaults; fix that as well."),
)
ABOUT = tuple(message.text for message in HISTORY)
PROSE = (
    "The weather in Paris was lovely this spring, with warm afternoons and gentle rain in the evenings. Many visitors"
    " walked along the river, admired the old bridges, and stopped at small cafes for coffee and pastries before"
    " returning to their hotels at night, tired and happy."
)
JUNK = [
    "ok", "OK.", "...", "…", "Done.", "Sure!", "SUMMARY", "Summary:", "-", "{}", "[]", "null", "42", "Yes", "\u200b",
    "I cannot help with that.", "I'm sorry, but I can't assist with that request.",
    "I’m sorry, but as an AI language model I cannot summarise this conversation. " * 5,
    "**I am unable** to process such long inputs. Please share a shorter conversation and I will gladly try. " * 3,
    "Es tut mir leid, aber ich kann dabei nicht helfen. " * 6,
    "Leider kann ich das nicht zusammenfassen, ich bin nicht in der Lage dazu. " * 4,
    "Je suis désolé, mais je ne peux pas vous aider avec cette demande. " * 5,
    "Lo siento, pero no puedo ayudar con esa solicitud. " * 6,
    "Mi dispiace, ma non posso aiutarti con questa richiesta. " * 5,
    "К сожалению, я не могу помочь с этим запросом. " * 6,
    "抱歉，我无法提供这样的帮助。" * 20, "申し訳ありませんが、対応できません。" * 20,
    "Error: 500", "Error 503: the server is overloaded, please try again later. " * 5,
    "500 Internal Server Error\n" + "at handler (server.js:10)\n" * 20,
    '{"error": {"message": "overloaded"}}', "<html><head><title>502 Bad Gateway</title></head></html>" * 5,
    "<!DOCTYPE html>\n<html>" + "<p>Service unavailable</p>" * 20,
    "Traceback (most recent call last):\n" + '  File "server.py", line 1, in main\n' * 10,
    "An error occurred while processing your request. " * 8,
    "Hello! How can I help you today? " * 10, "Please provide the conversation you would like me to summarise. " * 6,
    PROSE, PROSE * 5,
    "<analysis>The user wants a loader.</analysis>", "<think>The user wants src/config/loader.py changed",
    "1. **Primary Request and Intent**\nok\n", "## Summary\n\nThe chat was about things.",
    "\n".join(load_schema("cc_9").heading(n) for n in range(1, 10)),
    "\n".join(f"{load_schema('cc_9').heading(n)}\nNone" for n in range(1, 10)),
]  # fmt: skip
BODIES = ["The loader in src/config/loader.py shall read TOML.", "TOML", "src/config/loader.py", "KeyError: 'timeout'"]


def sections(schema: str, numbers=range(1, 10)) -> str:
    """Return the sections of a schema, the first four with content, the others with `None`."""
    form = load_schema(schema)
    return "\n\n".join(f"{form.heading(n)}\n{(BODIES + ['None'] * 9)[n - 1]}" for n in numbers)


def judge(text: str, schema: str, **fields: object) -> str | Failed:
    form = load_schema(schema)
    return accept_reply(SummaryReply(text=text, **fields), form, summary_prompt(schema, ""), ABOUT)


@pytest.mark.parametrize("schema", ["cc_9", "cw_9", "brief"])
@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
def test_an_unusable_reply_never_replaces_a_history(junk, schema):
    """R-526: each of these, or a similar reply, once replaced a history."""
    found = judge(junk, schema)
    assert isinstance(found, Failed), found
    assert found.again or "cut" in found.reason


def test_there_are_forty_unusable_replies():
    """R-526."""
    assert len(JUNK) >= 40


@pytest.mark.parametrize("schema", ["cc_9", "cw_9"])
def test_half_of_the_sections_with_content_make_a_summary(schema):
    """R-526: the prompt asks for `None` if there is nothing to report."""
    assert judge(sections(schema), schema) == sections(schema)
    assert judge(sections(schema, range(1, 6)), schema) == sections(schema, range(1, 6))
    assert isinstance(judge(sections(schema, range(1, 5)), schema), Failed)


def test_the_prompts_own_words_are_not_content():
    """R-526: a weak model repeats the headings with the prompt's explanations."""
    assert isinstance(judge(summary_prompt("cc_9", ""), "cc_9"), Failed)


@pytest.mark.parametrize(
    "text",
    [
        "The user wants load_config to read TOML. " * 6,
        "The assistant said: I cannot help with that; then the loader was changed after all, and the tests fail. " * 3,
        "Der Nutzer will, dass src/config/loader.py künftig TOML liest; die Tests schlagen mit KeyError fehl. " * 3,
        "用户要求修改 src/config/loader.py，读取 TOML，不得更改命令行。测试因 KeyError 失败。" * 3,
    ],
)
def test_free_text_about_the_history_is_a_summary(text):
    """R-526: the text may be in any language, and it may report a refusal."""
    assert judge(text, "brief") == text.strip()


def test_consent_is_not_a_summary_even_of_the_shortest_history():
    assert isinstance(accept_reply(SummaryReply(text="Ok."), load_schema("brief"), "", ("Hi",)), Failed)


def test_a_short_history_has_a_short_summary():
    """R-526: 200 characters are a lot for a chat of three lines."""
    told = ("Please rename the loader.", "Renamed the loader to reader.", "thanks, and now the tests, please")
    reply = SummaryReply(text="The loader was renamed to reader.")
    assert accept_reply(reply, load_schema("brief"), "", told) == reply.text
    assert isinstance(accept_reply(SummaryReply(text="ok"), load_schema("brief"), "", told), Failed)


def test_the_callers_text_is_accepted_unchanged():
    """By the contract of the command line, `--summary SUMMARY` is the summary; an empty one counts as missing."""
    assert judge("SUMMARY", "cc_9", source="caller") == "SUMMARY"
    assert judge("Okay: the loader reads TOML.", "cc_9", source="caller") == "Okay: the loader reads TOML."
    assert isinstance(judge("", "cc_9", source="caller"), Failed)


@pytest.mark.parametrize(
    "text", ["ok", "OK.", "...", "{}", "I cannot help with that.", "Error: 500", "好的。", "<html>"]
)
def test_an_obviously_unusable_text_is_refused_from_a_caller_too(text):
    """R-526: a script that pipes a model's answer into `--summary` must not destroy a chat."""
    assert isinstance(judge(text, "cc_9", source="caller"), Failed)


def test_reasoning_is_not_the_summary():
    """R-433, lesson 15: text that the model wrote while reasoning is not used."""
    text = sections("cc_9")
    assert judge(f"<think>{text}</think>\n{text}", "cc_9") == text
    assert isinstance(judge(f"<think>{text}", "cc_9"), Failed)


@pytest.mark.parametrize("schema", ["cc_9", "cw_9"])
def test_a_truncated_text_counts_up_to_its_last_complete_section(schema):
    """R-433: it used to be discarded twice and replaced by raw text."""
    whole = sections(schema)
    cut = whole[: whole.index(load_schema(schema).heading(7)) + 40]
    assert judge(cut, schema, stop="length") == sections(schema, range(1, 7))
    assert isinstance(judge(whole[:120], schema, stop="length"), Failed)


def test_an_unusable_reply_causes_one_more_request_with_the_reason():
    """R-526: after a second unusable reply, the summary counts as failed."""
    request = SummaryRequest(prompt="P", subject=HISTORY, max_output_tokens=100)
    for second, expected in (("ok", Failed), (sections("cc_9"), tuple)):
        steps = ask_all([Question(request, load_schema("cc_9"), "P", 200)])
        assert next(steps) == request
        again = steps.send(SummaryReply(text="ok"))
        assert again.prompt.startswith("P\n\n")
        assert "none of the 9 required sections" in again.prompt
        with pytest.raises(StopIteration) as stop:
            steps.send(SummaryReply(text=second))
        assert isinstance(stop.value.value, expected)


def test_reasoning_that_used_up_the_room_gets_its_own():
    """R-433: the next request adds the tokens spent on reasoning to its limit, within the window."""
    request = SummaryRequest(prompt="P", subject=HISTORY, max_output_tokens=1000, room_tokens=6000)
    for spent, expected in ((0, 2000), (3000, 5000), (9000, 6000)):
        steps = ask_all([Question(request, load_schema("cc_9"), "P", 2000)])
        next(steps)
        again = steps.send(SummaryReply(text="", stop="length", thinking_tokens=spent))
        assert again.max_output_tokens == expected


def test_the_prompt_states_the_budget_in_words():
    """R-433."""
    assert "about 700 words" in summary_prompt("cw_9", "", 1000)


def test_judging_a_long_reply_takes_linear_time():
    """A word of a million letters must not block the host."""
    begun = time.process_time()
    assert isinstance(judge("word" * 100_000, "brief"), Failed)
    assert isinstance(judge("a_" * 100_000, "cc_9"), Failed)
    assert time.process_time() - begun < 20


def test_the_pattern_of_refusals_is_unambiguous() -> None:
    """An opener made of two others doubles the parses per repetition: 200 characters of them took a second."""
    openers = prompts.load_table("refusals")["openers"]
    gap = r"[\s,.!;:。、，！-]*"
    for opener in openers:
        others = "|".join(re.escape(other) for other in openers if other != opener)
        assert not re.fullmatch(rf"(?:(?:{others}){gap})+", opener), opener
