---Forces a redraw of rows that Neovim does not redraw itself.

local api = vim.api

local M = {}

---Redraw every row of a buffer's windows. Undo and redo move an extmark back to its former row, a change of lines moves
---it out of its rows, and Neovim (0.10 to 0.12, neovim#27369, #27370) redraws neither row: removed virtual lines leave
---rows of the old height, and everything below is displaced.
---@param bufnr integer
function M.all_rows(bufnr)
  if api.nvim__redraw then -- no public function does this without clearing the screen
    api.nvim__redraw({ buf = bufnr, valid = false })
  end
end

return M
