"""`python -m codecompanion recall`: the contract of R-516 as seen by an outside caller."""

from __future__ import annotations

import json

from codecompanion.model.history import ChatCreated, MessageAdded
from codecompanion.model.messages import Message
from codecompanion.store.opening import open_store
from tests.contract.command_line import run

TEXTS = [
    *(f"Stage {number} of the walk was dull." for number in range(30)),
    "Where shall we keep the spare keys for the boathouse?",
    "Under the third flower pot.",
    *(f"And stage {number} went by in the rain." for number in range(30)),
    "The error was ECONNREFUSED in src/net/socketPool.ts, 数据库连接失败",
]
ROLES = ("user", "assistant")
CHAT = [{"role": ROLES[number % 2], "content": text} for number, text in enumerate(TEXTS)]


def jobs(*wanted):
    status, out, err = run("recall", "--jobs", "-", stdin="".join(json.dumps(job) + "\n" for job in wanted))
    return status, [json.loads(line) for line in out.splitlines()], err


def test_each_query_is_answered_with_places_best_first():
    """At most 20 places are returned; a question finds its reply; names, paths and text without spaces work.

    No word, no result.
    """
    queries = ["the spare keys of the boathouse", "socket pool", "src/net/socketPool.ts", "连接", "dull stage", "?", ""]
    status, [answer], _ = jobs({"messages": CHAT, "queries": queries})
    assert status == 0
    assert set(answer) == {"results"}
    keys, pool, path, chinese, many, *nothing = answer["results"]
    assert set(keys[:2]) == {30, 31}
    assert pool[0] == path[0] == chinese[0] == 62
    assert len(many) == 20
    assert nothing == [[], []]


def test_dates_are_those_of_the_messages():
    """A date is `meta.ts` or the date at the beginning of the text; "yesterday" is the day before the last message."""
    texts = [f"The review of part {n} went well" for n in range(9)]
    dated = [
        {"role": "user", "content": text, "meta": {"ts": f"2023-0{n + 1}-10T12:00:00Z"}} for n, text in enumerate(texts)
    ]
    said = [{"role": "user", "content": f"[10 {month}, 2023] {texts[0]}"} for month in ("May", "June", "July")]
    _, [first, second], _ = jobs(
        {"messages": dated, "queries": ["how did the review in March 2023 go", "the review of a part last month"]},
        {"messages": said, "queries": ["the review on 10 June 2023", "the review last month"]},
    )
    assert [places[0] for places in first["results"]] == [2, 7]
    assert [places[0] for places in second["results"]] == [1, 1]


def test_a_bad_line_is_answered_in_its_place_and_named():
    good = {"messages": CHAT[:2], "queries": ["walk"]}
    status, answers, err = jobs({"messages": CHAT}, good, {"messages": [{"role": "boss"}], "queries": []}, [1],
                                {"messages": [], "queries": [7]}, {"messages": [], "queries": ["x"]})  # fmt: skip
    assert status == 2
    assert [list(answer) for answer in answers] == [
        ["error"],
        ["results"],
        ["error"],
        ["error"],
        ["error"],
        ["results"],
    ]
    assert answers[0]["error"].startswith("standard input:1: ")
    assert "queries" in answers[0]["error"]
    assert answers[2]["error"].startswith("standard input:3: messages[0]")
    assert answers[4]["error"] == "standard input:5: queries[0]: expected a string, found a number"
    assert err.count("standard input:") == 4
    assert answers[5]["results"] == [[]]
    status, out, _ = run("recall", "--jobs", "-", stdin="not json\n")
    assert (status, "standard input:1: not JSON" in json.loads(out)["error"]) == (2, True)
    assert run("recall", "--jobs", "-", stdin="\n")[0] == 2


def test_a_transcript_is_searched_for_words(tmp_path):
    """The output is readable: place, role and matching text."""
    file = tmp_path / "chat.jsonl"
    file.write_text("".join(json.dumps(message) + "\n" for message in CHAT))
    status, out, _ = run("recall", str(file), "flower", "pot")
    assert (status, out) == (0, "    31  assistant  Under the third «flower pot».\n")
    status, out, err = run("recall", str(file), "zzz")
    assert (status, out, err) == (0, "", "codecompanion: nothing found for 'zzz'\n")
    assert run("recall", str(file), "?!")[0] == 2
    assert "with --jobs, the questions come from the jobs" in run("recall", "--jobs", str(file), "pot")[2]


def test_store_and_transcript_yield_the_same_order(tmp_path):
    """`sessions search` and `recall` share one ranking."""
    store = open_store(tmp_path)
    added = [
        MessageAdded(message=Message(id=f"m{n}", role=m["role"], content=m["content"])) for n, m in enumerate(CHAT)
    ]
    store.append("c", [ChatCreated(adapter="a", model="m", policy="p", cwd="/w"), *added]).result()
    store.close()
    queries = ["where are the spare keys of the boathouse", "socket pool error"]
    _, [answer], _ = jobs({"messages": CHAT, "queries": queries})
    for query, places in zip(queries, answer["results"], strict=True):
        _, out, _ = run("sessions", "--data-dir", str(tmp_path), "search", "--json", query)
        assert [int(json.loads(line)["message_id"][1:]) for line in out.splitlines()] == places
