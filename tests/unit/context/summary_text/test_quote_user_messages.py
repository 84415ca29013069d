"""The user's words are in a summary because code puts them there (R-431, lesson 11)."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codecompanion.context.ledger.ledger import summarise
from codecompanion.context.message_facts import demands
from codecompanion.context.policy import policy_catalog
from codecompanion.context.strategy_parameters import QuoteUserMessages
from codecompanion.context.summary_text import fit_quotes as user_quotes
from codecompanion.context.summary_text.fit_quotes import fit_quotes, gather_quotes
from codecompanion.context.summary_text.place_quotes import put_quotes, read_quotes
from codecompanion.context.summary_text.quote_lines import Quote, Quotes, joined, parse_quotes, render_quotes
from codecompanion.context.summary_text.quote_user_messages import quote_user_messages
from codecompanion.context.summary_text.recall_keys import span_of
from codecompanion.context.summary_text.sections import load_schema, parse_sections
from codecompanion.context.work import Details, Work
from codecompanion.model.messages import SUMMARY_TAG, ImagePart, Message, TextPart
from codecompanion.placeholders import LEDGER_HEADING, QUOTES_HEADING, SUMMARY_PREFIX, quote_request
from tests.unit.context.builders import assistant, chars4, chat, env, user

PIECES = [*"ab >-\n\r.#\t…", "1. **Pending Tasks**\n", "```", QUOTES_HEADING, LEDGER_HEADING]
TEXT = st.lists(st.sampled_from(PIECES), min_size=1, max_size=20).map("".join)


def written(schema_name="cc_9", users="- whatever the model thinks the user said"):
    """Return a model's summary."""
    schema = load_schema(schema_name)
    return "\n".join(
        f"{schema.heading(n)}\n{users if section.role == 'user_messages' else f'prose {n}'}\n"
        for n, section in enumerate(schema.section, 1)
    )


def quoted(removed, summary, *, budget=8000, params=None):
    """Run the strategy on a summary; return the work."""
    work = Work(before=removed, messages=(), removed=removed, summary=summary,
                details=Details(summary_budget_tokens=budget))  # fmt: skip
    outcome = quote_user_messages(work, params or QuoteUserMessages(), env(removed, 100_000))
    assert isinstance(outcome, Work)
    return outcome


@pytest.mark.parametrize("schema", ["cc_9", "cw_9"])
def test_the_section_is_rebuilt_from_the_log_whatever_the_model_wrote(schema):
    """R-431: the model's list is not trusted; every other section stays."""
    removed = chat(user("rename `load`"), assistant("done"), user("no, NOT the public one!\n\n- ok?"))
    outcome = quoted(removed, written(schema))
    found = parse_sections(outcome.summary, load_schema(schema))
    number = load_schema(schema).number_of("user_messages")
    assert found.body(number) == "> rename `load`\n\n> no, NOT the public one!\n>\n> - ok?"
    assert [found.body(n) for n in range(1, 10) if n != number] == [f"prose {n}" for n in range(1, 10) if n != number]
    assert outcome.details.user_messages_quoted == 2


def test_short_facts_come_first_only_if_the_policy_says_so():
    """A user's own policy keeps working as before; all shipped ones enable it, for small windows."""
    said = [user(f"{'Explain the usual order. ' * 20}I got number {4000 + n} there.") for n in range(9)]
    removed = chat(*(message for one in said for message in (one, assistant("done " * 200))))
    work = Work(before=removed, messages=(), removed=removed, summary=written(), details=Details())
    told = [
        quote_user_messages(work, QuoteUserMessages(facts_below=below), env(removed, 2_000)).summary.count("number 40")
        for below in (0, 2_000, 2_001)
    ]
    default = quote_user_messages(work, QuoteUserMessages(), env(removed, 2_000)).summary.count("number 40")
    assert default == told[0] == told[1] < told[2] == 9
    folder = Path(policy_catalog.__file__).parents[1] / "policies"
    for text in (path.read_text() for path in folder.glob("*.toml")):
        assert text.count('use = "quote_user_messages"') == text.count("\nfacts_below = 16000") + text.count(
            " facts_below = 16000"
        )


def test_a_summary_without_sections_has_the_quotes_below():
    """K17: a free text (S9, S11) includes the user's words, too."""
    outcome = quoted(chat(user("go on"), assistant("yes")), "All is well.")
    assert outcome.summary == f"All is well.\n\n{QUOTES_HEADING}\n> go on"


def test_only_typed_text_is_quoted():
    """R-002: attachments, rules and our own prompts to continue are not user messages."""
    removed = chat(user("mine"), user("attached", tag="file"), user("Go on.", tag="go_on"), assistant("x"))
    assert quoted(removed, "text").details.user_messages_quoted == 1


def test_a_picture_is_named():
    removed = chat(user((TextPart("look"), ImagePart(path="shot.png"))))
    assert "> look\n> [image shot.png]" in quoted(removed, "text").summary


def test_a_long_message_keeps_head_and_tail_in_3000_characters():
    """R-431."""
    text = "".join(f"{n:05d}" for n in range(2000))
    (quote,) = gather_quotes(chat(user(text)), 3000).quotes
    assert len(quote.text) <= 3000
    assert quote.text.startswith(text[:1500])
    assert quote.text.endswith(text[-500:])


def test_without_room_the_oldest_become_one_line_excerpts():
    """R-431: the quotes have 40 % of the summary's budget; the newest stay complete."""
    removed = chat(*[user(f"message {n}\n" + "words " * 60) for n in range(20)])
    outcome = quoted(removed, written(), budget=3000)
    said = read_quotes(outcome.summary)
    assert chars4("\n".join(render_quotes(said))) <= 1200
    whole = [quote.whole for quote in said.quotes]
    assert whole == sorted(whole)
    assert 0 < sum(whole) < 20
    assert [quote.text.split("\n")[0][:10].strip() for quote in said.quotes] == [
        f"message {n}"[:10].strip() for n in range(20)
    ]
    assert said.left_out == 0


def test_without_any_room_the_oldest_are_counted():
    """For any number of messages, none is lost without a note."""
    removed = chat(*[user(f"message {n} " + "words " * 30) for n in range(500)])
    said = read_quotes(quoted(removed, written(), budget=1000).summary)
    assert said.total == 500
    assert said.quotes[-1].text.startswith("message 499")


def test_the_users_demands_are_kept_longer_than_questions():
    """R-431: the rules in the first messages are still there after forty more questions."""
    rules = [
        "Never touch conf/prod.ini.",
        "Answer in German.",
        "Always run make test first.",
        "Only edit files in src/.",
    ]
    asked = [f"Please look at src/module_{n}.py and fix problem {n}. " for n in range(48)]
    texts = [ask + (rules[n] if n < len(rules) else "") for n, ask in enumerate(asked)]
    said, outcome = gather_quotes(chat(*map(user, texts)), 3000), texts
    for _ in range(3):
        kept = fit_quotes(said, 450, 120, chars4)
        outcome = "\n".join(render_quotes(kept))
        assert [rule for rule in rules if rule not in outcome] == []
        assert kept.quotes[-1].text.strip() == texts[-1].strip()
        assert kept.total == 48
        said = parse_quotes(outcome.split("\n"))
    assert chars4(outcome) <= 450


def test_an_excerpt_keeps_the_demands_of_its_message():
    """They are at the end of a long message as often as at its beginning."""
    story = "The loader reads a file and then another one, which takes a while on the machine of a colleague. " * 12
    removed = chat(user(story + "Never write below vendor/."), *[user("words " * 50) for _ in range(9)])
    first = fit_quotes(gather_quotes(removed, 3000), 350, 120, chars4).quotes[0]
    assert not first.whole
    assert first.text.startswith("The loader reads")
    assert first.text.endswith("… Never write below vendor/.")


def test_rules_are_complete_before_any_question_is_quoted():
    """At 4k the rule of the first message was shortened, and four routine questions were quoted in full."""
    rule = "Port the shop to the new loader. " + " ".join(
        f"Never touch conf/prod.{n}, it is not ours." for n in range(9)
    )
    questions = [
        f"What does the function load_part_{n} in shop/part_{n}.py return, and who calls it?" for n in range(4)
    ]
    said = gather_quotes(chat(user(rule), *map(user, questions)), 3000)
    for budget in (160, 170, 180):
        kept = fit_quotes(said, budget, 120, chars4)
        assert kept.quotes[0].text == rule
        assert kept.quotes[0].whole
        assert kept.quotes[-1].text == questions[-1]
        assert 0 < kept.left_out == 5 - len(kept.quotes)
        assert chars4("\n".join(render_quotes(kept))) <= budget


@pytest.mark.parametrize("budget", [60, 80, 100, 120])
def test_a_rule_without_full_room_keeps_as_much_as_fits(budget):
    """Part of the rule's message is better than one more question."""
    rule = "Port the shop to the new loader. " * 4 + " ".join(f"Never touch conf/prod.{n}." for n in range(20))
    said = gather_quotes(chat(user(rule), *[user(f"What is in part {n}?") for n in range(4)]), 3000)
    kept = fit_quotes(said, budget, 120, chars4)
    assert "Never touch conf/prod.0." in kept.quotes[0].text
    assert chars4("\n".join(render_quotes(kept))) <= budget


def test_the_newest_message_is_shortened_instead_of_excerpted():
    removed = chat(user("start " + "word " * 500 + "end"))
    (quote,) = read_quotes(quoted(removed, written(), budget=1000).summary).quotes
    assert quote.text.startswith("start word")
    assert quote.text.endswith("end")
    assert len(quote.text) > 800


def test_quotes_in_earlier_summaries_are_carried_over():
    """R-424: nothing is lost over n compactions, even with the quoted request of an interrupted loop after it."""
    summary, total = "", []
    for round_number in range(6):
        words = f"round {round_number}\n\nplease"
        total.append(words)
        before = (
            (Message(id="s", role="user", tag=SUMMARY_TAG, content=SUMMARY_PREFIX + summary + quote_request("old")),)
            if summary
            else ()
        )
        text = written() if round_number % 2 else "free text"
        summary = quoted((*before, *chat(user(words))), text).summary
        summary += f"\n\n{LEDGER_HEADING}\n- Files: a.py" if round_number % 3 else ""
    assert [quote.text for quote in read_quotes(summary).quotes] == total


def test_a_list_written_by_a_model_is_kept_as_excerpts():
    """A chat compacted without this step keeps the user messages listed in its summary."""
    said = read_quotes(written(users="- use tabs\n- and be quick\n\nHe was angry."))
    assert said.quotes == (Quote("use tabs", False), Quote("and be quick", False), Quote("He was angry.", False))


def test_the_closing_tag_of_a_wrapper_is_not_a_user_message():
    """R-433: the wrapper is the block around a summary."""
    text = "<tag>\n" + put_quotes("text", "> hi") + "\n</tag>"
    assert read_quotes(text).quotes == (Quote("hi"),)


QUOTES = TEXT.map(Quote) | st.from_regex(r"[ab#.…][ab #.]{0,20}[ab]", fullmatch=True).map(
    lambda text: Quote(text, False)
)


@pytest.mark.slow("random texts of many messages")
@settings(max_examples=300, deadline=None)
@given(st.lists(QUOTES, max_size=8), st.integers(0, 3), st.sampled_from(["cc_9", "cw_9", ""]))
def test_the_quotes_can_be_parsed_again(quotes, left_out, schema):
    """The quotes are equal byte for byte, for any typed text: headings, fences, quotes, empty lines."""
    said = Quotes(tuple(quotes), left_out)
    block = "\n".join(render_quotes(said))
    assert parse_quotes(block.split("\n")) == said
    if block:
        summary = put_quotes(written(schema) if schema else "free", block)
        assert read_quotes(SUMMARY_PREFIX + summary) == said


@pytest.mark.sweep
@settings(max_examples=300, deadline=None)
@given(st.lists(TEXT.map(lambda text: text * 20), max_size=12), st.integers(20, 2000), st.integers(0, 5))
def test_the_budget_is_kept_and_every_message_counted(texts, budget, left_out):
    """R-431: this applies to any budget."""
    said = Quotes(tuple(map(Quote, texts)), left_out)
    kept = fit_quotes(said, budget, 120, chars4)
    assert kept.total == said.total
    assert chars4("\n".join(render_quotes(kept))) <= max(budget, 14)
    again = fit_quotes(kept, budget, 120, chars4)
    assert again.total == said.total


def test_a_message_is_searched_for_demands_once(monkeypatch):
    """To make a summary fit, it is written a dozen times: 300 messages used to take seven times as long."""
    searched: list[str] = []

    def find(texts):
        searched.extend(texts)
        return demands.find_demands(texts)

    monkeypatch.setattr(user_quotes, "find_demands", find)
    said = [Message(id=f"u{n}", role="user", content=f"Never touch conf/{n}. " + f"See {n}. " * 80) for n in range(60)]
    assert summarise(said, 512, lambda text: len(text) // 4)
    assert len(searched) >= len(said)
    assert len(searched) == len(set(searched))


@given(
    st.lists(st.sampled_from(["ok then", "Never touch a.py.", "why? " * 90, "Keep b.py. " + "so " * 300]), max_size=6),
    st.integers(0, 3),
    st.integers(-50, 400),
)
def test_any_quotes_fit_any_budget_or_are_counted(texts, left_out, budget):
    """Nothing is lost without a note: omitted messages are counted, even with no room at all."""
    said = gather_quotes(chat(*map(user, texts)), 3000)
    kept = fit_quotes(msgspec.structs.replace(said, left_out=left_out), budget, 120, chars4)
    assert kept.total == len(texts) + left_out
    if budget > 40:
        assert chars4("\n".join(render_quotes(kept))) <= budget


def fitted_plainly(said, budget, chars, count):
    """Return the result of `fit_quotes` with every quote and every excerpt measured first."""
    q = user_quotes
    sizes = [q._size([quote], count) for quote in said.quotes]
    room = budget - (q._size_left_out(said, count) if said.left_out else 0)
    if sum(sizes) <= room or not sizes:
        return said
    wanted = [demands.find_demands([quote.text]) for quote in said.quotes]
    ranks, newest = [q._rank(found) for found in wanted], len(sizes) - 1
    ruling = sorted((i for i in range(newest) if ranks[i]), key=lambda i: (ranks[i], i), reverse=True)
    short = [q._excerpt(quote, chars, found) for quote, found in zip(said.quotes, wanted, strict=True)]
    for less in (chars // 2, chars // 4):
        if sum(q._size([short[i]], count) for i in ruling) > room // 2:
            less_said = {i: q._excerpt(said.quotes[i], less, wanted[i]) for i in ruling}
            short = [less_said.get(i, quote) for i, quote in enumerate(short)]
    shorter = [q._size([quote], count) for quote in short]
    if sum(shorter) + sum(sizes[i] - shorter[i] for i in ruling) > room:
        keys = joined(said.left_keys, span_of([quote.key for quote in said.quotes]))
        room = budget - q._size_left_out(Quotes(left_out=said.total, left_keys=keys), count)
    told = dict[int, int]()

    def take(places, measured, leaving, stop):
        nonlocal room
        for i in places:
            more = measured[i] - told.get(i, 0)
            if more <= 0 or room - more >= leaving:
                told[i], room = measured[i], room - more
            elif stop:
                return

    take([newest, *ruling], shorter, 0, False)
    take([i for i in ruling if i in told], sizes, budget // 8, False)
    take([i for i in range(newest - 1, -1, -1) if not ranks[i]], shorter, 0, True)
    take([i for i in (newest, *range(newest - 1, -1, -1)) if i in told], sizes, 0, True)
    kept = {i: said.quotes[i] if told[i] == sizes[i] else short[i] for i in sorted(told)}
    if newest in kept and kept[newest] is not said.quotes[newest]:
        kept[newest] = q._shortened(said.quotes[newest], short[newest], room + shorter[newest], count)
    gone = span_of([quote.key for i, quote in enumerate(said.quotes) if i not in kept])
    left_out = said.left_out + len(short) - len(kept)
    return Quotes(tuple(kept.values()), left_out, joined(said.left_keys, gone))


SAID = ["ok then", "Never touch a.py.", "why? " * 90, "Keep b.py. " + "so " * 300, "always test. " * 9, "go on\n\nnow"]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(SAID), max_size=14), st.integers(0, 3), st.integers(-50, 900), st.booleans())
def test_the_quotes_equal_those_of_a_complete_measurement(texts, left_out, budget, keyed):
    said = gather_quotes(chat(*map(user, texts)), 3000, (lambda id: f"r{len(id)}") if keyed else lambda id: "")
    said = msgspec.structs.replace(said, left_out=left_out)
    assert fit_quotes(said, budget, 120, chars4) == fitted_plainly(said, budget, 120, chars4)


def test_of_a_long_chat_only_quotes_that_may_fit_are_measured():
    """2,000 user messages used to take as long as the summary's other checks together."""
    counted = []
    said = gather_quotes(chat(*(user(f"question {n}: " + "why is that so? " * 20) for n in range(2000))), 3000)
    kept = fit_quotes(said, 2000, 120, lambda text: (counted.append(text), chars4(text))[1])
    assert kept.total == 2000
    assert len(counted) < 150
