"""`python -m codecompanion search`: a stable contract, as seen by an outside caller (R-227 … R-238)."""

from __future__ import annotations

import json

import pytest

from tests.contract.command_line import run

FILES = {
    "app/users.py": 'def load_user(key):\n    """Read a user from the database."""\n    return database[key]\n',
    "app/mail.py": "def send_mail(user):\n    return user.address\n",
    "README.md": "# An app\n",
    "; rm -rf": "def odd():\n    return 1\n",
}


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "project"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def search(tmp_path, *arguments, stdin=""):
    status, out, err = run("search", *arguments, stdin=stdin, XDG_CACHE_HOME=str(tmp_path / "cache"))
    return status, [json.loads(line) for line in out.splitlines()], err


def test_a_question_yields_places_in_files(tmp_path, root):
    status, [answer], err = search(tmp_path, "--root", str(root), "where is a user read from the database?")
    assert (status, err) == (0, "")
    assert set(answer) == {"results", "tier", "ms"}
    assert answer["tier"] == "fts"
    first = answer["results"][0]
    assert set(first) == {"path", "start", "end", "score", "method", "symbol", "text"}
    assert (first["path"], first["start"], first["end"], first["symbol"]) == ("app/users.py", 1, 3, "load_user")
    assert first["text"] == FILES["app/users.py"].rstrip("\n")
    assert 0 < first["score"] <= 1


def test_jobs_are_answered_in_order_a_damaged_one_in_its_place(tmp_path, root):
    options = {"root": str(root), "tier": "fts", "top_k": 1}
    jobs = [
        json.dumps({"query": "send mail", "options": options}),
        "{not json",
        json.dumps({"query": "mail", "options": {"tier": "psychic"}}),
        json.dumps({"query": "mail", "options": {"root": "/nowhere/at/all"}}),
        json.dumps({"query": "mail", "color": "red"}),
        json.dumps({"query": "user zebra", "options": {"tier": "fts"}}),
        json.dumps({"query": ""}),
    ]
    status, answers, err = search(tmp_path, "--root", str(root), "--jobs", stdin="\n".join(jobs) + "\n")
    assert status == 2
    first, damaged, tier, folder, unknown, stepped, empty = answers
    assert [(one["path"], one["method"]) for one in first["results"]] == [("app/mail.py", "fts")]
    assert all(set(answer) == {"error"} for answer in (damaged, tier, folder, unknown))
    assert "/nowhere/at/all" in folder["error"]
    assert stepped["tier"] == "terms"
    assert {one["method"] for one in empty["results"]} <= {"terms+common"}
    assert len(err.splitlines()) >= 5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--root", "/nowhere/at/all", "x"), "there is no such folder"),
        ((), "nothing to search for"),
        (("--tier", "psychic", "x"), "invalid choice"),
        (("--top-k", "many", "x"), "invalid int"),
    ],
)
def test_bad_input_is_one_line_and_status_2(tmp_path, arguments, said):
    status, answers, err = search(tmp_path, *arguments)
    assert (status, answers) == (2, [])
    assert said in err
    assert len(err.splitlines()) == 1


def test_top_k_is_clamped(tmp_path, root):
    """R-228."""
    for top_k, most in ((0, 1), (99, 50)):
        _, [answer], _ = search(tmp_path, "--root", str(root), "--top-k", str(top_k), "user mail odd")
        assert 1 <= len(answer["results"]) <= most


@pytest.mark.parametrize("tier", ["fts", "vector", "hybrid", "terms"])
def test_no_tier_returns_more_than_top_k(tmp_path, root, tier):
    """R-228: topK is the limit; R-234 also limits the last two tiers to five."""
    _, [answer], _ = search(tmp_path, "--root", str(root), "--tier", tier, "--top-k", "1", "user mail")
    assert len(answer["results"]) == 1


def test_without_a_place_for_the_index_the_files_are_read(tmp_path, root):
    (tmp_path / "cache").write_text("a file where the folder should be")
    status, [answer], err = search(tmp_path, "--root", str(root), "where is a user read from the database?")
    assert status == 0
    assert "working without an index" in err
    assert answer["results"][0]["path"] == "app/users.py"


@pytest.mark.parametrize(
    ("tier", "top_k", "plain", "broad"),
    [("auto", 3, 3, 3), ("auto", 18, 18, 18), ("fts", 18, 15, 15), ("fts", 3, 3, 5), ("terms", 18, 5, 7)],
)
def test_common_files_come_after_the_results_up_to_the_cap(tmp_path, tier, top_k, plain, broad):
    """R-234, R-236, R-237: at most 15 in total, or as many as requested under `auto`.

    README and manifest are two of them.

    Ours omits them if the question's own words find results.
    """
    root = tmp_path / "many"
    root.mkdir()
    for number in range(30):
        (root / f"mail{number}.py").write_text(f"def send_mail_{number}():  # of the codebase\n    return {number}\n")
    (root / "README.md").write_text("# Letters\n")
    (root / "package.json").write_text("{}\n")
    found = []
    for query in ("send mail", "send mail codebase"):
        _, [answer], _ = search(tmp_path, "--root", str(root), "--tier", tier, "--top-k", str(top_k), query)
        found.append([one["path"] for one in answer["results"]])
    assert len(found[0]) == plain
    assert len(found[1]) == broad
    assert ("README.md" in found[1]) == (broad > plain)


def test_a_word_that_occurs_everywhere_is_not_searched(tmp_path, root):
    """R-230 requires every word, but the words in `code_words.toml` are not indexed (documented in the help)."""
    _, [answer], _ = search(tmp_path, "--root", str(root), "--tier", "fts", "how does the mail return a user.address?")
    assert (answer["tier"], [one["path"] for one in answer["results"]]) == ("fts", ["app/mail.py"])


def test_the_pipeline_of_the_document_has_its_tiers_and_their_weights(tmp_path, root):
    """R-227, R-228, R-236: `--hybrid` is refused where it has no effect, and so is a tier of `ranked`."""
    at = ("--root", str(root))
    _, [document], _ = search(tmp_path, *at, "--strict", "where is mail sent in this project")
    assert document["results"][-1]["path"] == "README.md"
    _, [one], _ = search(tmp_path, *at, "--pipeline", "document", "--hybrid", '{"top_k": 1}', "user")
    _, [all_of_it], _ = search(tmp_path, *at, "--pipeline", "document", "user")
    assert (len(one["results"]), len(all_of_it["results"])) == (1, 2)
    for arguments, said in (
        (("--hybrid", '{"top_k": 1}'), "has no effect under pipeline ranked"),
        (("--strict", "--hybrid", '{"top": 1}'), "unknown field `top`"),
        (("--strict", "--hybrid", "{"), "hybrid"),
        (("--pipeline", "ranked", "--tier", "fts"), "the pipeline ranked has no tiers"),
        (("--pipeline", "ranked", "--strict"), "strict needs the pipeline document, but pipeline is 'ranked'"),
    ):
        status, answers, err = search(tmp_path, *at, *arguments, "user")
        assert (status, answers) == (2, [])
        assert said in err


def test_a_home_folder_is_not_indexed(tmp_path):
    """R-266: nor is a folder that contains one; `index` and `search` report it and create no index."""
    home = tmp_path / "users" / "ann"
    home.mkdir(parents=True)
    (home / "mail.py").write_text("def send_mail():\n    return 1\n")
    cache = tmp_path / "cache"
    for command in (("search", "send mail"), ("index",)):
        for folder in (home, home.parent):
            status, out, err = run(
                command[0], "--root", str(folder), *command[1:], HOME=str(home), XDG_CACHE_HOME=str(cache)
            )
            assert (status, out) == (2, "")
            assert "is not a project, so it is not indexed" in err
    assert not list(cache.rglob("*.db"))
