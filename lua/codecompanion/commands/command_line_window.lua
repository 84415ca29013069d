---The command-line window (`q:`): Neovim opens no other window and shows no other buffer while it is there (E11).

local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

---Whether nothing can be shown now because of it; the user is told.
---@return boolean
function M.refuses()
  if vim.fn.getcmdwintype() == "" then
    return false
  end
  say.line("Not in the command-line window; :q leaves it", severity.ERROR)
  return true
end

return M
