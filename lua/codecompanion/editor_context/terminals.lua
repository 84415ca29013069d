---Finds the editor's terminals and reads their output, for `#{terminal}` and `/terminal`.

local api = vim.api

local M = {}

---Return terminals with text, the most recently used first.
---@return integer[]
function M.list()
  local found = vim.tbl_filter(function(buf)
    return vim.bo[buf.bufnr].buftype == "terminal" and api.nvim_buf_is_loaded(buf.bufnr)
  end, vim.fn.getbufinfo())
  table.sort(found, function(a, b)
    if a.lastused ~= b.lastused then
      return a.lastused > b.lastused
    end
    return a.bufnr > b.bufnr
  end)
  return vim.tbl_map(function(buf)
    return buf.bufnr
  end, found)
end

---Return the program that a terminal runs.
---@param bufnr integer
---@return string
function M.program(bufnr)
  return (api.nvim_buf_get_name(bufnr):gsub("^term://.-//%d*:?", ""))
end

---Return the last non-empty lines, up to a maximum.
---@param bufnr integer
---@param count integer
---@return string[]
function M.last_lines(bufnr, count)
  local last = api.nvim_buf_line_count(bufnr)
  while last > 0 and not api.nvim_buf_get_lines(bufnr, last - 1, last, false)[1]:find("%S") do
    last = last - 1
  end
  return api.nvim_buf_get_lines(bufnr, math.max(0, last - count), last, false)
end

return M
