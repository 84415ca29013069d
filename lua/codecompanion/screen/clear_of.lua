---Places a float so that it does not cover the rows that it refers to.

local M = {}

---@class CodeCompanion.Rows
---@field first integer 0-based row of the screen
---@field last integer Included
---@field column integer 0-based first column of their window
---@field width integer Width of their window

---Return the row of a float below the rows, or else above them; where neither has enough space, the float covers as few
---of them as possible.
---@param rows CodeCompanion.Rows
---@param height integer Height of the float with its border
---@param space integer Number of rows of the screen that a float may use
---@return integer row 0-based
function M.row(rows, height, space)
  local below, above = space - rows.last - 1, rows.first
  if height <= below then
    return rows.last + 1
  elseif height <= above then
    return above - height
  end
  return below >= above and math.max(0, space - height) or 0
end

---Return the rows of the screen that show these lines in a window, or nil if they are not visible.
---@param win integer
---@param first integer 0-based line
---@param last integer Exclusive
---@return CodeCompanion.Rows?
function M.lines(win, first, last)
  local top, bottom = vim.fn.line("w0", win), vim.fn.line("w$", win)
  if last < top or first + 1 > bottom then
    return nil
  end
  local from = vim.fn.screenpos(win, math.max(first + 1, top), 1).row
  local until_line = math.min(last, bottom)
  local till = vim.fn.screenpos(win, until_line, math.max(1, vim.fn.col({ until_line, "$" }, win) - 1)).row
  if from > 0 and till > 0 then
    local column, width = vim.api.nvim_win_get_position(win)[2], vim.api.nvim_win_get_width(win)
    return { first = from - 1, last = till - 1, column = column, width = width }
  end
end

return M
