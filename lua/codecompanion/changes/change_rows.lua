---Lays out a change as rows of text for views that show part of a file: an approval block, the fold of a tool call.
---Changed lines come first; context lines are added as long as they fit. Pure, except for measuring widths.

local api = vim.api
local fit = require("codecompanion.text.fit")
local hunks = require("codecompanion.changes.hunks")
local visible = require("codecompanion.text.visible_characters")

local M = {}

M.BAR = "▎ "
local MAX_CONTEXT = 3
local MIN_CELLS = 8
---Minimum number of available rows at which a shortened change also shows its end, in the last third of them.
local MIN_SPLIT = 6
local NO_NEWLINE = "  (no newline at the end)"

---@class CodeCompanion.ChangeRow
---@field sign "-"|"+"|" "|"…" "…": lines are left out
---@field number? integer Line number: before the change for "-", otherwise after it
---@field text string

---@class CodeCompanion.ChangeSize
---@field added integer
---@field removed integer
---@field hunks integer

---Return the rows of a change.
---@param before CodeCompanion.Text
---@param all CodeCompanion.Hunk[]
---@param context integer Number of context lines around each hunk
---@return CodeCompanion.ChangeRow[]
function M.of_hunks(before, all, context)
  local rows, offset, shown = {}, 0, 0 -- shown: the last line of `before` that was added
  local function add(sign, number, text)
    rows[#rows + 1] = { sign = sign, number = number, text = text }
  end
  local function add_context(from, to, shift)
    for at = from, to do
      add(" ", at + shift, before.lines[at])
    end
  end
  for index, hunk in ipairs(all) do
    local from = math.max(shown + 1, hunk.first - context + 1)
    if index > 1 and from > shown + 1 then
      add("…", nil, "")
    end
    add_context(from, hunk.first, offset)
    local ends_before, ends_after = before.eol ~= false, hunk.eol
    for at = 1, hunk.count do
      local is_last = hunk.first + at == #before.lines and not ends_before and ends_after ~= ends_before
      add("-", hunk.first + at, before.lines[hunk.first + at] .. (is_last and NO_NEWLINE or ""))
    end
    for at, line in ipairs(hunk.lines) do
      local is_last = at == #hunk.lines and ends_after == false and ends_before
      add("+", hunk.first + offset + at, line .. (is_last and NO_NEWLINE or ""))
    end
    offset = offset + #hunk.lines - hunk.count
    shown = hunk.first + hunk.count
    local next_one = all[index + 1]
    local last = math.min(#before.lines, shown + context, next_one and next_one.first or math.huge)
    add_context(shown + 1, last, offset)
    shown = math.max(shown, last)
  end
  return rows
end

---Return the rows of a unified diff of one file, without its header.
---@param diff string
---@return CodeCompanion.ChangeRow[] rows
---@return CodeCompanion.ChangeSize size
function M.of_diff(diff)
  local rows, size = {}, { added = 0, removed = 0, hunks = 0 }
  local old, new, was_change
  for line in vim.gsplit((diff:gsub("\n$", "")), "\n", { plain = true }) do
    local from, to = line:match("^@@ %-(%d+)[,%d]* %+(%d+)[,%d]* @@")
    local sign, text = line:sub(1, 1), line:sub(2)
    if from then
      rows[#rows + 1] = old and { sign = "…", text = "" } or nil
      old, new, was_change = tonumber(from), tonumber(to), false
    elseif old and sign ~= "\\" then -- the lines above the first hunk name the file
      local is_change = sign == "-" or sign == "+"
      rows[#rows + 1] = { sign = is_change and sign or " ", number = sign == "-" and old or new, text = text }
      old = old + (sign == "+" and 0 or 1)
      new = new + (sign == "-" and 0 or 1)
      size.removed = size.removed + (sign == "-" and 1 or 0)
      size.added = size.added + (sign == "+" and 1 or 0)
      size.hunks = size.hunks + (is_change and not was_change and 1 or 0)
      was_change = is_change
    end
  end
  return rows, size
end

---@param rows CodeCompanion.ChangeRow[]
---@return CodeCompanion.ChangeRow[]
local function only_changed(rows)
  local found = {}
  for _, row in ipairs(rows) do
    if row.sign == "-" or row.sign == "+" then
      found[#found + 1] = row
    end
  end
  return found
end

---Return the size of the change between two versions.
---@param all CodeCompanion.Hunk[]
---@return CodeCompanion.ChangeSize
function M.size(all)
  local size = { added = 0, removed = 0, hunks = #all }
  for _, hunk in ipairs(all) do
    size.added, size.removed = size.added + #hunk.lines, size.removed + hunk.count
  end
  return size
end

---@class CodeCompanion.RowRoom
---@field width integer Width of the window in cells
---@field rows integer Available screen rows
---@field wraps boolean

---Shorten a string that exceeds a width, keeping both ends and a count of the omitted characters.
---@param text string
---@param cells integer
---@return string text
---@return boolean is_cut
local function bounded(text, cells)
  if vim.fn.strdisplaywidth(fit.without_nul(text)) <= cells then
    return text, false
  end
  local half = math.max(8, math.floor(cells / 2) - 8)
  local head, tail = fit.head(text, half), fit.tail(text, half)
  return ("%s … %d more … %s"):format(head, vim.fn.strchars(text:sub(#head + 1, -#tail - 1)), tail), true
end

---@class CodeCompanion.ShownRows
---@field lines string[] Lines that each begin with the bar
---@field marks CodeCompanion.BlockMark[]
---@field left_out integer Number of rows that did not fit
---@field hidden integer Number of invisible characters that were escaped
---@field is_cut boolean A line was shortened

---Turn a row into lines: a row wider than the window wraps, and each line begins with the bar.
---@param row CodeCompanion.ChangeRow
---@param digits integer
---@param room CodeCompanion.RowRoom
---@return { lines: string[], marks: CodeCompanion.BlockMark[], height: integer, sign: string } made
---@return integer hidden
---@return boolean is_cut
local function made_of(row, digits, room)
  local before = ("%s%s %s "):format(M.BAR, ("%" .. digits .. "s"):format(row.number or ""), row.sign)
  local cells = math.max(MIN_CELLS, room.width - api.nvim_strwidth(before))
  local shown = visible.line((row.text:gsub("\n", "\0")), true)
  local text, is_cut = bounded(shown.text, cells * (room.wraps and math.max(2, math.floor(room.rows / 3)) or 1))
  local parts = room.wraps and fit.rows(text, cells) or { text }
  local made = { lines = {}, marks = {}, height = #parts, sign = row.sign }
  local group = row.sign == "+" and "CodeCompanionAdded" or row.sign == "-" and "CodeCompanionRemoved" or nil
  local from = 0
  for index, part in ipairs(parts) do
    local lead = index == 1 and before or M.BAR .. (" "):rep(#before - #M.BAR)
    local function mark(first, last, name, eol)
      made.marks[#made.marks + 1] = { row = index - 1, from = first, to = last, group = name, eol = eol }
    end
    made.lines[index] = lead .. part
    if group then
      mark(#M.BAR, #lead + #part, group, true)
    end
    mark(0, group and #M.BAR or #lead, "CodeCompanionChangeHint")
    for _, range in ipairs(is_cut and {} or shown.marks) do
      local first, last = math.max(range[1], from), math.min(range[2], from + #part)
      if first < last then
        mark(#lead + first - from, #lead + last - from, "CodeCompanionInvisible")
      end
    end
    from = from + #part
  end
  return made, shown.count, is_cut
end

---Lay out as many rows as fit: the beginning, and for a long change also the end.
---@param rows CodeCompanion.ChangeRow[]
---@param room CodeCompanion.RowRoom
---@param more? string Appended to the count of omitted rows: ", K"
---@return CodeCompanion.ShownRows
function M.layout(rows, room, more)
  local digits = 1
  for _, row in ipairs(rows) do
    digits = math.max(digits, #tostring(row.number or 0))
  end
  local made, found = {}, { lines = {}, marks = {}, hidden = 0, is_cut = false }
  for index, row in ipairs(rows) do
    local hidden, is_cut
    made[index], hidden, is_cut = made_of(row, digits, room)
    found.hidden, found.is_cut = found.hidden + hidden, found.is_cut or is_cut
  end
  local first, last = M.fitting(made, room.rows)
  found.left_out = last - first - 1
  local function put(one)
    for _, mark in ipairs(one.marks) do
      found.marks[#found.marks + 1] = vim.tbl_extend("force", mark, { row = mark.row + #found.lines })
    end
    vim.list_extend(found.lines, one.lines)
  end
  for index = 1, first do
    put(made[index])
  end
  if found.left_out > 0 then
    local line = ("%s… %d more%s"):format(M.BAR, found.left_out, more or "")
    put({ lines = { line }, marks = { { row = 0, from = 0, to = #line, group = "CodeCompanionChangeHint" } } })
  end
  for index = last, #made do
    if index > last or found.left_out == 0 or made[index].sign ~= "…" then
      put(made[index])
    end
  end
  return found
end

---Return the rows that fit, as the last row of the beginning and the first row of the end.
---@param made { height: integer }[]
---@param room integer
---@return integer first Last row of the beginning
---@return integer last First row of the end; `first + 1` when all rows fit
function M.fitting(made, room)
  local total = 0
  for _, one in ipairs(made) do
    total = total + one.height
  end
  if total <= room then
    return #made, #made + 1
  end
  local first, last, used = 0, #made + 1, 1 -- 1 row for the notice
  local head = room >= MIN_SPLIT and math.ceil(room * 2 / 3) or room
  while first < #made and used + made[first + 1].height <= head do
    first = first + 1
    used = used + made[first].height
  end
  while last - 1 > first and used + made[last - 1].height <= room do
    last = last - 1
    used = used + made[last].height
  end
  while first + 1 < last and used + made[first + 1].height <= room do
    first = first + 1
    used = used + made[first].height
  end
  if first == 0 and last == #made + 1 and #made > 0 then
    first = 1 -- at least one
  end
  if last - first == 2 then
    first = first + 1 -- the notice would take as much space as the one row it replaces
  end
  return first, last
end

---Return whether the event can be shown as the rows of a change.
---@param event { before: string, after: string, body: string, filetype: string } approval_requested event
---@return boolean
function M.is_change(event)
  return event.before ~= event.after or event.filetype == "diff" and #M.of_diff(event.body) > 0
end

---Return the rows of the change in an approval, with as much context as fits.
---@param event { before: string, after: string, body: string } approval_requested event
---@param rows integer Available screen rows
---@return CodeCompanion.ChangeRow[]
---@return CodeCompanion.ChangeSize
function M.of_event(event, rows)
  if event.before == event.after then -- too large to be compared here
    local found, size = M.of_diff(event.body)
    return #found > rows and only_changed(found) or found, size
  end
  local before = hunks.text(event.before)
  local all = hunks.between(before, hunks.text(event.after))
  for context = MAX_CONTEXT, 1, -1 do
    local found = M.of_hunks(before, all, context)
    if #found <= rows then
      return found, M.size(all)
    end
  end
  return only_changed(M.of_hunks(before, all, 0)), M.size(all)
end

return M
