---Finds the lines of an edit in place: the selection, or else the function or paragraph around the cursor. Also
---collects the surrounding text.

local api = vim.api
local buffers = require("codecompanion.files.loaded_files")

local M = {}

---Maximum surrounding text on each side; the host sends as much of it as fits.
local MAX_LINES, MAX_BYTES = 800, 48 * 1024
local MAX_FUNCTION_LINES = 300
local MAX_PARSED_BYTES = 1024 * 1024
---Maximum size of a region; larger ones are refused.
local MAX_REGION_BYTES = 400 * 1024

---@class CodeCompanion.EditTargetLines
---@field first integer 0-based row of the first line
---@field last integer 0-based row after the last line
---@field lines string[] As in the buffer

---Return why nothing can be edited here, or nil.
---@param bufnr integer
---@return string?
function M.refusal(bufnr)
  if vim.bo[bufnr].filetype == "codecompanion" then
    return "This is a chat: an edit in place needs a buffer with your text."
  elseif not vim.bo[bufnr].modifiable then
    return "This buffer cannot be changed (nomodifiable)."
  end
end

---@param bufnr integer
---@param row integer
---@param column integer
---@return integer? first
---@return integer? last
local function function_around(bufnr, row, column)
  if api.nvim_buf_get_offset(bufnr, api.nvim_buf_line_count(bufnr)) > MAX_PARSED_BYTES then
    return
  end
  local ok, parser = pcall(vim.treesitter.get_parser, bufnr, nil, { error = false })
  if not ok or not parser or not pcall(parser.parse, parser) then
    return
  end
  local found, node = pcall(vim.treesitter.get_node, { bufnr = bufnr, pos = { row, column } })
  node = found and node or nil
  while node do
    local kind = node:type()
    local is_function = (kind:find("function") or kind:find("method")) and not kind:find("call") and node:named()
    local first, _, last, last_column = node:range()
    last = last_column == 0 and last or last + 1
    if is_function and last - first > 1 and last - first <= MAX_FUNCTION_LINES then
      return first, last
    end
    node = node:parent()
  end
end

---Return the lines around a row up to the next blank lines; for a blank line, only that line.
---@param bufnr integer
---@param row integer
---@return integer first
---@return integer last
local function paragraph(bufnr, row)
  local function is_blank(at)
    return not (api.nvim_buf_get_lines(bufnr, at, at + 1, false)[1] or ""):find("%S")
  end
  local first, last, count = row, row + 1, api.nvim_buf_line_count(bufnr)
  if is_blank(row) then
    return first, last
  end
  while first > 0 and row - first < MAX_FUNCTION_LINES and not is_blank(first - 1) do
    first = first - 1
  end
  while last < count and last - row < MAX_FUNCTION_LINES and not is_blank(last) do
    last = last + 1
  end
  return first, last
end

---Return the lines of an edit.
---@param bufnr integer
---@param range? { [1]: integer, [2]: integer } 1-based, inclusive
---@param cursor { [1]: integer, [2]: integer } As returned by nvim_win_get_cursor()
---@return CodeCompanion.EditTargetLines? target
---@return string? problem
function M.lines(bufnr, range, cursor)
  local first, last
  if range then
    first, last = range[1] - 1, range[2]
  else
    local row = math.min(cursor[1], api.nvim_buf_line_count(bufnr)) - 1
    local line = api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ""
    if line:find("%S") then
      first, last = function_around(bufnr, row, math.max(cursor[2], #line:match("^%s*")))
    end
    if not first then
      first, last = paragraph(bufnr, row)
    end
  end
  local lines = api.nvim_buf_get_lines(bufnr, first, last, false)
  local bytes = 0
  for at, line in ipairs(lines) do
    bytes = bytes + #line + 1
    if line:find("[\128-\255]") and buffers.shown(line) ~= line then
      return nil, ("Line %d is not UTF-8, so a model cannot edit it."):format(first + at)
    end
  end
  if bytes > MAX_REGION_BYTES then
    local size = math.floor(bytes / 1024)
    return nil, ("The %d selected lines are %d KB, too large to edit; select fewer."):format(#lines, size)
  end
  return { first = first, last = last, lines = lines }
end

---@param lines string[]
---@return string[]? shown nil if empty: an empty table would be encoded as an object
local function shown(lines)
  return #lines > 0 and vim.tbl_map(buffers.shown, lines) or nil
end

---Return the lines nearest to the edit, within the limits.
---@param lines string[]
---@param step 1|-1 1 starts at the first line, -1 at the last one
---@return string[]
local function near(lines, step)
  local bytes, kept = 0, 0
  for at = step == 1 and 1 or #lines, step == 1 and #lines or 1, step do
    bytes = bytes + #lines[at] + 1
    if bytes > MAX_BYTES then
      break
    end
    kept = kept + 1
  end
  return step == 1 and vim.list_slice(lines, 1, kept) or vim.list_slice(lines, #lines - kept + 1)
end

---Return the target as it is sent to the host (`requests.EditTarget`).
---@param bufnr integer
---@param first integer 0-based row of the region
---@param last integer 0-based row after the region
---@param region string[] The text to edit; for a follow-up, the proposed text
---@return table
function M.payload(bufnr, first, last, region)
  local name = api.nvim_buf_get_name(bufnr)
  local before = api.nvim_buf_get_lines(bufnr, math.max(0, first - MAX_LINES), first, false)
  local after = api.nvim_buf_get_lines(bufnr, last, last + MAX_LINES, false)
  local step = vim.bo[bufnr].shiftwidth
  return {
    path = name ~= "" and vim.fn.fnamemodify(name, ":.") or "",
    first = first + 1,
    region = shown(region),
    before = shown(near(before, -1)),
    after = shown(near(after, 1)),
    filetype = vim.bo[bufnr].filetype,
    tabs = not vim.bo[bufnr].expandtab,
    width = step > 0 and step or vim.bo[bufnr].tabstop,
  }
end

return M
