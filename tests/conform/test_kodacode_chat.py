"""KodaCode's durable summary in a chat: its trigger and its content (R-306…R-320)."""

from __future__ import annotations

import json

import pytest

from codecompanion.errors import ConfigError
from codecompanion.wire.events import Meter
from tests.conform.chat import Chat, Given, chat_with, talk, tool_step
from tests.unit.session.fakes import calls, says

STARTED, UPDATED = "context_compaction_started", "session_history_continuation_updated"
SECTIONS = (
    "## Goal", "## Constraints & Preferences", "## Progress", "### Done", "### In Progress", "### Blocked",
    "## Key Decisions", "## Next Steps", "## Critical Context", "## Relevant Files",
)  # fmt: skip


async def kodacode(root, messages: list[Given], window: int = 1_000_000, policy: str = "kodacode", **more) -> Chat:
    """Return an idle chat without the instruction to be terse, so that its prompt has 100 tokens."""
    return await chat_with(root, policy, messages, window, **{"response_style": "default", **more})


async def summarised(root, messages: list[Given], window: int = 0, **more) -> Chat:
    """Return the chat after `/compact`, or after the next message where a window is given."""
    chat = await kodacode(root, messages, window or 1_000_000, **more)
    await (chat.say("x" * 400) if window else chat.compact())
    assert chat.named(UPDATED)
    return chat


def updated(chat: Chat) -> dict:
    """Return the newest update of the summary."""
    return chat.named(UPDATED)[-1]


def summary(chat: Chat) -> str:
    """Return the summary as the next request contains it: the first message, in the assistant's role."""
    first = chat.view[0]
    assert (first.role, first.text.partition("\n")[0]) == ("assistant", "Compaction Summary:")
    return first.text


def section(chat: Chat, heading: str) -> list[str]:
    """Return the items of a section of the summary."""
    lines = summary(chat).split(heading + "\n")[1].split("\n\n")[0].splitlines()
    assert all(line.startswith("- ") for line in lines)
    return [line[2:] for line in lines]


def said(user: str, assistant: str = "ok") -> list[Given]:
    return [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]


# ---- when


@pytest.mark.parametrize(("window", "planned"), [(10_000, False), (9_999, True)])
async def test_history_at_80_percent_stays_and_above_it_is_summarised(tmp_path, window, planned):
    """R-306, R-307: 8,000 tokens of 10,000 are not above the trigger; both levels are whole numbers, rounded down."""
    chat = await kodacode(tmp_path, talk(39), window)
    await chat.say("x" * 400)
    assert [one["estimated_request_tokens"] for one in chat.named(STARTED)] == [8_000] * planned
    assert bool(chat.changes) is planned
    if planned:
        budget = updated(chat)["input_budget"]
        assert (budget["input_limit_tokens"], budget["trigger_tokens"], budget["target_tokens"]) == (
            9_999,
            7_999,
            5_999,
        )


@pytest.mark.parametrize(
    ("options", "levels"),
    [
        ({"compaction_threshold": 0.5}, (5_000, 4_000)),
        ({"compaction_threshold": 0.08}, (800, 400)),
        ({"compaction_target_threshold": 0.3}, (8_000, 3_000)),
        ({"compaction_threshold": 5_000}, (5_000, 4_500)),
    ],
)
async def test_the_target_is_below_the_trigger(tmp_path, options, levels):
    """R-306: the target is threshold − 0.10, or half of the threshold; in tokens, trigger − limit / 20."""
    chat = await summarised(tmp_path, talk(45), 10_000, context_management=options)
    budget = updated(chat)["input_budget"]
    assert (budget["trigger_tokens"], budget["target_tokens"]) == levels


@pytest.mark.parametrize("value", [0, -1, 1, "much"])
async def test_an_invalid_threshold_is_refused(tmp_path, value):
    """R-306, ours: the error names the key, whereas the source corrects the value silently."""
    with pytest.raises(ConfigError, match=r"context_management\.compaction_threshold"):
        await kodacode(tmp_path, [], context_management={"compaction_threshold": value})


async def test_everything_in_an_unshaped_request_counts(tmp_path):
    """R-307: prompt, tools, summary and raw results count, although the sent request was always below the trigger."""
    bare = (await kodacode(tmp_path, talk(3))).tokens()
    assert bare == 100 + 600
    assert (await kodacode(tmp_path, talk(3), system_prompt="S" * 4_000)).tokens() == bare + 900
    tools, none = [await kodacode(tmp_path, talk(3), chars4=False, tools=on) for on in (True, False)]
    assert tools.tokens() > none.tokens() + 1_000
    chat = await summarised(tmp_path, talk(45), 10_000)
    size = -(-len(summary(chat)) // 4)
    assert chat.tokens() == 100 + size + 400 + 100 + 1 > 700
    results = [{"role": "user", "content": "go"}, *tool_step(0, "r" * 28_000, name="grep_search"), *said("a", "b" * 4)]
    shaped = await kodacode(tmp_path, [*results, *talk(2)], 9_000)
    assert shaped.session.control.shaper.current().measure.tokens < 1_000
    await shaped.say()
    assert shaped.named(STARTED)[0]["estimated_request_tokens"] > 7_200


@pytest.mark.parametrize(("chars", "planned"), [(406_000, False), (406_004, True)])
async def test_an_unknown_window_is_assumed(tmp_path, chars, planned):
    """R-307, ours: 128,000 tokens (R-506); the meter says that it is a guess."""
    chat = await kodacode(tmp_path, talk(4), 0)
    await chat.say("x" * chars)
    assert bool(chat.changes) is planned
    assert chat.bench.of(Meter)[-1].assumed


async def test_all_but_two_turns_are_summarised_if_that_reaches_the_target(tmp_path):
    """R-308, R-309: exactly the target is enough, one token less is not, and far less is allowed."""
    chat = await summarised(tmp_path, talk(39), 9_999)
    update = updated(chat)
    size = update["input_budget"]["consolidated_request_tokens"]
    assert (update["update_reason"], update["frontier_turn_id"]) == ("semantic_closure", "turn-37")
    assert size < 2_500 < 5_999 == update["input_budget"]["target_tokens"]
    assert chat.texts[1:] == [*[m["content"] for m in talk(39)][-4:], "x" * 400]
    for target, reason, stays in ((size, "semantic_closure", 4), (size - 1, "token_pressure", 0)):
        options = {"compaction_target_threshold": target, "compaction.summary_size": {"target_share": 1}}
        again = await summarised(tmp_path, talk(39), 9_999, context_management=options)
        assert updated(again)["update_reason"] == reason
        assert again.texts[1:] == [*[m["content"] for m in talk(39)][78 - stays :], "x" * 400]


async def test_otherwise_all_finished_turns_are_summarised_and_never_the_running_one(tmp_path):
    """R-309: tested with two large turns, a message so large that the target cannot be reached, and a tool loop."""
    chat = await summarised(tmp_path, [*talk(2), *talk(2, 12_000)], 15_000)
    assert (updated(chat)["update_reason"], updated(chat)["frontier_turn_id"]) == ("token_pressure", "turn-4")
    assert chat.texts[1:] == ["x" * 400]
    large = await kodacode(tmp_path, talk(10), 9_000)
    await large.say("y" * 24_000)
    budget = updated(large)["input_budget"]
    assert budget["consolidated_request_tokens"] > budget["target_tokens"]
    assert large.texts[1:] == ["y" * 24_000]
    (tmp_path / "long.txt").write_text("a line of words\n" * 400)
    steps = iter([calls((f"c{n}", "read_file", '{"path": "long.txt"}')) for n in range(3)])
    loop = await kodacode(tmp_path, talk(20), 9_900, tools=True, replies=lambda request: next(steps, says("done")))
    await loop.say("read it")
    assert updated(loop)["frontier_turn_id"] in ("turn-18", "turn-20")
    assert [m.role for m in loop.request if m.cycle == 21 and not m.tag] == ["user", *["assistant", "tool"] * 3]


async def test_two_finished_turns_give_the_first_candidate_nothing(tmp_path):
    """R-309 (a): the candidate must cover more than the current summary does."""
    chat = await summarised(tmp_path, talk(2, 12_000), 15_000)
    assert updated(chat)["update_reason"] == "token_pressure"


# ---- what the summary says

GOAL = "Port the parser of src/parse.lua. Do not touch the migrations!"
WORK = [
    {"role": "user", "content": GOAL},
    *tool_step(1, "text " * 500, name="read_file", arguments='{"path": "src/parse.lua"}'),
    *tool_step(2, "ok", name="insert_edit_into_file", arguments='{"path": "src/parse.lua"}'),
    {"role": "assistant", "content": "Decision: use LPeg because it is small\nWarning: main is slow\nNext: add tests"},
    {"role": "user", "content": "And what is still missing?"},
    *tool_step(3, "exit code: 1", name="run_command", arguments='{"command": "make test"}'),
    {
        "role": "assistant",
        "content": "I decided to keep `load`. Blocked on your token. Do not run it twice. Next I will write docs.\n"
        "Constraint: no new dependency",
    },
]  # fmt: skip


async def test_the_summary_has_seven_sections_with_the_decisions(tmp_path):
    """R-314, R-316, R-320: decisions come from labels and plain sentences, each quoted with its turn.

    Files have a reason.
    """
    chat = await summarised(tmp_path, WORK)
    headings = [line for line in summary(chat).splitlines() if line.startswith("#")]
    assert headings == list(SECTIONS)
    assert section(chat, "## Goal") == [GOAL]
    assert section(chat, "## Constraints & Preferences") == [
        'turn-1: "Do not touch the migrations!"', "no new dependency",
    ]  # fmt: skip
    assert section(chat, "## Key Decisions") == [
        "use LPeg (because it is small)", 'turn-2: "I decided to keep `load`."',
    ]  # fmt: skip
    assert section(chat, "### Blocked") == ['waiting on the user: turn-2: "Blocked on your token."']
    assert section(chat, "### In Progress") == ["(none)"]
    assert section(chat, "## Next Steps") == ["add tests", 'turn-2: "Next I will write docs."']
    assert section(chat, "## Critical Context")[-2:] == ["main is slow", 'turn-2: "Do not run it twice."']
    assert section(chat, "## Relevant Files")[0] == "src/parse.lua: edited, read, named by the user"
    first, second = section(chat, "### Done")
    assert first.startswith("turn-1: Port the parser")
    assert first.endswith("[2 tool calls succeeded, 0 failed]")
    assert second.endswith("[0 tool calls succeeded, 1 failed]")


async def test_under_strict_only_labels_count(tmp_path):
    """R-314, R-320: `strict` follows the source."""
    chat = await summarised(tmp_path, WORK, policy="kodacode strict")
    assert "I decided to keep" not in summary(chat).partition("## Key Decisions")[2]
    assert section(chat, "## Next Steps") == ["add tests"]


async def test_the_artifact_has_the_documents_fields_and_every_item_its_turn(tmp_path):
    """R-315: the artifact is read from the logged event."""
    artifact = updated(await summarised(tmp_path, WORK))["artifact"]
    fields = {
        "settled_decisions": {"decision", "rationale", "status", "source_turn_id"},
        "completed_episodes": {"episode_id", "summary", "touched_paths", "verification", "source_turn_ids"},
        "open_threads": {"item", "status", "blocking", "owner", "source_turn_id"},
        "workspace_facts": {"path", "fact", "source_turn_id"},
        "page_in_hints": {"when", "match_kinds", "tool_names", "paths", "call_ids", "source_turn_ids"},
    }
    assert (artifact["session_objective"], len(artifact["constraints"])) == (GOAL, 2)
    for name, keys in fields.items():
        assert artifact[name], name
        for item in artifact[name]:
            assert keys <= set(item), name
            turns = item.get("source_turn_ids", [item.get("source_turn_id")])
            assert set(turns) in ({"turn-1"}, {"turn-2"}), name
    for episode in artifact["completed_episodes"]:
        assert {frozenset(one) for one in episode["verification"]} == {frozenset(("kind", "value", "succeeded"))}
    json.dumps(artifact)


@pytest.mark.parametrize(
    ("window", "target", "size"),
    [(12_000, 0.6, 1_024), (40_000, 0.6, 2_500), (100_000, 0.6, 4_096), (40_000, 2_000, 2_000)],
)
async def test_the_summary_uses_its_bytes_for_rules_and_warnings_first(tmp_path, window, target, size):
    """R-317: of 57 items each, those with never, must or do not come first, then the newest.

    At most a quarter of the target.
    """
    turns = [
        m
        for n in range(57)
        for m in said(
            f"You must never rename table {n}." if n % 5 == 0 else f"Please keep part {n} short.",
            f"Warning: {'do not run' if n % 5 == 0 else 'slow is'} stage {n}\n" + "word and word " * (window // 150),
        )
    ]
    options = {"compaction_target_threshold": target}
    chat = await summarised(tmp_path, turns, window, context_management=options)
    text = updated(chat)["rendered_summary"]
    assert size - 200 < len(text.encode()) <= size
    rules, warnings = section(chat, "## Constraints & Preferences"), section(chat, "## Critical Context")
    count = updated(chat)["consolidated_turn_count"]
    for lines, strict, other in ((rules, "You must never rename table {}.", "Please keep part {} short."),
                                 (warnings, "do not run stage {}", "slow is stage {}")):  # fmt: skip
        ranked = [strict.format(n) for n in range(0, count, 5)][::-1]
        ranked += [other.format(n) for n in range(count)[::-1] if n % 5]
        words = {line.partition(': "')[2].rstrip('"') or line for line in lines}
        assert words == set(ranked[: len(lines)])
        assert len(lines) >= 5


async def test_lines_have_their_limits_in_bytes(tmp_path):
    """R-318: the limits are goal 240, assistant text 320, episode 360, file 240.

    At most 12 files and 6 failed tools.
    """
    long = "mühsam " * 300
    labels = ("Decision", "Next", "Constraint", "Warning", "Blocked")
    reads = list[Given]()
    for n in range(30):
        path = f"{'ü/' * (99 if n in (19, 29) else 2)}{n}.py"
        reads += tool_step(n, "gone" if n > 20 else "ok", name="read_file", arguments=json.dumps({"path": path}))
    history = [
        *said("Port the parser: " + long, "\n".join(f"{label}: {label} {long}" for label in labels)),
        {"role": "user", "content": "read"}, *reads, {"role": "assistant", "content": "done"},
        *said("third"), *said("fourth"),
    ]  # fmt: skip
    for one in history:
        one["meta"] = {"is_error": one.get("content") == "gone"}
    chat = await summarised(tmp_path, history)
    limits = {"## Goal": 240, "### Done": 360, "## Relevant Files": 240} | dict.fromkeys(
        ("## Constraints & Preferences", "## Key Decisions", "### Blocked", "## Next Steps"), 320
    )
    for heading, limit in limits.items():
        sizes = [len(line.encode()) for line in section(chat, heading)]
        assert 0.75 * limit < max(sizes) <= limit, heading
    assert "\ufffd" not in summary(chat)
    files = [line for line in section(chat, "## Relevant Files") if line.startswith("ü/")]
    assert len(files) == 12
    failed = [
        v
        for e in updated(chat)["artifact"]["completed_episodes"]
        for v in e["verification"]
        if v["value"][:4] == "read"
    ]
    assert (len(failed), max(len(one["value"].encode()) for one in failed)) == (6, 64)


async def test_a_summary_is_the_old_one_and_the_new_turns(tmp_path):
    """R-319: covered turns are not read again; steering and thanks do not change the goal; no fact is repeated."""
    rest = " Here it is, with all its words." * 40
    first = [
        *said("Port the parser.", f"Warning: main is protected{rest}"),
        *said("continue", rest),
        *said("thanks!", rest),
    ]
    chat = await kodacode(tmp_path, [*first, *talk(40)], 11_000)
    await chat.say()
    before = updated(chat)
    assert section(chat, "## Goal") == ["Port the parser."]
    chat.bench.adapter._replies = lambda request: says(f"Warning: Main is **protected**.{rest}")
    for number in range(2, 30):
        await chat.say("I want a linter, too." if number == 2 else f"step {number}", number)
        if updated(chat) is not before:
            break
    after = updated(chat)
    assert (
        after["newly_consolidated_turn_count"] == after["consolidated_turn_count"] - before["consolidated_turn_count"]
    )
    old, new = before["artifact"]["completed_episodes"], after["artifact"]["completed_episodes"]
    assert new[: len(old)] == old
    assert len({one["episode_id"] for one in new}) == len(new) == after["consolidated_turn_count"]
    assert section(chat, "## Goal") == ["I want a linter, too."]
    facts = [one["fact"][:20].lower().replace("*", "") for one in after["artifact"]["workspace_facts"]]
    assert facts.count("main is protected. h") <= 1
