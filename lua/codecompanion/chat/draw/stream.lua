---Inserts streaming text at one mark, at a cost independent of the length of the chat.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local blocks = require("codecompanion.chat.draw.blocks")
local buffer = require("codecompanion.chat.buffer.chat_text")
local draw = require("codecompanion.chat.draw.put_blocks")
local folds = require("codecompanion.chat.buffer.folds")
local live = require("codecompanion.chat.buffer.colour_live_text")
local marks = require("codecompanion.chat.buffer.row_marks")
local options = require("codecompanion.chat.state.chat_options")
local paint = require("codecompanion.chat.buffer.markdown_colours")
local scan = require("codecompanion.chat.buffer.markdown_pieces")

local M = {}

M.ns = api.nvim_create_namespace("codecompanion.chat.stream")

---Whether nvim_buf_set_text() of several lines extends a fold (since 0.11); on 0.10 it splits the fold, unless whole
---lines are inserted.
local GROWS_FOLDS = vim.fn.has("nvim-0.11") == 1

local INSERT, PIECE = 1, 2

---@class CodeCompanion.Stream
---@field kind "text"|"reasoning"
---@field scanner CodeCompanion.Scanner
---@field scanned integer Number of processed lines of the current piece
---@field width integer Number of bytes in the incomplete line
---@field first integer Id of the mark at the beginning of the text
---@field fold? CodeCompanion.Fold Fold of reasoning

---@param chat CodeCompanion.Chat
---@param id integer
---@return integer row, integer col
local function at(chat, id)
  local mark = api.nvim_buf_get_extmark_by_id(chat.bufnr, M.ns, id, {})
  return mark[1] or anchors.position(chat, "tail"), mark[2] or 0
end

---@param chat CodeCompanion.Chat
---@param id integer
---@param row integer
---@param col integer
local function place(chat, id, row, col)
  api.nvim_buf_set_extmark(chat.bufnr, M.ns, row, col, { id = id, right_gravity = id == INSERT, strict = false })
end

---@param chat CodeCompanion.Chat
local function begin_text(chat)
  local block = draw.append(chat, { kind = "text", lines = { "" } })
  place(chat, INSERT, block.row, 0)
  place(chat, PIECE, block.row, 0)
  chat.stream = { kind = "text", scanner = scan.new(), scanned = 0, width = 0 }
  chat.stream.first = api.nvim_buf_set_extmark(chat.bufnr, M.ns, block.row, 0, { right_gravity = false })
end

---@param chat CodeCompanion.Chat
local function begin_reasoning(chat)
  local block = draw.append(chat, { kind = "reasoning", lines = { "▾ reasoning", "" } })
  place(chat, INSERT, block.row + 1, 0)
  place(chat, PIECE, block.row + 1, 0)
  chat.stream = { kind = "reasoning", scanner = scan.new(), scanned = 0, width = 0 }
  chat.stream.first = api.nvim_buf_set_extmark(chat.bufnr, marks.decor, block.row, 0, {
    end_row = block.row + 1,
    end_col = 0,
    hl_group = "CodeCompanionReasoning",
    priority = 110,
    right_gravity = false,
    end_right_gravity = true,
  })
  -- the blank line after the block is the last line of the fold, so text inserted before it extends the fold
  local fold
  fold = folds.add(chat, block.row, block.row + 2, {
    closed = options.display().fold_reasoning,
    text = function()
      local first, last = folds.rows(chat, fold)
      return blocks.reasoning_text(first and math.max(1, last - first - 1) or 1)
    end,
  })
  chat.stream.fold = fold
end

---Shrink the fold of finished reasoning to its text.
---@param chat CodeCompanion.Chat
---@param fold CodeCompanion.Fold
---@param first integer
---@param last integer Inclusive
local function settle_reasoning(chat, fold, first, last)
  local closed = folds.is_closed(chat, fold)
  folds.remove(chat, fold)
  folds.add(chat, first, last, {
    closed = closed,
    text = function()
      return blocks.reasoning_text(last - first)
    end,
  })
end

---Process newly completed lines: split off finished pieces, highlight the others.
---@param chat CodeCompanion.Chat
local function read_new_lines(chat)
  local stream = chat.stream
  local first, last = at(chat, PIECE), at(chat, INSERT)
  local from = first + stream.scanned
  local lines = api.nvim_buf_get_lines(chat.bufnr, from, last + 1, false)
  for offset = 1, #lines - 1 do
    local line = lines[offset]
    local kind, ended = scan.line(stream.scanner, line)
    for _, piece in ipairs(ended) do
      paint.add(chat, first, piece)
      first = first + piece.lines
    end
    live.line(chat, from + offset - 1, line, kind)
  end
  place(chat, PIECE, first, 0)
  stream.scanned = last - first
  local line = lines[#lines] or ""
  local kind = line:find("^#+ ") and "heading" or "text"
  if stream.scanner.fence then
    kind = "code"
  elseif line:find("^ ? ? ?```") then
    kind = "fence"
  end
  api.nvim_buf_clear_namespace(chat.bufnr, live.ns, last, last + 1)
  live.line(chat, last, line, kind)
end

---Append streamed text of one kind.
---@param chat CodeCompanion.Chat
---@param kind "text"|"reasoning"
---@param text string
function M.append(chat, kind, text)
  if kind == "reasoning" and not options.display().show_reasoning then
    return
  end
  if chat.stream and chat.stream.kind ~= kind then
    M.finish(chat)
  end
  text = text:gsub("\r\n", "\n")
  if not chat.stream then
    text = text:gsub("^%s*\n", "")
    if text:find("^%s*$") then
      return
    end
    paint.guard(chat)
    if kind == "text" then
      begin_text(chat)
    else
      begin_reasoning(chat)
    end
  end
  local stream = chat.stream
  local lines, continued = blocks.to_lines(text, stream.width)
  buffer.edit(chat, function()
    local row, col = at(chat, INSERT)
    if GROWS_FOLDS or #lines == 1 then
      api.nvim_buf_set_text(chat.bufnr, row, col, row, col, lines)
    else
      api.nvim_buf_set_text(chat.bufnr, row, col, row, col, { lines[1] })
      api.nvim_buf_set_lines(chat.bufnr, row + 1, row + 1, false, vim.list_slice(lines, 2))
      place(chat, INSERT, row + #lines - 1, #lines[#lines])
    end
    for _, index in ipairs(continued) do
      api.nvim_buf_set_extmark(chat.bufnr, marks.decor, row + index - 1, 0, {
        virt_text = blocks.CONTINUED,
        virt_text_pos = "eol",
      })
    end
    stream.width = #lines > 1 and #lines[#lines] or stream.width + #lines[1]
    if stream.kind == "text" then
      read_new_lines(chat)
    end
  end)
end

---Finish the text: remove blank lines at its end and pass the last piece to the highlighter.
---@param chat CodeCompanion.Chat
---@return integer? first First row of the text
---@return integer? last Exclusive
function M.finish(chat)
  local stream = chat.stream
  if not stream then
    return nil
  end
  chat.stream = nil
  local row = at(chat, INSERT)
  local ns = stream.kind == "text" and M.ns or marks.decor
  local first = (api.nvim_buf_get_extmark_by_id(chat.bufnr, ns, stream.first, {}))[1] or row
  local last = row
  while last > first and api.nvim_buf_get_lines(chat.bufnr, last, last + 1, false)[1]:find("^%s*$") do
    last = last - 1
  end
  if last < row then
    buffer.remove(chat, last + 1, row + 1)
  end
  if stream.kind == "text" then
    local line = api.nvim_buf_get_lines(chat.bufnr, first, first + 1, false)[1] or ""
    local placement = require("codecompanion.chat.draw.placement_line").chunks(line)
    if placement then
      local look = { virt_text = placement, virt_text_pos = "overlay", hl_mode = "combine" }
      api.nvim_buf_set_extmark(chat.bufnr, marks.decor, first, 0, look)
    end
    local piece = at(chat, PIECE)
    if last >= piece then
      paint.add(chat, piece, { lines = last + 1 - piece, lang = stream.scanner.lang })
    end
    paint.wake(chat)
  elseif stream.fold then
    settle_reasoning(chat, stream.fold, first, last)
  end
  for _, id in ipairs({ INSERT, PIECE, ns == M.ns and stream.first or nil }) do
    api.nvim_buf_del_extmark(chat.bufnr, M.ns, id)
  end
  -- its message id is known when the reply is stored (`reply_finished`)
  local part = { kind = stream.kind }
  marks.set_item(chat, first, last + 1, part)
  chat.parts[#chat.parts + 1] = part
  return first, last + 1
end

return M
