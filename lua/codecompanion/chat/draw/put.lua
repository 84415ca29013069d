---Puts blocks into the buffer: lines, colours, folds, and the marks by which they are found again.

local api = vim.api
local buffer = require("codecompanion.chat.buffer.text")
local folds = require("codecompanion.chat.buffer.folds")
local options = require("codecompanion.chat.state.options")
local paint = require("codecompanion.chat.buffer.paint")

local M = {}

M.roles = api.nvim_create_namespace("codecompanion.chat.roles")
M.items = api.nvim_create_namespace("codecompanion.chat.items")
M.decor = api.nvim_create_namespace("codecompanion.chat.decor")

---Whether a block stands directly below the one before, without a blank line.
---@param before? string kind
---@param kind string
---@return boolean
local function tight(before, kind)
  return before == "header" or (before == "tool" and kind == "tool")
end

---@param chat CodeCompanion.Chat
---@param row integer
---@param id? integer Of the mark to change
---@param role "user"|"llm"
---@param right? table Chunks at the right end
---@return integer id
local function role_mark(chat, row, id, role, right)
  local line = api.nvim_buf_get_lines(chat.bufnr, row, row + 1, false)[1] or ""
  return api.nvim_buf_set_extmark(chat.bufnr, M.roles, row, 0, {
    id = id,
    end_col = #line,
    hl_group = role == "user" and "CodeCompanionHeaderUser" or "CodeCompanionHeaderModel",
    virt_text = right,
    virt_text_pos = right and "right_align" or nil,
    hl_mode = right and "combine" or nil,
    invalidate = true,
    undo_restore = false,
  })
end

---@param chat CodeCompanion.Chat
---@param row integer
---@param role "user"|"llm"
---@param right? table
---@return integer id Of the role mark
local function role_line(chat, row, role, right)
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

---Change what stands at the right end of a role header.
---@param chat CodeCompanion.Chat
---@param id integer Of the role mark
---@param right? table
function M.set_right(chat, id, right)
  local at = api.nvim_buf_get_extmark_by_id(chat.bufnr, M.roles, id, { details = true })
  if at[1] and not at[3].invalid then
    role_mark(chat, at[1], id, chat.roles[id], right)
  end
end

---The colours, folds and marks of a block that stands at `row`.
---@param chat CodeCompanion.Chat
---@param row integer
---@param block CodeCompanion.Block
function M.decorate(chat, row, block)
  local bufnr = chat.bufnr
  if block.role then
    block.role_id = role_line(chat, row, block.role, block.right)
  end
  for _, mark in ipairs(block.marks or {}) do
    if mark.to > mark.from then
      local id = api.nvim_buf_set_extmark(bufnr, M.decor, row + mark.row, mark.from, {
        end_col = mark.to,
        hl_group = mark.group,
        priority = 110,
      })
      if block.notice then
        block.notice.mark = id
      end
    end
  end
  for _, text in ipairs(block.eol or {}) do
    local opts = { virt_text = text.chunks, virt_text_pos = text.pos or "eol", hl_mode = "combine" }
    local id = api.nvim_buf_set_extmark(bufnr, M.decor, row + text.row, text.col or 0, opts)
    if block.kind == "notice" then
      chat.hint_mark = id
    end
  end
  if block.virtual then
    local below = { { "", block.virtual[1][2] } } -- it stands below a blank line; what follows gets one, too
    local opts = { virt_lines = { block.virtual, below } }
    block.virtual_id = api.nvim_buf_set_extmark(bufnr, M.decor, math.max(row - 1, 0), 0, opts)
  end
  if block.markdown then
    local from, to = block.markdown[1], block.markdown[2]
    paint.add_text(chat, row + from, vim.list_slice(block.lines, from + 1, to))
  end
  if block.item and #block.lines > 0 then
    M.set_item(chat, row, row + #block.lines, block.item)
  end
  -- inner folds first: a fold made inside a closed one would swallow it
  for index = #(block.folds or {}), 1, -1 do
    local fold = block.folds[index]
    folds.add(chat, row + fold.first, row + fold.last, fold)
  end
  if block.change then
    require("codecompanion.chat.draw.changes").add(chat, block)
  end
  if block.item and block.item.pinned and not block.item.reasoning then
    require("codecompanion.chat.draw.changes").pin(chat, block.item, true)
  end
end

---Note that rows [first, last) show `item`.
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

---The first row of a message as it is now, nil when it is not drawn.
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

---Mark a reply that ended early: within its last line, because what follows a line is lost at the edge of the window.
---@param chat CodeCompanion.Chat
---@param row integer
function M.cut_off(chat, row)
  local line = api.nvim_buf_get_lines(chat.bufnr, row, row + 1, false)[1] or ""
  local mark = require("codecompanion.chat.draw.blocks").CUT_OFF
  local opts = { virt_text = mark, virt_text_pos = "inline", hl_mode = "combine" }
  api.nvim_buf_set_extmark(chat.bufnr, M.decor, row, #line, opts)
end

---The rows of an item as they are now, nil when its text was deleted.
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

---The innermost item that covers a row.
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

---Put blocks above `row` in one edit, each followed by a blank line unless the next one joins it.
---@param chat CodeCompanion.Chat
---@param row integer
---@param blocks CodeCompanion.Block[]
---@return integer count Lines added
function M.sequence(chat, row, blocks)
  local lines, before = {}, nil
  for _, block in ipairs(blocks) do
    if tight(before, block.kind) then
      lines[#lines] = nil
    end
    block.row = row + #lines
    if #block.lines > 0 then
      vim.list_extend(lines, block.lines)
      lines[#lines + 1] = ""
    end
    before = block.kind
  end
  buffer.edit(chat, function()
    if #lines > 0 then
      buffer.insert(chat, row, lines)
    end
    for _, block in ipairs(blocks) do
      M.decorate(chat, block.row, block)
    end
  end)
  return #lines
end

---The chat is no longer empty: the intro goes.
---@param chat CodeCompanion.Chat
function M.touch(chat)
  if not chat.touched then
    chat.touched = true
    require("codecompanion.chat.wire.draft").hint(chat)
  end
end

---Take away what the newest notice says can be done: something has come after it.
---@param chat CodeCompanion.Chat
function M.forget_hint(chat)
  if chat.hint_mark then
    api.nvim_buf_del_extmark(chat.bufnr, M.decor, chat.hint_mark)
    chat.hint_mark = nil
  end
end

---Append a block where the machine writes.
---@param chat CodeCompanion.Chat
---@param block CodeCompanion.Block
---@return CodeCompanion.Block
function M.append(chat, block)
  buffer.ensure_input(chat)
  M.forget_hint(chat)
  local tail = buffer.position(chat, "tail")
  if tail > 0 and tight(chat.tail_kind, block.kind) then
    block.row = tail - 1
    buffer.edit(chat, function()
      buffer.insert(chat, tail - 1, block.lines)
      M.decorate(chat, tail - 1, block)
    end)
  else
    M.sequence(chat, tail, { block })
  end
  chat.tail_kind = block.kind
  M.touch(chat)
  return block
end

return M
