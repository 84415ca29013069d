---Draws the context block at the top of a chat: attachments and rules. `wire/attachments` detects deleted lines.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local buffer = require("codecompanion.chat.buffer.chat_text")
local fit = require("codecompanion.text.fit")
local folds = require("codecompanion.chat.buffer.folds")
local numbers = require("codecompanion.text.numbers")
local options = require("codecompanion.chat.state.chat_options")

local M = {}

M.ns = api.nvim_create_namespace("codecompanion.chat.context")
M.notes = api.nvim_create_namespace("codecompanion.chat.context_notes")

---Prefix of attachments whose changes are sent to the model.
local LIVE = "↻ "

---@param item table
---@return string
local function line_of(item)
  local mark = item.live and LIVE or ""
  return ("> - %s<%s>%s</%s>"):format(mark, item.kind, (item.label:gsub("[\r\n]+", " ")), item.kind)
end

---Return the note at the right edge of a line: page count, token count.
---@param item table
---@return string?
local function note_of(item)
  local notes = {}
  if (item.note or "") ~= "" then
    notes[1] = item.note
  end
  if (item.tokens or 0) > 0 then
    notes[#notes + 1] = ("%s tokens"):format(numbers.short(item.tokens))
  end
  return #notes > 0 and table.concat(notes, " · ") or nil
end

---Return the lines of the block, none if nothing is attached.
---@param items table[]
---@return string[]
function M.lines_of(items)
  if #items == 0 then
    return {}
  end
  local lines = { "> Context:" }
  for _, item in ipairs(items) do
    lines[#lines + 1] = line_of(item)
  end
  lines[#lines + 1] = ""
  return lines
end

---Redraw the block.
---@param chat CodeCompanion.Chat
---@param items table[]
function M.set(chat, items)
  if not options.display().show_context then
    items = {}
  end
  local lines = M.lines_of(items)
  chat.context_shown = items
  local old_fold = chat.context_fold
  if old_fold then
    folds.remove(chat, old_fold)
    chat.context_fold = nil
  end
  buffer.edit(chat, function()
    local top = anchors.position(chat, "top")
    local old = api.nvim_buf_get_lines(chat.bufnr, 0, top, false)
    api.nvim_buf_clear_namespace(chat.bufnr, M.ns, 0, -1)
    api.nvim_buf_clear_namespace(chat.bufnr, M.notes, 0, -1)
    chat.context_items = {}
    if top == 0 and #lines > 0 then
      buffer.insert(chat, 0, lines)
    elseif not vim.deep_equal(old, lines) then
      api.nvim_buf_set_lines(chat.bufnr, 0, top, false, lines)
    end
    anchors.place(chat, "top", #lines)
    for index, item in ipairs(items) do
      M.decorate(chat, index, item, lines[index + 1])
    end
    if #items > 0 then
      api.nvim_buf_set_extmark(chat.bufnr, M.ns, 0, 0, { end_col = #lines[1], hl_group = "CodeCompanionContext" })
    end
  end)
  if #items > 0 and options.display().fold_context then
    chat.context_fold = folds.add(chat, 0, #items, {
      closed = true,
      marked = true,
      text = function()
        local text = "Context: " .. numbers.counted(#items, "item")
        return { { "▸ ", "CodeCompanionFoldMark" }, { text, "CodeCompanionContext" } }
      end,
    })
  end
end

---@param chat CodeCompanion.Chat
---@param row integer
---@param item table
---@param line string
function M.decorate(chat, row, item, line)
  local open = #"> - <" + (item.live and #LIVE or 0) + #item.kind + 1
  local close = #line - #item.kind - 3
  local id = api.nvim_buf_set_extmark(chat.bufnr, M.ns, row, 0, {
    end_col = #line,
    hl_group = "CodeCompanionContext",
    invalidate = true,
    undo_restore = false,
  })
  chat.context_items[id] = item
  M.decorate_note(chat, row, item, line)
  if close > open then
    api.nvim_buf_set_extmark(chat.bufnr, M.ns, row, open, {
      end_col = close,
      hl_group = "CodeCompanionContextItem",
      priority = 4097,
    })
  end
end

---Draw the note of a line: at the right edge if there is space, otherwise at the end of the text, where it wraps.
---@param chat CodeCompanion.Chat
---@param row integer
---@param item table
---@param line string
function M.decorate_note(chat, row, item, line)
  local note = note_of(item)
  if note then
    local position, chunks = fit.beside(line, { { note, "CodeCompanionTokens" } }, fit.narrowest(chat))
    api.nvim_buf_set_extmark(chat.bufnr, M.notes, row, position == "inline" and #line or 0, {
      virt_text = chunks,
      virt_text_pos = position,
      invalidate = true,
      undo_restore = false,
    })
  end
end

---Reposition the notes after a window's width has changed.
---@param chat CodeCompanion.Chat
function M.refit(chat)
  api.nvim_buf_clear_namespace(chat.bufnr, M.notes, 0, -1)
  for id, item in pairs(chat.context_items) do
    local mark = api.nvim_buf_get_extmark_by_id(chat.bufnr, M.ns, id, { details = true })
    if mark[1] and not mark[3].invalid then
      local line = api.nvim_buf_get_lines(chat.bufnr, mark[1], mark[1] + 1, false)[1]
      M.decorate_note(chat, mark[1], item, line)
    end
  end
end

---Return the item on a row of the block.
---@param chat CodeCompanion.Chat
---@param row integer
---@return table?
function M.item_at(chat, row)
  local marks = api.nvim_buf_get_extmarks(chat.bufnr, M.ns, { row, 0 }, { row, 0 }, {})
  for _, mark in ipairs(marks) do
    if chat.context_items[mark[1]] then
      return chat.context_items[mark[1]]
    end
  end
end

return M
