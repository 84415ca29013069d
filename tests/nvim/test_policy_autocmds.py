"""Every named event of a policy is a documented autocmd with its actual fields."""

from __future__ import annotations

from codecompanion.context.named_events import Occasion, fields_of
from codecompanion.context.policy.policy import EVENT_NAMES
from harness import Nvim


def test_names_and_fields_of_the_policy_events_are_documented(nvim: Nvim) -> None:
    """R-328, R-423: the table of the help file and the builders cannot drift apart."""
    documented = nvim.lua(
        """local found = {}
           local policies = require('codecompanion.chat.state.policy_autocmds')
           for _, autocmd in ipairs(policies.list) do
             found[autocmd.name] = vim.tbl_map(function(field) return field[1] end, autocmd.data)
           end
           local patterns = vim.tbl_map(policies.pattern, ...)
           return { found, patterns }""",
        list(EVENT_NAMES),
    )
    fields, patterns = documented
    assert sorted(patterns) == sorted(fields)
    for name, pattern in zip(EVENT_NAMES, patterns, strict=True):
        assert {*fields_of(name, Occasion()), "compaction_id"} == set(fields[pattern]), name
