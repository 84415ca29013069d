---The context block at the top: attachments and rules. Deleting a line there takes the item out of the next request.

local api = vim.api
local buffer = require("codecompanion.chat.buffer.text")
local folds = require("codecompanion.chat.buffer.folds")
local options = require("codecompanion.chat.state.options")
local status = require("codecompanion.chat.state.status")

local M = {}

M.ns = api.nvim_create_namespace("codecompanion.chat.context")
M.notes = api.nvim_create_namespace("codecompanion.chat.context_notes")

---@param item table
---@return string
local function line_of(item)
  return ("> - <%s>%s</%s>"):format(item.kind, (item.label:gsub("[\r\n]+", " ")), item.kind)
end

---What stands at the right of a line: how many pages, how many tokens.
---@param item table
---@return string?
local function note_of(item)
  local notes = {}
  if (item.note or "") ~= "" then
    notes[1] = item.note
  end
  if (item.tokens or 0) > 0 then
    notes[#notes + 1] = ("%s tokens"):format(status.short(item.tokens))
  end
  return #notes > 0 and table.concat(notes, " · ") or nil
end

---@param items table[]
---@return string[]
local function lines_of(items)
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

---Draw the block again.
---@param chat CodeCompanion.Chat
---@param items table[]
function M.set(chat, items)
  if not options.display().show_context then
    items = {}
  end
  local lines = lines_of(items)
  chat.context_shown = items
  local old_fold = chat.context_fold
  if old_fold then
    folds.remove(chat, old_fold)
    chat.context_fold = nil
  end
  buffer.edit(chat, function()
    local top = buffer.position(chat, "top")
    local old = api.nvim_buf_get_lines(chat.bufnr, 0, top, false)
    api.nvim_buf_clear_namespace(chat.bufnr, M.ns, 0, -1)
    api.nvim_buf_clear_namespace(chat.bufnr, M.notes, 0, -1)
    chat.context_items = {}
    if top == 0 and #lines > 0 then
      buffer.insert(chat, 0, lines)
    elseif not vim.deep_equal(old, lines) then
      api.nvim_buf_set_lines(chat.bufnr, 0, top, false, lines)
    end
    buffer.place(chat, "top", #lines)
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
      text = function()
        return { { "▸ Context: " .. status.counted(#items, "item"), "CodeCompanionContext" } }
      end,
    })
  end
end

---@param chat CodeCompanion.Chat
---@param row integer
---@param item table
---@param line string
function M.decorate(chat, row, item, line)
  local open = #"> - <" + #item.kind + 1
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

---The note of a line: at the right end where there is room, else at the end of the text, where it wraps.
---@param chat CodeCompanion.Chat
---@param row integer
---@param item table
---@param line string
function M.decorate_note(chat, row, item, line)
  local note = note_of(item)
  if note then
    local fit = require("codecompanion.screen.fit")
    local position, chunks = fit.beside(line, { { note, "CodeCompanionTokens" } }, fit.narrowest(chat))
    api.nvim_buf_set_extmark(chat.bufnr, M.notes, row, position == "inline" and #line or 0, {
      virt_text = chunks,
      virt_text_pos = position,
      invalidate = true,
      undo_restore = false,
    })
  end
end

---Place the notes again: a window has another width.
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

---Take items out of the next request; what is refused stands in the block again.
---@param chat CodeCompanion.Chat
---@param gone string[]
---@param before table[] What the block listed
local function detach(chat, gone, before)
  table.sort(gone)
  chat.just_detached = buffer.input_text(chat)
  local session, say = require("codecompanion.chat.state.session"), require("codecompanion.say")
  session.request(chat, "detach", { items = gone }, function() end, function(reason)
    chat.just_detached = nil
    M.set(chat, before)
    say.chat(chat, reason, require("codecompanion.severity").WARN)
  end)
end

---Find the items whose lines were deleted and tell the host. Nothing else can be changed here: the block lists what
---will be sent.
---@param chat CodeCompanion.Chat
function M.check(chat)
  local before, gone, left = chat.context_shown or {}, {}, {}
  if #before == 0 or chat.awaiting or chat.damaged then
    return
  end
  local removed = {}
  for id, item in pairs(chat.context_items) do
    local mark = api.nvim_buf_get_extmark_by_id(chat.bufnr, M.ns, id, { details = true })
    if not mark[1] or mark[3].invalid then
      gone[#gone + 1], removed[item.id] = item.id, true
      chat.context_items[id] = nil
    end
  end
  for _, item in ipairs(before) do
    if not removed[item.id] then
      left[#left + 1] = item
    end
  end
  local drawn = api.nvim_buf_get_lines(chat.bufnr, 0, (buffer.position(chat, "top")), false)
  if not vim.deep_equal(drawn, lines_of(left)) then
    M.set(chat, left)
    if #gone == 0 then
      require("codecompanion.say").hint("The context block was put back; dd removes a line from the next request.")
    end
  end
  chat.context_shown = left
  if #gone > 0 then
    detach(chat, gone, before)
  end
end

---Bring back what was taken out just now; the host may not have done that yet.
---@param chat CodeCompanion.Chat
function M.attach_again(chat)
  if chat.undo_kind ~= "detached" then
    chat.undo_soon = true
    return
  end
  chat.just_detached, chat.undo_soon = nil, nil
  require("codecompanion.chat.wire.history").undo(chat, chat.next_undo)
end

---The item on a row of the block.
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
