---Creates the help tags of the manual if they are missing. Plugin managers create them, except for a checkout that they
---only load (`dir = …`).

local M = {}

---Return whether `:help codecompanion` works.
---@return boolean
function M.exist()
  return #vim.fn.getcompletion("codecompanion-install", "help") > 0
end

---Create the tags beside the manual if there are none. A folder that cannot be written is left as it is.
function M.create()
  local manual = vim.api.nvim_get_runtime_file("doc/codecompanion.txt", false)[1]
  if manual and not M.exist() then
    pcall(vim.cmd.helptags, { args = { vim.fs.dirname(manual) }, magic = { file = false, bar = false } })
  end
end

return M
