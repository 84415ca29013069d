---Finds file changes in a chat buffer.

local api = vim.api

local marks = require("codecompanion.chat.buffer.row_marks")

local M = {}

---Return the row of the next (1) or previous (-1) tool call that changed a file.
---@param chat CodeCompanion.Chat
---@param from integer
---@param step 1|-1
---@return integer? row
---@return CodeCompanion.TurnChange? change
function M.next_row(chat, from, step)
  local best, change
  for id, item in pairs(chat.items) do
    if item.change then
      local mark = api.nvim_buf_get_extmark_by_id(chat.bufnr, marks.items, id, { details = true })
      local row = mark[1]
      if row and not mark[3].invalid and (row - from) * step > 0 and (not best or (best - row) * step > 0) then
        best, change = row, item.change
      end
    end
  end
  return best, change
end

return M
