---One way to draw a chat: empty its buffer, and let the host tell from the log what belongs there.
---
---Whatever Vim did to the text (`:e`, `:bd`, a session file, an edit of what was sent), the chat comes back the same:
---draft, messages on their way, what the user opened, where the cursors were. The chat itself goes on in the host.

local api = vim.api
local buffer = require("codecompanion.chat.buffer.text")
local draw = require("codecompanion.chat.draw.put")
local folds = require("codecompanion.chat.buffer.folds")

local M = {}

---Where a cursor is, in words that hold for another drawing of the chat.
---@param chat CodeCompanion.Chat
---@param win integer
---@return table
local function place_of(chat, win)
  local row, col = unpack(api.nvim_win_get_cursor(win))
  row = row - 1
  local input = buffer.position(chat, "input")
  if row >= buffer.position(chat, "header") then
    return { input = math.max(0, row - input), col = col }
  end
  local item = draw.item_at(chat, row)
  local first = item and draw.item_rows(chat, item)
  local top = api.nvim_win_call(win, function()
    return vim.fn.line("w0")
  end)
  local place = { row = row, col = col, above = row + 1 - top }
  if item and first then
    place.message, place.change, place.offset = item.message_id, item.compaction_id, row - first
  end
  return place
end

---Note where the cursors are and what is open, before the text goes.
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
    return buffer.position(chat, "input") + place.input
  end
  local first
  if place.message then
    first = draw.message_row(chat, place.message)
  elseif place.change and chat.changes[place.change] then
    first = draw.item_rows(chat, chat.changes[place.change].item)
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

---Put the cursors back where they were; `final`: those whose place is gone go to the line they were on.
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

---Everything is drawn.
---@param chat CodeCompanion.Chat
function M.settle(chat)
  place_cursors(chat, true)
  chat.places = nil
end

---A part is drawn: cursors whose place is there go there.
---@param chat CodeCompanion.Chat
function M.settle_partly(chat)
  place_cursors(chat, false)
end

---The draft as the user left it, also when the text of the buffer is lost.
---@param chat CodeCompanion.Chat
---@return string
local function draft_text(chat)
  local kept = chat.draft.kept
  chat.draft.kept = nil
  return kept or buffer.input_text(chat)
end

---Empty the buffer but for the draft and what is being sent.
---@param chat CodeCompanion.Chat
function M.blank(chat)
  local text = draft_text(chat)
  require("codecompanion.chat.question.approval").put_away(chat)
  chat.stream = nil
  -- marks outlive their lines: with them their virtual text would gather on the first line
  buffer.clear_marks(chat)
  require("codecompanion.chat.state.record").reset(chat)
  buffer.blank(chat, text)
  for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
    folds.apply(chat, win)
  end
  require("codecompanion.chat.wire.outgoing").draw_all(chat)
  require("codecompanion.chat.wire.draft").redrawn(chat)
  place_cursors(chat, false)
end

---Draw the chat again, out of the log.
---@param chat CodeCompanion.Chat
function M.redraw(chat)
  if not api.nvim_buf_is_loaded(chat.bufnr) then
    return
  end
  M.blank(chat)
  if chat.attached == "yes" and not chat.read_only then
    chat.awaiting = "redrawn"
    require("codecompanion.host").notify("redraw_chat", { chat = chat.id })
  elseif chat.attached == "opening" then
    chat.awaiting = "chat_opened"
  elseif chat.known or chat.stored then
    chat.attached, chat.awaiting = "no", "chat_opened"
    require("codecompanion.chat.state.session").attach(chat)
  end
end

---What comes now is everything.
---@param chat CodeCompanion.Chat
function M.begin(chat)
  if chat.awaiting ~= "redrawn" then
    M.remember(chat)
    M.blank(chat)
  end
  chat.awaiting, chat.ignore_restored = nil, false
end

return M
