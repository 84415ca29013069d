---Describes the user's location when a prompt is used: the values of `${context.…}`, named as in codecompanion.nvim.

local api = vim.api

local M = {}

---@class CodeCompanion.PromptContext
---@field bufnr integer 0 if no file is open
---@field winnr integer
---@field filename string Relative to the working folder, or "" without a name
---@field filetype string
---@field buftype string
---@field mode string
---@field is_visual boolean Whether lines are selected
---@field is_normal boolean
---@field lines string[] The selected lines, or all lines
---@field code string `lines` as one string
---@field start_line integer
---@field end_line integer
---@field start_col integer
---@field end_col integer
---@field cursor_pos { [1]: integer, [2]: integer }

---Fields that a placeholder may name.
M.FIELDS = {
  "bufnr",
  "winnr",
  "filename",
  "filetype",
  "buftype",
  "mode",
  "is_visual",
  "is_normal",
  "lines",
  "code",
  "start_line",
  "end_line",
  "start_col",
  "end_col",
  "cursor_pos",
}

---Return the lines of the current selection or of a range.
---@param args? { range: integer, line1: integer, line2: integer }
---@return { [1]: integer, [2]: integer }? range
local function selected(args)
  if args and args.range > 0 then
    return { args.line1, args.line2 }
  end
  if api.nvim_get_mode().mode:find("^[vV\22]") then
    local first, last = vim.fn.line("v"), vim.fn.line(".")
    return { math.min(first, last), math.max(first, last) }
  end
end

---@param win integer
---@return boolean
local function shows_work(win)
  local bufnr = api.nvim_win_get_buf(win)
  return vim.bo[bufnr].buftype == "" and vim.bo[bufnr].filetype ~= "codecompanion"
end

---Return the working window: the current one, the previous one, or another with an ordinary buffer.
---@return integer? win
local function work_window()
  local wins = { api.nvim_get_current_win(), vim.fn.win_getid(vim.fn.winnr("#")) }
  vim.list_extend(wins, api.nvim_tabpage_list_wins(0))
  for _, win in ipairs(wins) do
    if win ~= 0 and api.nvim_win_is_valid(win) and shows_work(win) then
      return win
    end
  end
end

---Return the current context.
---@param args? { range: integer, line1: integer, line2: integer } Arguments of a user command
---@return CodeCompanion.PromptContext
function M.look(args)
  local win = work_window()
  local bufnr = win and api.nvim_win_get_buf(win) or 0
  local range = win == api.nvim_get_current_win() and selected(args) or nil
  local cursor = win and api.nvim_win_get_cursor(win) or { 1, 0 }
  local last = bufnr == 0 and 1 or api.nvim_buf_line_count(bufnr)
  local first = range and range[1] or 1
  last = range and range[2] or last
  local lines = bufnr == 0 and {} or api.nvim_buf_get_lines(bufnr, first - 1, last, false)
  local name = bufnr == 0 and "" or api.nvim_buf_get_name(bufnr)
  return {
    bufnr = bufnr,
    winnr = win or 0,
    filename = name == "" and "" or vim.fn.fnamemodify(name, ":."),
    filetype = bufnr == 0 and "" or vim.bo[bufnr].filetype,
    buftype = bufnr == 0 and "" or vim.bo[bufnr].buftype,
    mode = range and "V" or "n",
    is_visual = range ~= nil,
    is_normal = range == nil,
    lines = lines,
    code = table.concat(lines, "\n"),
    start_line = range and first or cursor[1],
    end_line = range and last or cursor[1],
    start_col = range and 1 or cursor[2] + 1,
    end_col = range and math.max(1, #(lines[#lines] or "")) or cursor[2] + 1,
    cursor_pos = cursor,
  }
end

return M
