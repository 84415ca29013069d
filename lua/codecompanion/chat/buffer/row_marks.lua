---Sets the marks that identify drawn content: roles (`roles`), the item on each row (`items`), decorations.

local api = vim.api
local options = require("codecompanion.chat.state.chat_options")

local M = {}

M.roles = api.nvim_create_namespace("codecompanion.chat.roles")
M.items = api.nvim_create_namespace("codecompanion.chat.items")
M.decor = api.nvim_create_namespace("codecompanion.chat.decor")
local pins = api.nvim_create_namespace("codecompanion.chat.pins")

---@param chat CodeCompanion.Chat
---@param row integer
---@param id? integer Mark to update
---@param role "user"|"llm"
---@param right? table Chunks at the right edge
---@return integer id
local function role_mark(chat, row, id, role, right)
  local line = api.nvim_buf_get_lines(chat.bufnr, row, row + 1, false)[1] or ""
  return api.nvim_buf_set_extmark(chat.bufnr, M.roles, row, 0, {
    id = id,
    end_col = #line,
    hl_group = role == "user" and "CodeCompanionHeaderUser" or "CodeCompanionHeaderModel",
    line_hl_group = "CodeCompanionHeaderLine",
    virt_text = right,
    virt_text_pos = right and "right_align" or nil,
    hl_mode = right and "combine" or nil,
    invalidate = true,
    undo_restore = false,
  })
end

---Mark a role header.
---@param chat CodeCompanion.Chat
---@param row integer
---@param role "user"|"llm"
---@param right? table
---@return integer id Id of the role mark
function M.role_line(chat, row, role, right)
  local id = role_mark(chat, row, nil, role, right)
  chat.roles[id] = role
  local display = options.display()
  if display.show_header_separator then
    api.nvim_buf_set_extmark(chat.bufnr, M.decor, row, 0, {
      virt_text = { { display.separator:rep(400), "CodeCompanionHeaderSeparator" } },
      virt_text_pos = "eol",
    })
  end
  return id
end

---Change the text at the right edge of a role header.
---@param chat CodeCompanion.Chat
---@param id integer Id of the role mark
---@param right? table
function M.set_right(chat, id, right)
  local at = api.nvim_buf_get_extmark_by_id(chat.bufnr, M.roles, id, { details = true })
  if at[1] and not at[3].invalid then
    role_mark(chat, at[1], id, chat.roles[id], right)
  end
end

---Record that rows [first, last) show `item`.
---@param chat CodeCompanion.Chat
---@param first integer
---@param last integer
---@param item table
function M.set_item(chat, first, last, item)
  item.id = api.nvim_buf_set_extmark(chat.bufnr, M.items, first, 0, {
    id = item.id,
    end_row = last,
    end_col = 0,
    right_gravity = true,
    end_right_gravity = false,
    strict = false,
    invalidate = true,
    undo_restore = false,
  })
  chat.items[item.id] = item
  if item.call_id then
    chat.calls[item.call_id] = item
  end
  if item.message_id and item.message_id ~= "" then
    local known = chat.by_message[item.message_id] or {}
    if not vim.list_contains(known, item) then
      known[#known + 1] = item
    end
    chat.by_message[item.message_id] = known
  end
end

---Return the current first row of a message, or nil if it is not drawn.
---@param chat CodeCompanion.Chat
---@param message_id string
---@return integer? row
function M.message_row(chat, message_id)
  local first
  for _, item in ipairs(chat.by_message[message_id] or {}) do
    local row = M.item_rows(chat, item)
    first = row and math.min(first or row, row) or first
  end
  return first
end

---Return the current rows of an item, or nil if its text was deleted.
---@param chat CodeCompanion.Chat
---@param item table
---@return integer? first
---@return integer? last Exclusive
function M.item_rows(chat, item)
  local at = item.id and api.nvim_buf_get_extmark_by_id(chat.bufnr, M.items, item.id, { details = true }) or {}
  if not at[1] or at[3].invalid then
    return nil
  end
  return at[1], at[3].end_row
end

---Return the innermost item that covers a row.
---@param chat CodeCompanion.Chat
---@param row integer
---@return table?
function M.item_at(chat, row)
  local marks = api.nvim_buf_get_extmarks(
    chat.bufnr,
    M.items,
    { row, 0 },
    { row, -1 },
    { overlap = true, details = true }
  )
  local best, best_row
  for _, mark in ipairs(marks) do
    local item = chat.items[mark[1]]
    if item and not mark[4].invalid and mark[4].end_row > row and (not best_row or mark[2] >= best_row) then
      best, best_row = item, mark[2]
    end
  end
  return best
end

---Remove the hint of the newest notice, because something follows it.
---@param chat CodeCompanion.Chat
function M.forget_hint(chat)
  if chat.hint_mark then
    api.nvim_buf_del_extmark(chat.bufnr, M.decor, chat.hint_mark)
    chat.hint_mark = nil
  end
end

---Mark a message as pinned or not pinned.
---@param chat CodeCompanion.Chat
---@param item table
---@param pinned boolean
function M.pin(chat, item, pinned)
  if item.pin_mark then
    api.nvim_buf_del_extmark(chat.bufnr, pins, item.pin_mark)
    item.pin_mark = nil
  end
  item.pinned = pinned
  local first = pinned and M.item_rows(chat, item)
  if first then
    local line = api.nvim_buf_get_lines(chat.bufnr, first, first + 1, false)[1]
    item.pin_mark = api.nvim_buf_set_extmark(chat.bufnr, pins, first, #line, {
      virt_text = { { " ⚑ pinned", "CodeCompanionPinned" } },
      virt_text_pos = "inline",
      hl_mode = "combine",
    })
  end
end

return M
