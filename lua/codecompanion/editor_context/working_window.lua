---Where the user works: the window, its buffer, what of it is on the screen.

local api = vim.api

local M = {}

---@class CodeCompanion.EditorContext.At
---@field bufnr? integer The buffer the user works in, or worked in last; nil = no file is open
---@field win? integer A window that shows it
---@field path string Its file, "" = it has none
---@field cursor [integer, integer] (row, column), row 1-based
---@field argument string What stands after the colon, "" = nothing
---@field chat? { id: string, bufnr: integer }

---@type CodeCompanion.EditorContext.At
M.NOWHERE = { path = "", cursor = { 1, 0 }, argument = "" }

---@param bufnr integer
---@return boolean
function M.is_file(bufnr)
  bufnr = bufnr == 0 and api.nvim_get_current_buf() or bufnr
  -- `getbufvar` takes a tenth of the time of `vim.bo`, which is felt with hundreds of buffers.
  return vim.fn.getbufvar(bufnr, "&buftype") == "" and api.nvim_buf_get_name(bufnr) ~= ""
end

---A buffer with text of the user's, with or without a file.
---@param bufnr integer
---@return boolean
function M.is_text(bufnr)
  local bo = vim.bo[bufnr]
  return bo.buftype == "" and bo.filetype ~= "codecompanion" and (bo.buflisted or M.is_file(bufnr))
end

---Windows in the order in which the user is likely to work in them.
---@return integer[]
local function windows()
  local wins = { api.nvim_get_current_win(), vim.fn.win_getid(vim.fn.winnr("#")) }
  return vim.list_extend(wins, api.nvim_tabpage_list_wins(0))
end

---The window the user works in: this one, else the previous one, else any that shows a file.
---@return integer? win
function M.window()
  for _, win in ipairs(windows()) do
    if win ~= 0 and api.nvim_win_is_valid(win) and M.is_file(api.nvim_win_get_buf(win)) then
      return win
    end
  end
end

---Buffers with text of the user's, the one used last first.
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

---Where the user works now.
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

---The file of a buffer, "" = it has none.
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

---The first and the last line of a window that are on the screen, and how many lines its buffer has.
---@param win integer
---@return [integer, integer, integer]
function M.visible(win)
  return { vim.fn.line("w0", win), vim.fn.line("w$", win), api.nvim_buf_line_count(api.nvim_win_get_buf(win)) }
end

return M
