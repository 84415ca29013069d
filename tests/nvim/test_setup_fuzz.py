"""For any argument of `setup()` there is no exception and no prompt, the defaults work, and the host answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from codecompanion.engine.configured import take_settings, with_adapters
from codecompanion.engine.runtime import Runtime
from codecompanion.wire.requests import Hello, OpenChat, Snapshot
from harness import REPO, Nvim

BATCH = 40
"""Number of tables sent to Neovim in one call; a failure names its table, so shrinking is not necessary."""
BOUNDED = {"deadline": None, "suppress_health_check": list(HealthCheck), "phases": (Phase.explicit, Phase.generate)}

_SCHEMA = """
local parts, paths = {}, {}
local function look(node, path)
  for _, field in ipairs(vim.list_extend(vim.list_extend({}, node.fields or {}), { node.values })) do
    local here = vim.list_extend(vim.list_extend({}, path), { (field.name:gsub("[<>]", "")) })
    parts[here[#here]] = true
    paths[#paths + 1] = here
    look(field, here)
  end
end
look(require("codecompanion.config.schema"), {})
return { paths = paths, parts = vim.tbl_keys(parts) }
"""

# Functions, coroutines, userdata and odd numbers are in the JSON as { ["\\0"] = name }.
_TRY = """
local odd = {
  ["function"] = function() end,
  fails = function() error({}) end,
  answers = function() return { 1 } end,
  thread = coroutine.create(function() end),
  userdata = vim.uv.new_timer(),
  nan = 0 / 0,
  inf = math.huge,
  bytes = "\\255\\0x",
  hole = { [1] = "a", [4] = "b" },
  mixed = { "a", b = 1 },
  numbers = { [0.5] = 1, [-3] = 2 },
  null = vim.NIL,
  empty = vim.empty_dict(),
}
odd.cycle = { opts = {} }
odd.cycle.opts.cycle = odd.cycle
local function revive(value)
  if type(value) ~= "table" then return value end
  if value["\\0"] then return odd[value["\\0"]] end
  local made = {}
  for key, inner in pairs(value) do made[key] = revive(inner) end
  return made
end
local answers = {}
for index, text in ipairs(...) do
  local options = revive(vim.json.decode(text))
  local ok, answer = xpcall(function()
    require("codecompanion").setup(options)
    local config = require("codecompanion.config")
    config.check()
    config.evaluate_overrides({ adapter = "openai", model = "m", window = 1000 })
    config.secrets()
    require("codecompanion.config.findings").report(config.findings())
    for _, problem in ipairs(config.findings().problems) do
      assert(problem:match("^[^ ]"), problem)
    end
    local adapters = config.adapters()
    return vim.json.encode({ settings = config.for_host(), adapters = adapters.entries, proxy = adapters.proxy })
  end, debug.traceback)
  answers[index] = { ok = ok, answer = answer }
end
return answers
"""


@pytest.fixture(scope="module")
def child(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nvim]:
    """Return one Neovim for all tables, with the narrowest realistic screen."""
    with Nvim(tmp_path_factory.mktemp("fuzz"), size=(40, 12)) as nvim:
        yield nvim


SCHEMA: dict[str, Any] = {}


def keys_of(nvim: Nvim) -> dict[str, Any]:
    if not SCHEMA:
        SCHEMA.update(nvim.lua(_SCHEMA))
        SCHEMA["parts"] = sorted(SCHEMA["parts"])
    return SCHEMA


odd = st.sampled_from(
    "function fails answers thread userdata nan inf bytes hole mixed numbers null empty cycle".split()
).map(lambda name: {"\0": name})
leaves = (
    st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["openai", "offline", "85%", "16k", "cowork", "none", "default", "", "<CR>", "x.y", "\u20ac"])
    | st.text(max_size=6)
    | odd
)


def values(parts: list[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(parts), inner, max_size=3),
        max_leaves=8,
    )


def placed(paths: list[list[str]], parts: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Return tables that have arbitrary values at one to three paths of the schema."""

    def build(entries: list[tuple[list[str], Any]]) -> dict[str, Any]:
        table: dict[str, Any] = {}
        for path, value in entries:
            target = table
            for part in path[:-1]:
                inner = target.get(part)
                target[part] = inner if isinstance(inner, dict) and "\0" not in inner else {}
                target = target[part]
            target[path[-1]] = value
        return table

    theirs = [["strategies", *path[1:]] for path in paths if path[0] == "interactions"]
    entry = ["adapters", "http", "openai"]
    keys = ["env", "headers", "parameters", "schema", "opts", "url", "extends", "formatted_name", "handlers"]
    entries = [[*entry, key] for key in keys] + [[*entry, key, "x"] for key in keys]
    entries += [[*entry, "schema", name, "default"] for name in ("model", "temperature", "max_tokens")]
    entries += [[*entry, "env", "api_key"], [*entry, "opts", "context_window"]]
    places = st.sampled_from([*paths, *theirs, ["strategies"], ["memory"], ["adapters", "mine"]]) | st.sampled_from(
        entries
    )
    return st.lists(st.tuples(places, values(parts)), min_size=1, max_size=3).map(build)


def check(nvim: Nvim, tables: list[Any]) -> None:
    """Pass the tables to `setup()` one by one, and the results to the host's decoder."""
    answers = nvim.lua(_TRY, [json.dumps(table) for table in tables])
    for table, answer in zip(tables, answers, strict=True):
        assert answer["ok"], f"{table}: {answer['answer']}"
        folders = {"nvim": "0.11", "data_dir": "", "cache_dir": "", "log_path": ""}
        told, _ = with_adapters(Hello(**json.loads(answer["answer"]), **folders), {})
        loaded, _, mistakes = take_settings(told)
        assert [mistake for mistake in mistakes if "budget_warn: " not in mistake] == [], f"{table}: {mistakes}"
        assert loaded.chat.adapter in loaded.adapters
    nvim.settle()
    assert not nvim.blocked(), nvim.screen()


@pytest.mark.slow("random settings")
def test_any_table_leaves_the_editor_usable(child: Nvim) -> None:
    parts = keys_of(child)["parts"]

    @settings(max_examples=8, **BOUNDED)
    @given(st.lists(values(parts), min_size=BATCH, max_size=BATCH))
    def run(tables: list[Any]) -> None:
        check(child, tables)

    run()


@pytest.mark.slow("random settings")
def test_any_value_at_any_place_of_the_schema_is_accepted_or_reported(child: Nvim) -> None:
    schema = keys_of(child)

    @settings(max_examples=15, **BOUNDED)
    @given(st.lists(placed(schema["paths"], schema["parts"]), min_size=BATCH, max_size=BATCH))
    def run(tables: list[Any]) -> None:
        check(child, tables)

    run()


async def test_the_settings_for_any_table_start_a_host(child: Nvim, tmp_path: Any) -> None:
    """As the last step, a real runtime answers and a chat opens."""
    odd_names = ["cycle", "mixed", "hole", "nan", "bytes", "thread", "null", "empty", "function"]
    tables: list[Any] = [
        {"interactions": {"chat": {"opts": {"policies": {"mine": {"\0": name}}}}}} for name in odd_names
    ]
    for stage in (["x"], {"x": 1}, 7, [{"id": "a", "step": {"use": "x"}}], [{"id": "a", "tier": {"id": "b"}}]):
        own = {"extends": "codecompanion", "stage": stage}
        tables.append({"interactions": {"chat": {"opts": {"policy": "mine", "policies": {"mine": own}}}}})
    answers = child.lua(_TRY, [json.dumps(table) for table in tables])
    for number, answer in enumerate(answers):
        assert answer["ok"], answer["answer"]
        told: list[Any] = []
        host = Runtime(told.append)
        folder = str(tmp_path / str(number))
        hello = Hello(**json.loads(answer["answer"]), nvim="0.11", data_dir=folder, cache_dir=folder, log_path=folder)
        await host.handle(hello)
        await host.handle(OpenChat(chat="chat", snapshot=Snapshot(cwd=str(REPO))))
        await host.aclose()
        assert "chat_opened" in {type(event).__struct_config__.tag for event in told}
