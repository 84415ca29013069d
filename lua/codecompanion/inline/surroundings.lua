---Reads the text around a place for the host (`complete_code`, R-256): 8,000 characters before the cursor, 2,000 after
---it, and the beginning of the file. The cost depends on these limits, not on the file size.

local api = vim.api

local M = {}

---@class CodeCompanion.Surroundings Payload of `complete_code`
---@field before string
---@field after string
---@field head string

local BEFORE_CHARS, AFTER_CHARS, HEAD_CHARS = 8000, 2000, 20000 -- R-256; `head` is for imports
local MAX_CHAR_BYTES = 4

---@param text string
---@param chars integer
---@return string
local function first_chars(text, chars)
  return #text <= chars and text or vim.fn.strcharpart(text, 0, chars)
end

---@param text string
---@param chars integer
---@return string
local function last_chars(text, chars)
  if #text <= chars then
    return text
  end
  local all = vim.fn.strchars(text)
  return all <= chars and text or vim.fn.strcharpart(text, all - chars)
end

---Return whole lines from `row` in one direction, up to a number of bytes.
---@param bufnr integer
---@param row integer First row
---@param step 1|-1
---@param bytes integer
---@return string[] lines From top to bottom
local function lines_from(bufnr, row, step, bytes)
  local block, found, size = 128, {}, 0
  local last = api.nvim_buf_line_count(bufnr)
  while size < bytes and row >= 0 and row < last do
    local from = step > 0 and row or math.max(row - block + 1, 0)
    local to = step > 0 and math.min(row + block, last) or row + 1
    local lines = api.nvim_buf_get_lines(bufnr, from, to, false)
    for _, line in ipairs(lines) do
      size = size + #line + 1
    end
    found = step > 0 and vim.list_extend(found, lines) or vim.list_extend(lines, found)
    row = step > 0 and to or from - 1
  end
  return found
end

---Return the text around a place: at most 8,000 characters before it, 2,000 after it, and 20,000 from the beginning of
---the file, without overlap. The cost depends on these limits, not on the file size.
---@param place CodeCompanion.Place
---@return CodeCompanion.Surroundings
function M.of(place)
  local above = lines_from(place.bufnr, place.row - 1, -1, BEFORE_CHARS * MAX_CHAR_BYTES)
  local first_row = place.row - #above
  above[#above + 1] = place.before
  local text = table.concat(above, "\n")
  local before = last_chars(text, BEFORE_CHARS)
  local below = lines_from(place.bufnr, place.row + 1, 1, AFTER_CHARS * MAX_CHAR_BYTES)
  table.insert(below, 1, place.after)
  local head = first_row > 0 and table.concat(lines_from(place.bufnr, 0, 1, HEAD_CHARS * MAX_CHAR_BYTES), "\n") or ""
  if first_row > 0 then
    local top = vim.list_slice(vim.split(head, "\n", { plain = true }), 1, first_row)
    head = table.concat(top, "\n") .. "\n"
  end
  head = head .. text:sub(1, #text - #before)
  return {
    before = before,
    after = first_chars(table.concat(below, "\n"), AFTER_CHARS),
    head = first_chars(head, HEAD_CHARS),
  }
end

return M
