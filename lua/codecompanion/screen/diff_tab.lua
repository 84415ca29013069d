---Two texts as a diff, in a tab page of its own: to be read, in full and with folds. `q` closes it.

local api = vim.api
local float = require("codecompanion.screen.float")

local M = {}

---Wider than this two texts stand side by side, below it one above the other.
local SIDE_BY_SIDE = 100

---@class CodeCompanion.DiffSide
---@field name string Which of the two: `before`
---@field lines string[]

---@class CodeCompanion.DiffFile
---@field path string What both are texts of
---@field filetype string
---@field line? integer Of the right text, to be looked at first

---@param side CodeCompanion.DiffSide
---@param file CodeCompanion.DiffFile
local function fill(side, file)
  local bufnr = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(bufnr, 0, -1, false, side.lines)
  vim.bo[bufnr].bufhidden, vim.bo[bufnr].modifiable = "wipe", false
  local path = file.path ~= "" and vim.fn.fnamemodify(file.path, ":~:.") or "[No Name]"
  if not pcall(api.nvim_buf_set_name, bufnr, ("%s://%s"):format(side.name, path)) then
    pcall(api.nvim_buf_set_name, bufnr, ("%s://%s#%d"):format(side.name, path, bufnr)) -- open a second time
  end
  api.nvim_win_set_buf(0, bufnr)
  vim.wo.winbar = "%< " .. ("%s · %s · q close"):format(side.name, path):gsub("%%", "%%%%")
  if file.filetype ~= "" then
    float.highlight(bufnr, file.filetype)
  end
  vim.cmd.diffthis()
  vim.keymap.set("n", "q", function()
    pcall(vim.cmd.tabclose)
  end, { buffer = bufnr, nowait = true, desc = "Close the diff" })
end

---@param left CodeCompanion.DiffSide
---@param right CodeCompanion.DiffSide
---@param file CodeCompanion.DiffFile
function M.open(left, right, file)
  vim.cmd("tab split")
  fill(left, file)
  vim.cmd(vim.o.columns >= SIDE_BY_SIDE and "rightbelow vsplit" or "rightbelow split")
  fill(right, file)
  api.nvim_win_set_cursor(0, { math.max(1, math.min(file.line or 1, #right.lines)), 0 })
  vim.cmd.normal({ "zz", bang = true })
end

return M
