---Saves and restores the cursors of a chat independently of line numbers, across redraws.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local folds = require("codecompanion.chat.buffer.folds")
local marks = require("codecompanion.chat.buffer.row_marks")

local M = {}

---Return the position of a cursor in a form that stays valid after a redraw.
---@param chat CodeCompanion.Chat
---@param win integer
---@return table
local function place_of(chat, win)
  local row, col = unpack(api.nvim_win_get_cursor(win))
  row = row - 1
  local input = anchors.position(chat, "input")
  if row >= anchors.position(chat, "header") then
    return { input = math.max(0, row - input), col = col }
  end
  local item = marks.item_at(chat, row)
  local first = item and marks.item_rows(chat, item)
  local top = api.nvim_win_call(win, function()
    return vim.fn.line("w0")
  end)
  local place = { row = row, col = col, above = row + 1 - top }
  if item and first then
    place.message, place.change, place.offset = item.message_id, item.compaction_id, row - first
  end
  return place
end

---Save the cursors and the open folds before the text is removed.
---@param chat CodeCompanion.Chat
function M.remember(chat)
  folds.keep_states(chat)
  chat.places = chat.places or {}
  for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
    chat.places[win] = place_of(chat, win)
  end
end

---@param chat CodeCompanion.Chat
---@param place table
---@return integer? row
local function row_of(chat, place)
  if place.input then
    return anchors.position(chat, "input") + place.input
  end
  local first
  if place.message then
    first = marks.message_row(chat, place.message)
  elseif place.change and chat.changes[place.change] then
    first = marks.item_rows(chat, chat.changes[place.change].item)
  end
  return first and first + place.offset or nil
end

---@param chat CodeCompanion.Chat
---@param win integer
---@param row integer
---@param place table
local function go_to(chat, win, row, place)
  row = math.min(row, api.nvim_buf_line_count(chat.bufnr) - 1)
  pcall(api.nvim_win_set_cursor, win, { row + 1, place.col })
  if place.above then
    api.nvim_win_call(win, function()
      vim.fn.winrestview({ topline = math.max(1, row + 1 - place.above) })
    end)
  end
end

---Restore the cursors; if `final`, cursors whose position no longer exists go to their old line.
---@param chat CodeCompanion.Chat
---@param final boolean
local function place_cursors(chat, final)
  for win, place in pairs(chat.places or {}) do
    local shown = api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) == chat.bufnr
    local row = shown and (row_of(chat, place) or final and place.row)
    if row then
      go_to(chat, win, row, place)
    end
    if row and not place.input or not shown or final then
      chat.places[win] = nil
    end
  end
end

---Restore all cursors after a complete redraw.
---@param chat CodeCompanion.Chat
function M.settle(chat)
  place_cursors(chat, true)
  chat.places = nil
end

---Restore the cursors whose location is drawn, after a partial redraw.
---@param chat CodeCompanion.Chat
function M.settle_partly(chat)
  place_cursors(chat, false)
end

return M
