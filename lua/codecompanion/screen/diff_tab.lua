---Two texts as a diff, in a tab page of its own: to be read, in full and with folds. `q` closes it.

local api = vim.api
local float = require("codecompanion.screen.float")

local M = {}

---Wider than this two texts stand side by side, below it one above the other.
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
    float.highlight(bufnr, filetype)
  end
  vim.cmd.diffthis()
  vim.keymap.set("n", "q", function()
    pcall(vim.cmd.tabclose)
  end, { buffer = bufnr, nowait = true, desc = "Close the diff" })
end

---@class CodeCompanion.DiffSide
---@field name string
---@field lines string[]

---@param left CodeCompanion.DiffSide
---@param right CodeCompanion.DiffSide
---@param filetype string
---@param line? integer Of the right text, to be looked at first
function M.open(left, right, filetype, line)
  vim.cmd("tab split")
  fill(left.lines, filetype, left.name)
  vim.cmd(vim.o.columns >= SIDE_BY_SIDE and "rightbelow vsplit" or "rightbelow split")
  fill(right.lines, filetype, right.name)
  api.nvim_win_set_cursor(0, { math.max(1, math.min(line or 1, #right.lines)), 0 })
  vim.cmd.normal({ "zz", bang = true })
end

return M
