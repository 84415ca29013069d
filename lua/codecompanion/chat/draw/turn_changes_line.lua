---Shows one line with the file changes at the end of a turn that changed more than one file; later reverts update the
---line.

local api = vim.api
local buffer = require("codecompanion.chat.buffer.chat_text")
local counts = require("codecompanion.changes.line_counts").text
local draw = require("codecompanion.chat.draw.put_blocks")
local keys = require("codecompanion.chat.state.configured_keys")
local marks = require("codecompanion.chat.buffer.row_marks")

local M = {}

local GROUP = "CodeCompanionHint"

---@class CodeCompanion.TurnChange
---@field change_id string
---@field path string
---@field added integer
---@field removed integer
---@field reverted? boolean

---@param changes CodeCompanion.TurnChange[]
---@return string
local function text_of(changes)
  local files, count, kept, sum = {}, 0, 0, { added = 0, removed = 0 }
  for _, change in ipairs(changes) do
    local stands = not change.reverted
    if files[change.path] == nil then
      count = count + 1
    end
    if stands then
      kept = kept + (files[change.path] and 0 or 1)
      sum = { added = sum.added + change.added, removed = sum.removed + change.removed }
    end
    files[change.path] = files[change.path] or stands
  end
  local key = keys.keys("open_file", "n")
  local parts = { ("▸ %d files changed"):format(count), counts(sum) }
  parts[2] = parts[2] ~= "" and parts[2] or nil
  if kept < count then
    parts[#parts + 1] = kept == 0 and "all reverted" or ("%d reverted"):format(count - kept)
  end
  parts[#parts + 1] = (key[#key] or ":CodeCompanionChanges") .. " review"
  return table.concat(parts, " · ")
end

---@param changes CodeCompanion.TurnChange[]
---@return CodeCompanion.Block
function M.block(changes)
  local line = text_of(changes)
  return {
    kind = "changed",
    lines = { line },
    marks = { { row = 0, from = 0, to = #line, group = GROUP } },
    item = { turn_changes = changes },
  }
end

---Record the end of a call.
---@param chat CodeCompanion.Chat
---@param event table tool_finished event
function M.take(chat, event)
  if event.change then
    chat.turn_changes = chat.turn_changes or {}
    chat.turn_changes[#chat.turn_changes + 1] = vim.deepcopy(event.change)
    chat.has_changed_files, chat.newest_edit = true, event.call_id
  end
end

---Draw the line at the end of a turn.
---@param chat CodeCompanion.Chat
function M.tell(chat)
  local changes, paths = chat.turn_changes or {}, {}
  chat.turn_changes = nil
  for _, change in ipairs(changes) do
    paths[change.path] = true
  end
  if vim.tbl_count(paths) > 1 then
    draw.append(chat, M.block(changes))
  end
end

---@param chat CodeCompanion.Chat
---@param item table
local function draw_again(chat, item)
  local row = marks.item_rows(chat, item)
  if not row then
    return
  end
  local before, line = api.nvim_buf_get_lines(chat.bufnr, row, row + 1, false)[1], text_of(item.turn_changes)
  if before == line then
    return
  end
  buffer.edit(chat, function()
    -- the first characters stay: a line that is completely replaced loses its mark
    local same = #"▸ "
    api.nvim_buf_set_text(chat.bufnr, row, same, row, #before, { line:sub(same + 1) })
    api.nvim_buf_clear_namespace(chat.bufnr, marks.decor, row, row + 1)
    local options = { end_col = #line, hl_group = GROUP, priority = 110 }
    api.nvim_buf_set_extmark(chat.bufnr, marks.decor, row, 0, options)
  end)
end

---Update which file changes are reverted.
---@param chat CodeCompanion.Chat
---@param change_ids string[] All changes that are now reverted
function M.reverted(chat, change_ids)
  for _, item in pairs(chat.items) do
    if item.turn_changes then
      for _, change in ipairs(item.turn_changes) do
        change.reverted = vim.list_contains(change_ids, change.change_id)
      end
      draw_again(chat, item)
    end
  end
end

return M
