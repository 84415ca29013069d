---Shows the changes of a turn as a quickfix list with one entry per hunk.

local review = require("codecompanion.chat.changed_files.review_changes")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")

local M = {}

---Return the quickfix text of a hunk: the size of its change and its first line.
---@param row table
---@param hunk { added: integer, removed: integer, text: string }
---@return string
local function text_of(row, hunk)
  local parts =
    { require("codecompanion.changes.line_counts").text(hunk), row.state == "unsaved" and "not saved" or nil }
  return table.concat(parts, " ") .. " · " .. hunk.text
end

---@class CodeCompanion.ReviewOf
---@field all? boolean Review the whole chat
---@field turn_id? string Review one turn
---@field of_change? string Review the turn of this change; without any of these, the newest turn that changed files

---@param rows table[] Newest first
---@param which CodeCompanion.ReviewOf
---@return string? turn_id nil for all
local function turn_of(rows, which)
  if which.all or which.turn_id then
    return which.turn_id
  end
  for _, row in ipairs(rows) do
    if which.of_change and row.change_id == which.of_change or not which.of_change and row.kind == "tool" then
      return row.turn_id
    end
  end
end

---@param row table
---@param at integer
---@param chat CodeCompanion.Chat
---@return table item
local function item_of(chat, row, at)
  local hunk = row.hunks[at]
  local is_there = not (row.created and row.reverted)
  return {
    filename = is_there and row.path or nil,
    lnum = is_there and hunk.line or nil,
    valid = is_there and 1 or 0,
    text = review.mark(chat, row, at - 1) .. (is_there and "" or row.name .. " ") .. text_of(row, hunk),
    user_data = {
      change_id = row.change_id,
      hunk = at - 1,
      path = row.path,
      reverted = hunk.reverted,
      is_whole = row.reverted,
    },
  }
end

---@param chat CodeCompanion.Chat
---@param rows table[] Newest first
---@param turn_id? string nil for all
---@return table[] items
local function items_of(chat, rows, turn_id)
  local items = {}
  for _, row in ipairs(rows) do
    if row.kind == "tool" and not row.deleted and (not turn_id or row.turn_id == turn_id) then
      for at = #row.hunks, 1, -1 do
        table.insert(items, 1, item_of(chat, row, at))
      end
    end
  end
  return items
end

---Update the hunks in the existing list with their current decisions.
---@param items table[]
local function refill(items)
  local line = vim.fn.getqflist({ winid = 0 }).winid
  local at = line > 0 and vim.api.nvim_win_get_cursor(line) or nil
  vim.fn.setqflist({}, "r", { title = review.TITLE, items = items })
  if at then
    pcall(vim.api.nvim_win_set_cursor, line, at)
  end
end

---Fill and open the quickfix list for a review, with its own keys.
---@param chat CodeCompanion.Chat
---@param which CodeCompanion.ReviewOf
function M.fill(chat, which)
  session.request(chat, "list_changes", { hunks = true }, function(rows)
    local turn_id = turn_of(rows, which)
    local items = items_of(chat, rows, turn_id)
    if #items == 0 then
      local none = "No files were changed in this chat."
      return say.line(#rows == 0 and none or "None of the files changed in this chat still exist.")
    end
    vim.fn.setqflist({}, " ", { title = review.TITLE, items = items })
    vim.cmd("botright copen")
    review.set_keys(chat, function()
      session.request(chat, "list_changes", { hunks = true }, function(now)
        if vim.fn.getqflist({ title = 0 }).title == review.TITLE then
          refill(items_of(chat, now, turn_id))
        end
      end)
    end)
  end)
end

return M
