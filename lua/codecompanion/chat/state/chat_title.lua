---The title of a chat as it is shown in lists, messages, and the name of its buffer.

local M = {}

local UNTITLED = "New chat"

---Return the title in one line.
---@param title string "" for a chat without a title
---@return string
function M.shown(title)
  local text = vim.trim((title:gsub("%s+", " ")))
  return text ~= "" and text or UNTITLED
end

return M
