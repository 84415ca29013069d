---Rows that Neovim does not draw again by itself.

local api = vim.api

local M = {}

---Have every row of a buffer's windows drawn again. Undo and redo move an extmark to where it was, a change of lines
---moves it out of them, and Neovim (0.10 to 0.12, neovim#27369, #27370) draws neither row again: virtual lines that
---then go leave rows of the old height, and all below stands beside its place.
---@param bufnr integer
function M.all_rows(bufnr)
  if api.nvim__redraw then -- there is no public function that does it without clearing the screen
    api.nvim__redraw({ buf = bufnr, valid = false })
  end
end

return M
