"""The project context in a completion prompt: over a real folder and its index (R-266)."""

from __future__ import annotations

import time
from contextlib import aclosing as closing

import pytest

from codecompanion.completion.families import family_named
from codecompanion.completion.window import cut_window
from codecompanion.session.code.indexing import build
from codecompanion.session.complete.project_prompt import KEPT_LINES, Place, SteadyKnowledge, make_project_prompt
from codecompanion.session.complete.project_view import ProjectReader, RecentRange
from codecompanion.store.code_index.reader import IndexReader
from codecompanion.workspace.project_files import Choice
from codecompanion.workspace.secret_files import is_secret
from tests.leftovers import closed_at_end
from tests.providers.completion.server import FillServer
from tests.unit.session.complete.conftest import code

QWEN = family_named("qwen")
FILES = {
    "pkg/store.py": (
        "class Store:\n    def get(self, key: str) -> bytes:\n        return self.rows[key]\n\n\n"
        "def open_store(path: str, *, is_new: bool = False) -> Store:\n    return Store()\n"
    ),
    "pkg/reports.py": (
        "from pkg.store import open_store\n\n\ndef report():\n    store = open_store('x')\n"
        "    print_total(store.get('total'))\n"
    ),
    "pkg/noise.py": "".join(f"value_{number} = {number}\n" for number in range(200)),
    "pkg/.env": "open_store = 'secret words'\n",
}
BEFORE = "from pkg.store import open_store\n\n\ndef other():\n    store = open_store('y')\n    "


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "demo"
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "pkg" / "new.py").write_text(BEFORE)
    return folder


@pytest.fixture
def reader(root, tmp_path):
    index = tmp_path / "index.db"
    build(root, index, Choice(), now_ns=time.time_ns)
    return ProjectReader(root, closed_at_end(IndexReader(index)), is_secret)


def prompt(reader, before=BEFORE, after="\n", family=QWEN, path="pkg/new.py", total=10_000):
    return make_project_prompt(reader, family, path, before, after, total).prompt


def test_an_imported_names_signature_and_code_that_uses_it_are_shown(reader):
    made = prompt(reader)
    assert "def open_store(path: str, *, is_new: bool = False) -> Store" in made
    assert "print_total(store.get('total'))" in made
    assert made.startswith("<|repo_name|>demo\n<|file_sep|>pkg/reports.py\n")
    assert made.endswith(f"<|file_sep|>pkg/new.py\n<|fim_prefix|>{BEFORE}<|fim_suffix|>\n<|fim_middle|>")
    assert prompt(reader) == made


def test_a_secret_file_is_never_shown(reader, root):
    """R-266: it is shown neither from the index, nor as a neighbour, nor because it was visited."""
    weights = {"open_store": 1.0}
    plain = ProjectReader(root, None, is_secret)
    for one in (reader, plain):
        view = one.view("pkg/new.py", _window(), weights, _visited("pkg/.env"))
        assert "pkg/.env" not in [file.path for file in view.files]


def _window():
    return cut_window(BEFORE, "")


def _visited(*paths):
    return tuple(RecentRange(path, 1, 9) for path in paths)


def test_nothing_outside_the_project_is_read(reader, root, tmp_path):
    (tmp_path / "outside.py").write_text("open_store()\n" * 3)
    (root / "pkg" / "link.py").symlink_to(tmp_path / "outside.py")
    visited = _visited("../outside.py", "pkg/link.py", str(tmp_path / "outside.py"), "pkg/gone.py", "pkg")
    view = reader.view("pkg/new.py", _window(), {"open_store": 1.0}, visited)
    assert {file.path for file in view.files} <= {*FILES, "pkg/new.py"}


def test_binary_and_huge_files_are_left_out(reader, root):
    (root / "pkg" / "blob.py").write_bytes(b"open_store\0()")
    (root / "pkg" / "huge.py").write_text("open_store()\n" * 50_000)
    view = reader.view("pkg/new.py", _window(), {"open_store": 1.0}, _visited("pkg/blob.py", "pkg/huge.py"))
    assert not {"pkg/blob.py", "pkg/huge.py"} & {file.path for file in view.files}


def test_a_changed_file_is_shown_in_its_current_state(reader, root):
    prompt(reader)
    (root / "pkg" / "reports.py").write_text("from pkg.store import open_store\nprint_newest(open_store('z'))\n")
    assert "print_newest" in prompt(reader)


def test_without_an_index_neighbours_and_visited_files_are_shown(root, tmp_path):
    none = ProjectReader(root, IndexReader(tmp_path / "none.db"), is_secret)
    (tmp_path / "damaged.db").write_bytes(b"no database at all" * 100)
    damaged = ProjectReader(root, IndexReader(tmp_path / "damaged.db"), is_secret)
    for one in (none, damaged, ProjectReader(root, None, is_secret)):
        assert "print_total" in prompt(one)


def test_the_rest_of_a_long_file_counts_and_a_removed_line_stays_removed(reader, root):
    """The index entries of the file itself are older than its text and are not used."""
    lines = "".join(f"def step_{number}(): pass\n" for number in range(480))
    early = "def early_helper():\n    return open_store('early', special_mode)\n"
    (root / "pkg" / "new.py").write_text(early + lines + "open_store('z', gone_word)\n")
    made = prompt(reader, early + lines + "open_store('z', ")
    assert "special_mode" in made
    assert "gone_word" not in made


def test_other_families_get_comments_within_the_size_limit(reader):
    for name in ("starcoder", "codellama", "deepseek", "plain"):
        made = prompt(reader, family=family_named(name))
        assert "# Path: pkg/store.py\n# class Store\n" in made or "# def open_store(path: str" in made
        assert len(made) <= 10_000
    long = "".join(f"x_{number} = 1\n" for number in range(3_000)) + BEFORE
    for name in ("starcoder", "qwen"):
        assert 9_000 < len(prompt(reader, long, "y = 2\n" * 900, family_named(name))) <= 10_000 + 80


def test_the_context_stays_the_same_during_typing(reader):
    """So the server's prompt cache hits: the context changes once the cursor has moved on."""
    steady = SteadyKnowledge()

    def show(before, line):
        return steady.show(reader, Place(path="pkg/new.py", before=before, after="\n", line=line), 10_000, 0)

    first = show(BEFORE, 5)
    assert first.known
    typed = BEFORE
    for key in "value_1 = value_2 + value_3\n":
        typed += key
        assert show(typed, 5).known is first.known
    assert show(typed, 5 + KEPT_LINES + 1).known is not first.known


class InProject:
    def __init__(self, reader):
        self._reader = reader

    async def find(self, path, cwd):
        return self._reader, path

    async def aclose(self):
        pass


@pytest.mark.parametrize("endpoint", ["ollama", "completions", "llamacpp", "mistral", "deepseek"])
async def test_each_endpoint_gets_the_context_in_its_own_format(make_completer, reader, endpoint):
    async with FillServer(["total()"]) as server:
        completer = make_completer(
            projects=InProject(reader), url=server.address, endpoint=endpoint, api_key="FILL_KEY",
            model="codestral-latest" if endpoint == "mistral" else "qwen2.5-coder", environ={"FILL_KEY": "sk-test"},
        )  # fmt: skip
        async with closing(completer):
            found = await completer.complete(code(before=BEFORE, after="\n", path="pkg/new.py", line=5))
        assert [item.text for item in found.items] == ["total()"]
        body = server.requests[0].json
        match endpoint:
            case "ollama" | "completions":
                assert body["prompt"].startswith("<|repo_name|>demo\n<|file_sep|>")
            case "llamacpp":
                assert body["input_prefix"] == BEFORE
                assert {chunk["filename"] for chunk in body["input_extra"]} >= {"pkg/store.py", "pkg/reports.py"}
            case "mistral" | "deepseek":
                assert body["prompt"].startswith("# Path: pkg/")
                assert body["prompt"].endswith(BEFORE)


async def test_only_the_file_is_sent_if_configured(make_completer, reader):
    async with FillServer(["total()"]) as server:
        completer = make_completer(projects=InProject(reader), url=server.address, project=False)
        async with closing(completer):
            await completer.complete(code(before=BEFORE, after="\n", path="pkg/new.py"))
        assert server.requests[0].json["prompt"] == f"<|fim_prefix|>{BEFORE}<|fim_suffix|>\n<|fim_middle|>"


async def test_an_unreadable_project_does_not_stop_the_completion(make_completer, reader, monkeypatch):
    monkeypatch.setattr(ProjectReader, "view", lambda *_: 1 / 0)
    async with FillServer(["total()"]) as server:
        completer = make_completer(projects=InProject(reader), url=server.address)
        async with closing(completer):
            found = await completer.complete(code(before=BEFORE, after="\n", path="pkg/new.py"))
        assert [item.text for item in found.items] == ["total()"]
