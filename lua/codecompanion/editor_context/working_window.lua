---Finds the window where the user works, its buffer and its visible lines.

local api = vim.api

local M = {}

---@class CodeCompanion.EditorContext.At
---@field bufnr? integer Current or most recent working buffer; nil if no file is open
---@field win? integer A window that shows the buffer
---@field path string File of the buffer, or "" if it has none
---@field cursor [integer, integer] (row, column), row 1-based
---@field argument string Text after the colon, or "" if there is none
---@field chat? { id: string, bufnr: integer }

---@type CodeCompanion.EditorContext.At
M.NOWHERE = { path = "", cursor = { 1, 0 }, argument = "" }

---@param bufnr integer
---@return boolean
function M.is_file(bufnr)
  bufnr = bufnr == 0 and api.nvim_get_current_buf() or bufnr
  -- `getbufvar` is ten times as fast as `vim.bo`, which matters with hundreds of buffers.
  return vim.fn.getbufvar(bufnr, "&buftype") == "" and api.nvim_buf_get_name(bufnr) ~= ""
end

---Return whether a buffer contains the user's text, with or without a file.
---@param bufnr integer
---@return boolean
function M.is_text(bufnr)
  local bo = vim.bo[bufnr]
  return bo.buftype == "" and bo.filetype ~= "codecompanion" and (bo.buflisted or M.is_file(bufnr))
end

---Return the windows, the most likely working window first.
---@return integer[]
local function windows()
  local wins = { api.nvim_get_current_win(), vim.fn.win_getid(vim.fn.winnr("#")) }
  return vim.list_extend(wins, api.nvim_tabpage_list_wins(0))
end

---Return the working window: the current one, else the previous one, else any that shows a file.
---@return integer? win
function M.window()
  for _, win in ipairs(windows()) do
    if win ~= 0 and api.nvim_win_is_valid(win) and M.is_file(api.nvim_win_get_buf(win)) then
      return win
    end
  end
end

---Return the buffers with the user's text, most recently used first.
---@return integer[]
function M.buffers()
  local found = vim.tbl_filter(function(buf)
    local is_text = vim.fn.getbufvar(buf.bufnr, "&buftype") == ""
      and vim.fn.getbufvar(buf.bufnr, "&filetype") ~= "codecompanion"
    return is_text and (buf.name ~= "" or buf.linecount > 1 or buf.changed == 1)
  end, vim.fn.getbufinfo({ buflisted = 1 }))
  table.sort(found, function(a, b)
    if a.lastused ~= b.lastused then
      return a.lastused > b.lastused
    end
    return a.bufnr < b.bufnr
  end)
  return vim.tbl_map(function(buf)
    return buf.bufnr
  end, found)
end

---Return the buffer, window and cursor position where the user works now.
---@return CodeCompanion.EditorContext.At
function M.at()
  local win = M.window()
  if not win then
    for _, other in ipairs(windows()) do
      if other ~= 0 and api.nvim_win_is_valid(other) and M.is_text(api.nvim_win_get_buf(other)) then
        win = other
        break
      end
    end
  end
  local bufnr = win and api.nvim_win_get_buf(win) or M.buffers()[1]
  local cursor = { 1, 0 }
  if win then
    cursor = api.nvim_win_get_cursor(win)
  elseif bufnr and api.nvim_buf_is_loaded(bufnr) then
    local mark = api.nvim_buf_get_mark(bufnr, '"')
    cursor = mark[1] > 0 and mark or cursor
  end
  return { bufnr = bufnr, win = win, path = bufnr and M.path(bufnr) or "", cursor = cursor, argument = "" }
end

---Return the file of a buffer, or "" if it has none.
---@param bufnr integer
---@return string
function M.path(bufnr)
  return M.is_file(bufnr) and api.nvim_buf_get_name(bufnr) or ""
end

---@param path string
---@return string
function M.short(path)
  return vim.fn.fnamemodify(path, ":.")
end

---Return the first and last visible line of a window, and the line count of its buffer.
---@param win integer
---@return [integer, integer, integer]
function M.visible(win)
  return { vim.fn.line("w0", win), vim.fn.line("w$", win), api.nvim_buf_line_count(api.nvim_win_get_buf(win)) }
end

return M
