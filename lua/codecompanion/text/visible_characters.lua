---Makes hidden parts of text visible: control characters, invisible or directional characters, unusual blanks,
---lookalike letters, long runs of blanks and of blank lines. An approval covers only text that the user has seen: no
---two strings look identical, and the display can be decoded.

local M = {}

local LONG_BLANK = 40
local BLANK_LINES = 3

---Characters that are invisible, look like a blank, or reorder the text around them: { first, last }.
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

---The smallest code point of each UTF-8 length in bytes.
local SMALLEST = { 0, 0x80, 0x800, 0x10000 }

---Return the character at a position of a string, which may contain any byte (even NUL, which ends strings in Vim
---functions).
---@param line string
---@param from integer
---@return string char
---@return integer? code nil for invalid UTF-8
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
  if code < SMALLEST[length] or (code >= 0xD800 and code <= 0xDFFF) or code > 0x10FFFF then
    return line:sub(from, from), nil -- an overlong encoding of another character
  end
  return char, code
end

---Characters beyond ASCII that are shown unescaped: Latin, Greek, Cyrillic, CJK, kana and Hangul letters, quotes,
---dashes, arrows, lines and pictures: { first, last }. All others could be mistaken for another character or reorder
---the text around them (Hebrew and Arabic letters): in commands and names they are escaped.
local SHOWN = {
  { 0xA1, 0xAC },
  { 0xAE, 0x130 },
  { 0x132, 0x17E },
  { 0x180, 0x1BF },
  { 0x1CD, 0x24F },
  { 0x370, 0x37D },
  { 0x37F, 0x482 },
  { 0x48A, 0x52F },
  { 0x1E00, 0x1EFF },
  { 0x2013, 0x2014 },
  { 0x2018, 0x201D },
  { 0x2020, 0x2022 },
  { 0x2026, 0x2026 },
  { 0x20A0, 0x20BF },
  { 0x2190, 0x21FF },
  { 0x2500, 0x25FF },
  { 0x2600, 0x27BF },
  { 0x3001, 0x3001 },
  { 0x3041, 0x3096 },
  { 0x30A1, 0x30FF },
  { 0x4E00, 0x9FFF },
  { 0xAC00, 0xD7A3 },
  { 0x1F300, 0x1FAFF },
}

---@param code integer
---@param ranges { [1]: integer, [2]: integer }[]
---@return boolean
local function is_in(code, ranges)
  for _, range in ipairs(ranges) do
    if code >= range[1] and code <= range[2] then
      return true
    end
  end
  return false
end

---@param code integer
---@return boolean
local function is_greek_or_cyrillic(code)
  return code >= 0x370 and code <= 0x52F
end

---Greek and Cyrillic letters that look like Latin ones.
local LOOKALIKES = {}
local LOOK_LATIN =
  "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορυγωϲϳАВЕЅІЈКМНОРСТУХЬаеорсухѕіјһԁԛԝցьпгтк"
for _, code in ipairs(vim.fn.str2list(LOOK_LATIN)) do
  LOOKALIKES[code] = true
end

---Return the escape of an invisible character.
---@param char string
---@param code? integer
---@return string?
local function named(char, code)
  if not code then
    return ("<%02X>"):format(char:byte())
  elseif code == 0x09 or (code >= 0x20 and code < 0x7F) then
    return nil
  elseif code < 0x80 or is_in(code, HIDDEN) then
    return ("<U+%04X>"):format(code)
  end
end

---Return whether the text at a position looks like an escape; its first character is then escaped, so that two strings
---never look identical.
---@param line string
---@param from integer
---@return boolean
local function reads_like_written(line, from)
  return line:find("^<U%+%x+>", from) ~= nil
    or line:find("^<%x%x>", from) ~= nil
    or line:find("^<%d+ blanks?>", from) ~= nil
    or line:find("^<%d+ tabs?>", from) ~= nil
    or line:find("^<%d+ blank lines>", from) ~= nil
    or line:find("^<%d+ lines of <", from) ~= nil
end

---Return whether a letter beyond ASCII could be mistaken for another one at its position: in the host name of a URL,
---beside Latin letters, or in a word made only of lookalikes.
---@param code integer
---@param word string Delimited by blanks
---@param at integer Position in the word
---@return boolean
local function misleads(code, word, at)
  if not is_in(code, SHOWN) then
    return true
  end
  local _, scheme = word:find("://", 1, true)
  if scheme and at > scheme and not word:sub(scheme + 1, at - 1):find("[/?#]") then
    return true
  elseif not is_greek_or_cyrillic(code) then
    return false
  elseif word:find("%a") then
    return true
  end
  local from = 1
  while from <= #word do -- `str2list` takes no word with a NUL in it
    local char, other = char_at(word, from)
    if other and is_greek_or_cyrillic(other) and not LOOKALIKES[other] then
      return false
    end
    from = from + #char
  end
  return true
end

---Return the length of a long run of blanks as text.
---@param blanks string
---@return string
local function counted(blanks)
  local text = blanks:gsub(" +", function(run)
    return ("<%d blank%s>"):format(#run, #run == 1 and "" or "s")
  end)
  return (text:gsub("\t+", function(run)
    return ("<%d tab%s>"):format(#run, #run == 1 and "" or "s")
  end))
end

---@class CodeCompanion.Visible
---@field text string
---@field marks { [1]: integer, [2]: integer }[] Byte ranges of escapes
---@field count integer Number of escaped characters

---Escape a line so that no two different lines look identical.
---@param line string Without a line break
---@param prose? boolean Whether the text is from a file: letters of any script are then shown unescaped
---@return CodeCompanion.Visible
function M.line(line, prose)
  if not line:find("[^\32-\126]") and not line:find((" "):rep(LONG_BLANK), 1, true) and not line:find("<", 1, true) then
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
  local word_from, word = 1, ""
  local from = 1
  while from <= #line do
    local blanks = line:match("^[ \t]+", from)
    if blanks then
      local long = #blanks >= LONG_BLANK
      add(long and counted(blanks) or blanks, long)
      from = from + #blanks
    else
      if from >= word_from + #word then
        word_from, word = from, line:match("^[^ \t]+", from)
      end
      local char, code = char_at(line, from)
      local written = named(char, code)
      if not written and code == 0x3C and reads_like_written(line, from) then
        written = "<U+003C>"
      elseif not written and not prose and code > 0x7F and misleads(code, word, from - word_from + 1) then
        written = ("<U+%04X>"):format(code)
      end
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
---@return integer last End of the run of blank lines that begins at `first`; less than `first` if there is none
local function blank_run(lines, first, marker)
  local last = first - 1
  local wanted = lines[first]
  if not wanted:find("^" .. vim.pesc(marker) .. "[ \t]*$") then
    return last
  end
  while lines[last + 1] == wanted do
    last = last + 1
  end
  return last
end

---Return the lines of a string in visible form; a run of identical lines becomes one line with a count.
---@param text string
---@param diff? boolean Whether every line begins with a diff sign
---@return CodeCompanion.Visible[]
function M.lines(text, diff)
  local given = vim.split((text:gsub("\n+$", "")), "\n", { plain = true })
  local shown, index = {}, 1
  while index <= #given do
    local marker = diff and given[index]:match("^[ +-]") or ""
    local last = blank_run(given, index, marker)
    local length = last - index + 1
    if length >= BLANK_LINES then
      local blanks = given[index]:sub(#marker + 1)
      local of = blanks == "" and "<%d blank lines>" or "<%d lines of " .. counted(blanks) .. ">"
      local note = marker .. of:format(length)
      shown[#shown + 1] = { text = note, marks = { { #marker, #note } }, count = 0, stands_for = length }
      index = last + 1
    else
      shown[#shown + 1] = M.line(given[index], diff)
      index = index + 1
    end
  end
  return shown
end

---Return a string in visible form.
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
