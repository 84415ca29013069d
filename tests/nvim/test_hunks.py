"""The hunk model: for any two texts and any subset of their hunks, the result is the patch of exactly these hunks.

The oracle is written from the definition, in Python: a text is a list of lines with their line endings, and a hunk
replaces a slice of it. The hunks themselves are checked to be correct (applying all of them gives the proposed text,
applying none the old one) and minimal (no hunk begins or ends with an unchanged line). CI runs at least 5,000 random
pairs.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

from harness import Nvim

WORDS = [
    "",
    "a",
    "b",
    "  a",
    "\ta",
    "a  ",
    "end",
    "}",
    "é",
    "日本",
    "a\r",
    "\r",
    "x" * 90,
    "@@ -1 +1 @@",
    "--- a",
    "+b",
]
BATCH = 250
"""Number of pairs checked in one Neovim call."""

APPLY = """
local hunks = require("codecompanion.changes.hunks")
local found = {}
for _, case in ipairs(vim.json.decode(...)) do
  local before, after = hunks.text(case.before), hunks.text(case.after)
  local all = hunks.between(before, after)
  local chosen = {}
  for index, hunk in ipairs(all) do
    if case.bits % 2 ^ index >= 2 ^ (index - 1) then
      chosen[#chosen + 1] = hunk
    end
  end
  found[#found + 1] = {
    hunks = vim.tbl_map(function(hunk)
      return { hunk.first, hunk.count, #hunk.lines, #hunk.lines > 0 and hunk.lines or nil }
    end, all),
    result = hunks.joined(hunks.apply(before, chosen)),
    all = hunks.joined(hunks.apply(before, all)),
    none = hunks.joined(hunks.apply(before, {})),
  }
end
return vim.json.encode(found)
"""


def pairs() -> int:
    """Return the number of pairs to run: 5,000 by default, fewer for a quick check, more in `make fuzz`."""
    examples = settings.default.max_examples
    return 500 if examples <= 10 else 50_000 if examples >= 1_000 else 5_000


def lines_of(text: str) -> list[str]:
    """Return the lines with their line endings; only the last line may lack one."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def some_text(chosen: random.Random) -> str:
    lines = [chosen.choice(WORDS) for _ in range(chosen.choice([0, 1, 2, 3, 8, 30]))]
    text = "\n".join(lines)
    return text + ("\n" if lines and chosen.random() < 0.7 else "")


def changed(chosen: random.Random, text: str) -> str:
    """Return a changed version: lines replaced, removed, added or moved, the final newline removed or added."""
    lines = text.split("\n")
    for _ in range(chosen.randint(0, 4)):
        at = chosen.randint(0, len(lines))
        match chosen.randint(0, 3):
            case 0:
                lines[at:at] = [chosen.choice(WORDS) for _ in range(chosen.randint(1, 3))]
            case 1:
                del lines[at : at + chosen.randint(1, 3)]
            case 2:
                lines[at : at + 1] = [chosen.choice(WORDS)]
            case _:
                moved = lines[at : at + 2]
                del lines[at : at + 2]
                to = chosen.randint(0, len(lines))
                lines[to:to] = moved
    new = "\n".join(lines)
    return new.rstrip("\n") if chosen.random() < 0.2 else new


def patched(before: str, hunks: list[list[Any]], bits: int, after: str) -> str:
    """Return `before` with the chosen hunks applied, whose lines come from `after`."""
    old, new, result = lines_of(before), lines_of(after), []
    at = shift = 0
    for index, (first, count, added, *_) in enumerate(hunks):
        result += old[at:first]
        theirs = new[first + shift : first + shift + added]
        result += theirs if bits >> index & 1 else old[first : first + count]
        at, shift = first + count, shift + added - count
    return "".join(result + old[at:])


@pytest.mark.parametrize("diffopt", ["internal,filler,closeoff,linematch:60", "iwhite,icase,iblank,context:0"])
def test_any_subset_of_hunks_is_the_patch_of_that_subset(nvim: Nvim, diffopt: str) -> None:
    """This includes empty files, a missing final newline, CRLF, moved lines and blank lines.

    'diffopt' does not apply.
    """
    nvim.command(f"set diffopt={diffopt}")
    chosen, count = random.Random(diffopt), pairs()
    for number in range(0, count, BATCH):
        cases = []
        for _ in range(BATCH):
            before = some_text(chosen)
            after = changed(chosen, before) if chosen.random() < 0.9 else some_text(chosen)
            cases.append({"before": before, "after": after, "bits": chosen.getrandbits(12)})
        found = play(nvim, cases)
        for case, one in zip(cases, found, strict=True):
            before, after = case["before"], case["after"]
            assert one["none"] == before, case
            assert one["all"] == after, case
            assert one["result"] == patched(before, one["hunks"], case["bits"], after), (number, case, one["hunks"])
            assert_minimal(one["hunks"], before, after)


def play(nvim: Nvim, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(nvim.lua(APPLY, json.dumps(cases)))
    return found


def assert_minimal(hunks: list[list[Any]], before: str, after: str) -> None:
    """Assert that hunks are separate, in order, and neither begin nor end with an unchanged line."""
    old, new, end, shift = lines_of(before), lines_of(after), -1, 0
    for first, count, added, *_ in hunks:
        assert first > end or end == -1, "hunks touch"
        ours, theirs = old[first : first + count], new[first + shift : first + shift + added]
        assert ours != theirs
        if ours and theirs and old != ["\n"]:
            assert ours[0] != theirs[0], (ours, theirs)
            assert ours[-1] != theirs[-1], (ours, theirs)
        end, shift = first + count, shift + added - count


PLACE = """
local hunks = require("codecompanion.changes.hunks")
local found = {}
for _, case in ipairs(vim.json.decode(...)) do
  local base, theirs, mine = case.base, case.theirs, case.mine
  local all = hunks.between({ lines = base }, { lines = theirs })
  local placed = hunks.place(base, all, mine)
  local clear = vim.tbl_filter(function(one) return not one.is_conflict end, placed)
  found[#found + 1] = { lines = hunks.apply({ lines = mine }, clear).lines, conflicts = #placed - #clear }
end
return vim.json.encode(found)
"""


def test_later_user_edits_outside_the_hunks_are_kept(nvim: Nvim) -> None:
    """The result has both changes, however far they shift each other."""
    chosen, cases, wanted = random.Random(7), [], []
    for _ in range(pairs() // 5):
        parts = [
            [f"line {number}.{at}" for at in range(chosen.randint(2, 4))] for number in range(chosen.randint(3, 8))
        ]
        theirs, mine, both = [], [], []
        for number, part in enumerate(parts):
            edited = [f"{line} edited" for line in part[: chosen.randint(0, len(part) - 1)]]
            edited += [f"new {number}.{at}" for at in range(chosen.randint(0, 2))] or ["new"]
            edited += part[-1:]
            owner = chosen.choice(["model", "user", "nobody"]) if number % 2 == 0 else "nobody"
            theirs += edited if owner == "model" else part
            mine += edited if owner == "user" else part
            both += part if owner == "nobody" else edited
        cases.append({"base": list(itertools.chain(*parts)), "theirs": theirs, "mine": mine})
        wanted.append(both)
    found = json.loads(nvim.lua(PLACE, json.dumps(cases)))
    for case, one, lines in zip(cases, found, wanted, strict=True):
        assert one["conflicts"] == 0, case
        assert one["lines"] == lines, case


def test_a_hunk_that_overlaps_a_user_edit_is_never_applied_automatically(nvim: Nvim) -> None:
    """If both sides changed the same lines, there is a conflict; identical changes are not one."""
    cases = [
        {"base": ["a", "b", "c"], "theirs": ["a", "B", "c"], "mine": ["a", "mine", "c"]},
        {"base": ["a", "b", "c"], "theirs": ["a", "B", "c"], "mine": ["a", "B", "c"]},
        {"base": ["a", "b", "c"], "theirs": ["a", "c"], "mine": ["a", "b and more", "c"]},
        {"base": ["a", "b"], "theirs": ["a", "x", "b"], "mine": ["a", "x", "b"]},
        {"base": ["a", "b"], "theirs": ["a", "x", "b"], "mine": ["a", "y", "b"]},
    ]
    found = json.loads(nvim.lua(PLACE, json.dumps(cases)))
    assert [(one["lines"], one["conflicts"]) for one in found] == [
        (["a", "mine", "c"], 1),
        (["a", "B", "c"], 0),
        (["a", "b and more", "c"], 1),
        (["a", "x", "b"], 0),
        (["a", "y", "x", "b"], 0),
    ]


TAKE_ALL = """
local hunks = require("codecompanion.changes.hunks")
local found = {}
for _, case in ipairs(vim.json.decode(...)) do
  local all = hunks.between({ lines = case.base }, { lines = case.theirs })
  local placed = hunks.place(case.base, all, case.mine)
  found[#found + 1] = { lines = hunks.apply({ lines = case.mine }, placed).lines, count = #placed }
end
return vim.json.encode(found)
"""


def test_hunks_that_overlap_one_edit_are_applied_together_once(nvim: Nvim) -> None:
    """Each hunk would replace the whole edit, so applying them one after the other used to duplicate the lines."""
    base = [f"l{number}" for number in range(1, 10)]
    cases = [
        {"base": list("abcde"), "theirs": list("AbCde"), "mine": ["a b c", "d", "e"]},
        {
            "base": base,
            "theirs": [line.upper() if line in ("l3", "l7") else line for line in base],
            "mine": [base[0], "X", *base[7:]],
        },
    ]
    found = json.loads(nvim.lua(TAKE_ALL, json.dumps(cases)))
    assert [one["lines"] for one in found] == [case["theirs"] for case in cases]
    assert [one["count"] for one in found] == [1, 1]


def test_with_all_hunks_accepted_no_line_is_missing_or_duplicated(nvim: Nvim) -> None:
    """Whatever the user changed, each unique line of the proposal appears in the result exactly once."""
    chosen, cases, number = random.Random(21), [], 0
    for _ in range(pairs() // 5):
        base = [f"line {number}" for number in range(chosen.randint(1, 12))]
        theirs = [f"{line} changed" if chosen.random() < 0.3 else line for line in base]
        mine = list(base)
        for _ in range(chosen.randint(0, 3)):
            at = chosen.randint(0, len(mine))
            number += 1
            mine[at : at + chosen.randint(0, 4)] = [f"mine {number}"] if chosen.random() < 0.7 else []
        cases.append({"base": base, "theirs": theirs, "mine": mine})
    found = json.loads(nvim.lua(TAKE_ALL, json.dumps(cases)))
    for case, one in zip(cases, found, strict=True):
        lines = one["lines"]
        assert len(lines) == len(set(lines)), (case, lines)
        changed_lines = [line for line in case["theirs"] if line.endswith("changed")]
        assert [line for line in lines if line.endswith("changed")] == changed_lines, (case, lines)


@pytest.fixture
def nvim(nvim_factory: Callable[..., Nvim]) -> Nvim:
    """Return a Neovim with the plugin on its path."""
    return nvim_factory()


IN_VIEW = """
local hunks = require("codecompanion.changes.hunks")
local found = {}
for _, case in ipairs(vim.json.decode(...)) do
  local view = require("codecompanion.changes.change_view").open({
    title = "Edit", path = "/tmp/x.txt", is_editable = true, actions = {},
    before = hunks.text(case.before), after = hunks.text(case.after),
  })
  local all = view.proposed.hunks
  local one = { hunks = vim.tbl_map(function(hunk) return { hunk.first, hunk.count, #hunk.lines } end, all) }
  local kept = {}
  for index in ipairs(all) do
    kept[index] = case.bits % 2 ^ index >= 2 ^ (index - 1)
  end
  for index = #kept, 1, -1 do -- from the last one up: those above keep their place
    if not kept[index] then
      vim.api.nvim_win_set_cursor(view.win, { view.proposed:row_of(index) + 1, 0 })
      view.proposed:skip({ index })
    end
  end
  one.result = view:edited_text() or case.after
  vim.cmd("silent! undo 0")
  one.undone = view:edited_text() or case.after
  view:wipe()
  found[#found + 1] = one
end
return vim.json.encode(found)
"""


def test_skipping_hunks_in_the_view_yields_the_patch_of_the_others(nvim: Nvim) -> None:
    """Hunks are skipped with the user's keys in a real buffer; undoing everything restores the proposal."""
    chosen, cases = random.Random(11), []
    for _ in range(pairs() // 25):
        before = some_text(chosen)
        after = changed(chosen, before) if chosen.random() < 0.9 else some_text(chosen)
        if before != after:
            cases.append({"before": before, "after": after, "bits": chosen.getrandbits(12)})
    found = json.loads(nvim.lua(IN_VIEW, json.dumps(cases)))
    for case, one in zip(cases, found, strict=True):
        assert one["result"] == patched(case["before"], one["hunks"], case["bits"], case["after"]), (case, one)
        assert one["undone"] == case["after"], (case, one)


IN_BUFFER = """
local standing = require("codecompanion.changes.proposals_of_buffer")
local actions = require("codecompanion.changes.decision_actions")
local proposals = require("codecompanion.changes.proposal")
local found = {}
for _, case in ipairs(vim.json.decode(...)) do
  local bufnr = vim.api.nvim_create_buf(true, false)
  vim.api.nvim_set_current_buf(bufnr)
  vim.bo.undolevels = -1
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, case.before)
  vim.bo.undolevels = 1000
  vim.bo.modified = false
  local edit = standing.propose(bufnr, 0, #case.before, case.before, case.after, actions)
  local all = edit.proposal.now.hunks
  local one = { hunks = vim.tbl_map(function(hunk) return { hunk.first, hunk.count, #hunk.lines } end, all) }
  for _, index in ipairs(case.order) do
    local placed = vim.iter(proposals.refresh(edit.proposal)):find(function(each)
      return vim.list_contains(each.indices, index)
    end)
    if placed then
      local decide = case.bits % 2 ^ index >= 2 ^ (index - 1) and proposals.accept or proposals.reject
      decide(edit.proposal, { placed })
    end
  end
  one.result = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
  one.left = #proposals.refresh(edit.proposal)
  vim.cmd("silent! undo 0")
  one.undone, one.open = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false), #proposals.refresh(edit.proposal)
  one.is_modified = vim.bo.modified
  vim.cmd("silent! redo " .. #all)
  vim.cmd("silent! undo " .. vim.fn.undotree().seq_last)
  one.redone, one.left_again = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false), #proposals.refresh(edit.proposal)
  vim.bo.modified = false
  vim.api.nvim_buf_delete(bufnr, { force = true })
  found[#found + 1] = one
end
return vim.json.encode(found)
"""


def test_deciding_hunks_in_a_buffer_yields_the_patch_of_the_accepted_ones(nvim: Nvim) -> None:
    """Hunks can be decided in any order; undoing everything reopens every hunk, and redo decides them as before."""
    chosen, cases = random.Random(12), []
    for _ in range(pairs() // 25):
        before = lines_in(some_text(chosen)) or [""]
        after = lines_in(changed(chosen, "\n".join(before) + "\n"))
        if before not in (after, [""]) and after:  # an empty buffer has no line that a step of undo could be about
            order = chosen.sample(range(1, 13), 12)
            cases.append({"before": before, "after": after, "bits": chosen.getrandbits(12), "order": order})
    found = json.loads(nvim.lua(IN_BUFFER, json.dumps(cases)))
    for case, one in zip(cases, found, strict=True):
        before, after = ("".join(f"{line}\n" for line in case[key]) for key in ("before", "after"))
        count = len(one["hunks"])
        if count > 12:
            continue
        wanted = lines_in(patched(before, one["hunks"], case["bits"], after)) or [""]
        assert one["result"] == wanted, (case, one)
        assert (one["left"], one["open"], one["left_again"]) == (0, count, 0), (case, one)
        assert one["undone"] == case["before"], (case, one)
        assert one["redone"] == wanted, (case, one)
        assert not one["is_modified"], (case, one)


def lines_in(text: str) -> list[str]:
    """Return the lines of `text` as in a buffer."""
    return text.removesuffix("\n").split("\n") if text else []
