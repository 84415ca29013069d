---Describes a place in a buffer, and computes the rest of a suggestion for it after more text was typed (R-262).

local api = vim.api

local M = {}

---@class CodeCompanion.Place
---@field bufnr integer
---@field row integer 0-based
---@field col integer 0-based, in bytes
---@field before string Text of the line before the cursor
---@field after string Text of the line after the cursor
---@field line_count integer

---Maximum length of the text that auto-pairs insert after the cursor: `})`, `"""`.
local MAX_CLOSING = 3
local CLOSING = "^[%)%]}>\"'`]+$"

---Return the place of the cursor in the current window.
---@return CodeCompanion.Place
function M.here()
  local cursor, line = api.nvim_win_get_cursor(0), api.nvim_get_current_line()
  return {
    bufnr = api.nvim_get_current_buf(),
    row = cursor[1] - 1,
    col = cursor[2],
    before = line:sub(1, cursor[2]),
    after = line:sub(cursor[2] + 1),
    line_count = api.nvim_buf_line_count(0),
  }
end

---Return the place given by a completion plugin.
---@param bufnr integer
---@param row integer 0-based
---@param col integer 0-based, in bytes
---@return CodeCompanion.Place
function M.at(bufnr, row, col)
  local line = api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ""
  return {
    bufnr = bufnr,
    row = row,
    col = col,
    before = line:sub(1, col),
    after = line:sub(col + 1),
    line_count = api.nvim_buf_line_count(bufnr),
  }
end

---Return the text typed between two places, if nothing else changed.
---@param from CodeCompanion.Place
---@param now CodeCompanion.Place
---@return string? typed nil if something else changed
local function typed_between(from, now)
  if from.bufnr ~= now.bufnr or from.line_count + now.row - from.row ~= now.line_count then
    return nil
  elseif now.row == from.row then
    return vim.startswith(now.before, from.before) and now.before:sub(#from.before + 1) or nil
  elseif now.row < from.row then
    return nil
  end
  local lines = api.nvim_buf_get_lines(from.bufnr, from.row, now.row, false)
  if #lines == 0 or not vim.startswith(lines[1], from.before) then
    return nil
  end
  lines[1] = lines[1]:sub(#from.before + 1)
  lines[#lines + 1] = now.before
  return table.concat(lines, "\n")
end

---Return the text without the closing characters that auto-pairs have since inserted after the cursor.
---@param text string
---@param from CodeCompanion.Place
---@param now CodeCompanion.Place
---@return string? text nil if it does not match the text after the cursor
local function without_closing(text, from, now)
  if now.after == from.after then
    return text
  end
  local added = #now.after - #from.after
  if added < 1 or added > MAX_CLOSING or now.after:sub(added + 1) ~= from.after then
    return nil
  end
  local closing = now.after:sub(1, added)
  if not closing:find(CLOSING) then
    return nil
  elseif vim.endswith(text, closing) then
    return text:sub(1, -added - 1)
  end
  return not text:find(closing, 1, true) and text or nil
end

---Return the rest of a suggestion that was made for `from`.
---@param text string
---@param from CodeCompanion.Place
---@param now CodeCompanion.Place
---@return string? rest nil if it no longer fits; "" if all of it was typed
function M.rest(text, from, now)
  local typed = typed_between(from, now)
  if not typed or not vim.startswith(text, typed) then
    return nil
  end
  return without_closing(text:sub(#typed + 1), from, now)
end

---Return the suggestions that still fit, reduced to their rest.
---@param items string[]
---@param from CodeCompanion.Place
---@param now CodeCompanion.Place
---@return string[]
function M.fitting(items, from, now)
  local found = {}
  for _, text in ipairs(items) do
    local rest = M.rest(text, from, now)
    if rest and rest ~= "" and not vim.list_contains(found, rest) then
      found[#found + 1] = rest
    end
  end
  return found
end

return M
