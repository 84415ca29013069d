---Detects the command-line window (`q:`): while it is open, Neovim can neither open a window nor switch buffers (E11).

local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

---Return whether this window prevents showing anything now; if so, notify the user.
---@return boolean
function M.refuses()
  if vim.fn.getcmdwintype() == "" then
    return false
  end
  say.line("Not in the command-line window; :q leaves it", severity.ERROR)
  return true
end

return M
