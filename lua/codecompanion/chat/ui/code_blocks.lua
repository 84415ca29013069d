---Inserts an empty code block into the chat buffer, or yanks one from it.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local say = require("codecompanion.say")
local view = require("codecompanion.chat.buffer.scroll")

local M = {}

---Insert an empty code block at the cursor, with the language of the previous buffer.
function M.insert(chat)
  local filetype = ""
  local previous = vim.fn.bufnr("#")
  if previous > 0 and previous ~= chat.bufnr then
    filetype = vim.bo[previous].filetype
  end
  local row = math.max(view.cursor_row(), (anchors.position(chat, "input")))
  local line = api.nvim_buf_get_lines(chat.bufnr, row, row + 1, false)[1] or ""
  local first = line == "" and row or row + 1
  vim.bo[chat.bufnr].modifiable = true
  api.nvim_buf_set_lines(chat.bufnr, first, line == "" and row + 1 or first, false, { "```" .. filetype, "", "```" })
  api.nvim_win_set_cursor(0, { first + 2, 0 })
end

---Return the fenced blocks of the transcript from top to bottom. A fence is closed by one of at least the same length.
---@param lines string[]
---@return { first: integer, last: integer }[] 1-based lines of the fences
local function code_blocks(lines)
  local found, first, opener = {}, nil, nil
  for row, line in ipairs(lines) do
    local fence, info = line:match("^ ? ? ?(```+)(.*)$")
    if fence and not first and not info:find("`") then
      first, opener = row, #fence
    elseif fence and first and #fence >= opener and info:find("^%s*$") then
      found[#found + 1] = { first = first, last = row }
      first = nil
    end
  end
  return found
end

---Yank the code block under the cursor, otherwise the last one above it.
function M.yank(chat)
  local lines = api.nvim_buf_get_lines(chat.bufnr, 0, (anchors.position(chat, "header")), false)
  local line, chosen = view.cursor_row() + 1, nil
  for _, block in ipairs(code_blocks(lines)) do
    if block.first <= line then
      chosen = block
    end
  end
  if not chosen then
    return say.hint("No code block here or above.")
  end
  local code = vim.list_slice(lines, chosen.first + 1, chosen.last - 1)
  vim.fn.setreg(vim.v.register, code, "l")
  say.hint(("%d line%s of code yanked"):format(#code, #code == 1 and "" or "s"))
end

return M
