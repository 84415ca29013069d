---Makes visible what a text could hide: control characters, characters without a shape or with a direction, blanks that
---are none, long runs of blanks and of blank lines. What a user approves is what the user has seen.

local M = {}

local LONG_BLANK = 40
local BLANK_LINES = 3

---Characters that show nothing, look like a blank, or change the order of what is around them: { first, last }.
local HIDDEN = {
  { 0x80, 0x9F },
  { 0xA0, 0xA0 },
  { 0xAD, 0xAD },
  { 0x34F, 0x34F },
  { 0x61C, 0x61C },
  { 0x115F, 0x1160 },
  { 0x1680, 0x1680 },
  { 0x17B4, 0x17B5 },
  { 0x180B, 0x180F },
  { 0x2000, 0x200F },
  { 0x2028, 0x202F },
  { 0x205F, 0x206F },
  { 0x2800, 0x2800 },
  { 0x3000, 0x3000 },
  { 0x3164, 0x3164 },
  { 0xFE00, 0xFE0F },
  { 0xFEFF, 0xFEFF },
  { 0xFFA0, 0xFFA0 },
  { 0xFFF0, 0xFFFB },
  { 0x1BCA0, 0x1BCA3 },
  { 0x1D173, 0x1D17A },
  { 0xE0000, 0xE0FFF },
}

---The character at a position of a text, which may hold anything (NUL too, which ends strings for Vim's functions).
---@param line string
---@param from integer
---@return string char
---@return integer? code nil when it is no UTF-8
local function char_at(line, from)
  local lead = line:byte(from)
  local length = lead < 0x80 and 1 or lead >= 0xF0 and 4 or lead >= 0xE0 and 3 or lead >= 0xC2 and 2 or 1
  local char = line:sub(from, from + length - 1)
  if length == 1 then
    return char, lead < 0x80 and lead or nil
  elseif not char:find("^[\194-\244]" .. ("[\128-\191]"):rep(length - 1) .. "$") then
    return line:sub(from, from), nil
  end
  local code = lead % 2 ^ (7 - length)
  for index = 2, length do
    code = code * 64 + char:byte(index) % 64
  end
  return char, code
end

---How a character is written when it does not show by itself.
---@param char string
---@param code? integer
---@return string?
local function named(char, code)
  if not code then
    return ("<%02X>"):format(char:byte())
  elseif code < 0x20 then
    return code ~= 0x09 and "^" .. string.char(code + 0x40) or nil
  elseif code < 0x80 then
    return code == 0x7F and "^?" or nil
  end
  for _, range in ipairs(HIDDEN) do
    if code >= range[1] and code <= range[2] then
      return ("<U+%04X>"):format(code)
    end
  end
end

---@class CodeCompanion.Visible
---@field text string
---@field marks { [1]: integer, [2]: integer }[] Byte ranges that stand for something that does not show
---@field count integer How many characters were written out

---@param line string Without a line break
---@return CodeCompanion.Visible
function M.line(line)
  if not line:find("[^\32-\126]") and not line:find((" "):rep(LONG_BLANK), 1, true) then
    return { text = line, marks = {}, count = 0 }
  end
  local parts, marks, size, count = {}, {}, 0, 0
  local function add(text, marked)
    if marked then
      marks[#marks + 1] = { size, size + #text }
    end
    parts[#parts + 1] = text
    size = size + #text
  end
  local from = 1
  while from <= #line do
    local blanks = line:match("^[ \t]+", from)
    if blanks then
      local long = #blanks >= LONG_BLANK
      add(long and ("<%d blanks>"):format(#blanks) or blanks, long)
      from = from + #blanks
    else
      local char, code = char_at(line, from)
      local written = named(char, code)
      add(written or char, written ~= nil)
      count = count + (written and 1 or 0)
      from = from + #char
    end
  end
  return { text = table.concat(parts), marks = marks, count = count }
end

---@param lines string[]
---@param first integer
---@param marker string
---@return integer last Of the run of blank lines that begins at `first`; less than it when there is none
local function blank_run(lines, first, marker)
  local last = first - 1
  while lines[last + 1] and lines[last + 1]:find("^" .. vim.pesc(marker) .. "%s*$") do
    last = last + 1
  end
  return last
end

---The lines of a text, each visible, runs of blank ones as one line that says how many they are.
---@param text string
---@param diff? boolean Every line begins with its sign
---@return CodeCompanion.Visible[]
function M.lines(text, diff)
  local given = vim.split((text:gsub("\n+$", "")), "\n", { plain = true })
  local shown, index = {}, 1
  while index <= #given do
    local marker = diff and given[index]:match("^[ +-]") or ""
    local last = blank_run(given, index, marker)
    local length = last - index + 1
    if length >= BLANK_LINES then
      local note = ("%s<%d blank lines>"):format(marker, length)
      shown[#shown + 1] = { text = note, marks = { { #marker, #note } }, count = 0, stands_for = length }
      index = last + 1
    else
      shown[#shown + 1] = M.line(given[index])
      index = index + 1
    end
  end
  return shown
end

---A text in one piece, visible.
---@param text string
---@param diff? boolean
---@return string
function M.text(text, diff)
  return table.concat(
    vim.tbl_map(function(line)
      return line.text
    end, M.lines(text, diff)),
    "\n"
  )
end

return M
