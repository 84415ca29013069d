---Maps the quickfix keys that keep or revert each hunk changed by tools.
---
---The host does the reverting, with a three-way merge and a log entry; review decisions are kept until Neovim exits.

local api = vim.api
local keys = require("codecompanion.changes.decision_keys")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")

local M = {}

M.TITLE = "CodeCompanion review · g? keys"

---Verbs of the review keys.
---@type { [1]: string, [2]: string, [3]: string }[] Verb, label in the hint, full label
local VERBS = {
  { "accept_change", "keep", "Keep this hunk (✓), or the selected ones in Visual mode; press again to undo" },
  { "reject_change", "revert", "Revert this hunk, or reapply it" },
}

---Review decisions by chat, change and hunk. The host stores which hunks are reverted.
---@type table<string, true>
local reviewed = {}

---@param chat CodeCompanion.Chat
---@param change_id string
---@param hunk integer
---@return string
local function key(chat, change_id, hunk)
  return ("%s %s %d"):format(chat.id, change_id, hunk)
end

---Return the mark before the text of a hunk.
---@param chat CodeCompanion.Chat
---@param row table A change as listed by the host
---@param hunk integer
---@return string
function M.mark(chat, row, hunk)
  if row.hunks[hunk + 1].reverted then
    return "↶ reverted: "
  end
  return reviewed[key(chat, row.change_id, hunk)] and "✓ " or ""
end

---@class CodeCompanion.ReviewHunk
---@field item table The quickfix item
---@field change_id string
---@field hunk integer 0-based
---@field path string
---@field reverted boolean

---@param item table A quickfix item
---@return CodeCompanion.ReviewHunk?
local function hunk_of(item)
  local data = item and item.user_data
  if type(data) ~= "table" or not data.change_id then
    return nil
  end
  return { item = item, change_id = data.change_id, hunk = data.hunk, path = data.path, reverted = data.reverted }
end

---Return the hunks that a key applies to: the one on the cursor's line, or the selected ones.
---@param rows? { [1]: integer, [2]: integer } 0-based
---@return CodeCompanion.ReviewHunk[] Empty if another list is shown
local function chosen(rows)
  local list, found = vim.fn.getqflist({ items = 0, title = 0 }), {}
  local row = api.nvim_win_get_cursor(0)[1] - 1
  for at = (rows or { row })[1], (rows or { row, row })[2] do
    found[#found + 1] = list.title == M.TITLE and hunk_of(list.items[at + 1]) or nil
  end
  return found
end

---Mark hunks as kept, or as undecided if all of them are kept.
---@param chat CodeCompanion.Chat
---@param hunks CodeCompanion.ReviewHunk[]
local function toggle(chat, hunks)
  local open = vim.iter(hunks):any(function(one)
    return one.reverted or not reviewed[key(chat, one.change_id, one.hunk)]
  end)
  for _, one in ipairs(hunks) do
    if not one.reverted then
      reviewed[key(chat, one.change_id, one.hunk)] = open or nil
    end
  end
end

---Revert or restore hunks one after another, because each one changes its file.
---@param chat CodeCompanion.Chat
---@param hunks CodeCompanion.ReviewHunk[]
---@param refill fun()
local function revert(chat, places, refill)
  local one = table.remove(places, 1)
  local reverting = require("codecompanion.chat.changed_files.revert_changes")
  session.request(chat, "revert_changes", { changes = { one.change_id }, hunk = one.hunk }, function(result)
    local severity = require("codecompanion.severity")
    say.line(reverting.said(result, "gX"), result.reverted == 0 and severity.WARN or severity.INFO)
    if #places > 0 and result.reverted > 0 then
      return revert(chat, places, refill)
    end
    refill()
  end, reverting.refused(chat))
end

---@param chat CodeCompanion.Chat
---@param one CodeCompanion.ReviewHunk
local function show_diff(chat, one)
  session.request(chat, "show_change", { change_id = one.change_id, texts = true }, function(shown)
    require("codecompanion.changes.change_view").open_recorded(shown, one.path, one.item.lnum)
  end)
end

---Return the configured keys of the list.
---@param bufnr integer
---@return { keys: string, text: string }[]
local function described(bufnr)
  local found = {}
  for _, verb in ipairs(VERBS) do
    local shown = table.concat(keys.keys(verb[1], "n", bufnr), " ")
    found[#found + 1] = shown ~= "" and { keys = shown, text = verb[3] } or nil
  end
  return vim.list_extend(found, {
    { keys = "K", text = "Show the diff" },
    { keys = "<CR>", text = "Go to the hunk" },
    { keys = "g?", text = "Show the keys" },
  })
end

local function show_keys()
  require("codecompanion.screen.float").show_keys("Review of file changes", described(api.nvim_get_current_buf()))
end

---Map the keys in the quickfix window, which is the current one.
---@param chat CodeCompanion.Chat
---@param refill fun() Updates the list
function M.set_keys(chat, refill)
  local bufnr = api.nvim_get_current_buf()
  local function on_hunks(act)
    return function(rows)
      local hunks = chosen(rows)
      if #hunks > 0 then -- otherwise the window shows another list
        act(hunks)
      end
    end
  end
  local diff = on_hunks(function(hunks)
    show_diff(chat, hunks[1])
  end)
  local take_back = on_hunks(function(hunks)
    revert(chat, hunks, refill)
  end)
  keys.set(bufnr, {
    accept_change = on_hunks(function(hunks)
      toggle(chat, hunks)
      refill()
    end),
    reject_change = take_back,
    view_diff = diff,
  }, {
    { mode = "n", lhs = "gX", action = take_back, text = "Revert this hunk, or reapply it" },
    { mode = "n", lhs = "K", action = diff, text = "Show the diff" },
    { mode = "n", lhs = "g?", action = on_hunks(show_keys), text = "Show the keys" },
  })
  local hint = keys.hint({ { VERBS[1][1], "keep" }, { VERBS[2][1], "revert" }, { "=K", "diff" }, { "=g?", "keys" } })
  say.hint(api.nvim_strwidth(hint) < vim.v.echospace and hint or "g? keys")
end

return M
