---Inserts blocks into the buffer: lines, colours, folds, and the marks that identify them.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local buffer = require("codecompanion.chat.buffer.chat_text")
local card = require("codecompanion.chat.draw.card")
local fit = require("codecompanion.text.fit")
local folds = require("codecompanion.chat.buffer.folds")
local hint = require("codecompanion.chat.buffer.input_hint")
local marks = require("codecompanion.chat.buffer.row_marks")
local paint = require("codecompanion.chat.buffer.markdown_colours")
local unread = require("codecompanion.chat.buffer.unread")

local M = {}

---Return whether a block follows the previous one without a blank line.
---@param before? string Kind of the previous block
---@param kind string
---@return boolean
local function tight(before, kind)
  return before == "header" or (before == "tool" and kind == "tool") or (before == "gathered" and kind == "gathered")
end

---Return the cells that a line takes in the narrowest window of a chat, including those that word wrap leaves empty.
---@param chat CodeCompanion.Chat
---@param row integer
---@param room integer Cells of a row of that window
---@return integer
local function cells_of(chat, row, room)
  for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
    if fit.room(win) == room then
      return vim.fn.virtcol({ row + 1, "$" }, false, win) - 1
    end
  end
  return api.nvim_strwidth(api.nvim_buf_get_lines(chat.bufnr, row, row + 1, false)[1] or "")
end

---Return the virtual text after a line: a note that would wrap in the middle of a word begins the next row, without its
---separator.
---@param chat CodeCompanion.Chat
---@param row integer
---@param chunks { [1]: string, [2]: string }[]
---@return { [1]: string, [2]: string }[]
local function after_text(chat, row, chunks)
  local room, width = fit.narrowest(chat), fit.width(chunks)
  local cells = cells_of(chat, row, room)
  local used = cells % room -- 0 if the text fills its last row
  if cells == 0 or (used > 0 and used + width <= room) or width > room then
    return chunks
  end
  local below = vim.list_slice(chunks)
  below[1] = { (" "):rep((room - used) % room) .. chunks[1][1]:gsub("^ · ", ""), chunks[1][2] }
  return below
end

---Apply the colours, folds and marks of a block at `row`.
---@param chat CodeCompanion.Chat
---@param row integer
---@param block CodeCompanion.Block
function M.decorate(chat, row, block)
  local bufnr = chat.bufnr
  if block.role then
    block.role_id = marks.role_line(chat, row, block.role, block.right)
  end
  for _, mark in ipairs(block.marks or {}) do
    if mark.to > mark.from then
      local id = api.nvim_buf_set_extmark(bufnr, marks.decor, row + mark.row, mark.from, {
        end_row = mark.eol and row + mark.row + 1 or nil,
        end_col = mark.eol and 0 or mark.to,
        hl_group = mark.group,
        hl_eol = mark.eol,
        priority = 110,
      })
      if block.notice then
        block.notice.mark = id
      end
    end
  end
  for _, text in ipairs(block.eol or {}) do
    local at_end = text.pos == "inline" and text.col == #(block.lines[text.row + 1] or "")
    local chunks = at_end and after_text(chat, row + text.row, text.chunks) or text.chunks
    local opts = { virt_text = chunks, virt_text_pos = text.pos or "eol", hl_mode = "combine" }
    local id = api.nvim_buf_set_extmark(bufnr, marks.decor, row + text.row, text.col or 0, opts)
    if block.kind == "notice" then
      chat.hint_mark = id
    end
  end
  if block.virtual then
    local below = { { "", block.virtual[1][2] } } -- it is drawn below a blank line; the text after it also needs one
    local opts = { virt_lines = { block.virtual, below } }
    block.virtual_id = api.nvim_buf_set_extmark(bufnr, marks.decor, math.max(row - 1, 0), 0, opts)
  end
  if block.markdown then
    local from, to = block.markdown[1], block.markdown[2]
    paint.add_text(chat, row + from, vim.list_slice(block.lines, from + 1, to))
  end
  for _, thing in ipairs({ block.item or false, block.change or false }) do
    if thing then
      thing.drawn = unread.stamp(chat)
    end
  end
  if block.item and #block.lines > 0 then
    marks.set_item(chat, row, row + #block.lines, block.item)
  end
  -- inner folds first: a fold created inside a closed one would swallow it
  for index = #(block.folds or {}), 1, -1 do
    local fold = block.folds[index]
    folds.add(chat, row + fold.first, row + fold.last, fold)
  end
  if block.change then
    card.add(chat, block)
  end
  if block.item and block.item.pinned and not block.item.reasoning then
    marks.pin(chat, block.item, true)
  end
end

---Mark a truncated reply: inside its last line, because text after a line is lost at the edge of the window.
---@param chat CodeCompanion.Chat
---@param row integer
function M.cut_off(chat, row)
  local line = api.nvim_buf_get_lines(chat.bufnr, row, row + 1, false)[1] or ""
  local mark = after_text(chat, row, require("codecompanion.chat.draw.blocks").CUT_OFF)
  local opts = { virt_text = mark, virt_text_pos = "inline", hl_mode = "combine" }
  api.nvim_buf_set_extmark(chat.bufnr, marks.decor, row, #line, opts)
end

---Insert blocks above `row` in one edit, each followed by a blank line unless the next one is joined to it.
---@param chat CodeCompanion.Chat
---@param row integer
---@param blocks CodeCompanion.Block[]
---@return integer count Number of added lines
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

---Remove the intro, because the chat is no longer empty.
---@param chat CodeCompanion.Chat
function M.touch(chat)
  if not chat.touched then
    chat.touched = true
    hint.draw(chat)
  end
end

---Append a block at the insertion point of machine text.
---@param chat CodeCompanion.Chat
---@param block CodeCompanion.Block
---@return CodeCompanion.Block
function M.append(chat, block)
  local is_aside = block.notice ~= nil and block.notice.is_aside == true
  buffer.ensure_input(chat)
  if not is_aside then
    marks.forget_hint(chat)
  end
  local tail = anchors.position(chat, "tail")
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
  if not is_aside then
    M.touch(chat)
  end
  return block
end

return M
