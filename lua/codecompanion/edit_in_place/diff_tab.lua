---A proposal as a diff of the whole buffer, in a tab page of its own: to be read, in full and with folds.

local api = vim.api

local M = {}

local SIDE_BY_SIDE = 100

---@param lines string[]
---@param filetype string
---@param name string
local function fill(lines, filetype, name)
  local bufnr = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].bufhidden, vim.bo[bufnr].modifiable = "wipe", false
  pcall(api.nvim_buf_set_name, bufnr, ("%s://%d"):format(name, bufnr))
  api.nvim_win_set_buf(0, bufnr)
  if filetype ~= "" then
    require("codecompanion.screen.float").highlight(bufnr, filetype)
  end
  vim.cmd.diffthis()
  vim.keymap.set("n", "q", function()
    pcall(vim.cmd.tabclose)
  end, { buffer = bufnr, nowait = true, desc = "Close the diff" })
end

---@param bufnr integer
---@param first integer 0-based row of the lines that change
---@param last integer 0-based row after them
---@param lines string[] What they would be
function M.open(bufnr, first, last, lines)
  local now = api.nvim_buf_get_lines(bufnr, 0, -1, false)
  local proposed = vim.list_slice(now, 1, first)
  vim.list_extend(proposed, lines)
  vim.list_extend(proposed, now, last + 1)
  local filetype = vim.bo[bufnr].filetype
  vim.cmd("tab split")
  fill(now, filetype, "now")
  vim.cmd(vim.o.columns >= SIDE_BY_SIDE and "rightbelow vsplit" or "rightbelow split")
  fill(proposed, filetype, "proposal")
  api.nvim_win_set_cursor(0, { math.max(1, math.min(first + 1, #proposed)), 0 })
  vim.cmd.normal({ "zz", bang = true })
end

return M
