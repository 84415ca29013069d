---The block of an approval as plain tables: what is asked, the exact command or diff as far as it fits the screen, why
---it is asked although much was granted, and the keys. Its first line says how much of it is shown.

local api = vim.api
local blocks = require("codecompanion.chat.draw.blocks")
local fit = require("codecompanion.screen.fit")
local keymaps = require("codecompanion.chat.state.keys")
local kinds = require("codecompanion.chat.state.question_kinds")
local visible = require("codecompanion.screen.visible")

local M = {}

local MAX_ROWS, MIN_ROWS = 60, 5
---Rows that the screen has for other things: the block's own lines, and the input below it.
local OTHER_ROWS = 9
local DEFAULT_WIDTH = 80

---The room there is in the windows that show the chat: columns of the narrowest, rows of the lowest.
---@param chat CodeCompanion.Chat
---@return integer width
---@return integer rows For the body of a block
---@return boolean wraps
local function room(chat)
  local width, height, wraps = math.huge, math.huge, true
  for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
    local info = vim.fn.getwininfo(win)[1]
    width = math.min(width, info.width - info.textoff)
    height = math.min(height, info.height - info.winbar)
    wraps = wraps and vim.wo[win].wrap
  end
  if width == math.huge then
    width, height = math.min(DEFAULT_WIDTH, vim.o.columns), vim.o.lines - 2
  end
  return math.max(20, width), math.min(MAX_ROWS, math.max(MIN_ROWS, height - OTHER_ROWS)), wraps
end

---Rows that a line takes at most in a window that wraps, at words perhaps ('linebreak'): one too long for a row begins
---a row, and a wide character may leave the last cell of a row empty.
---@param text string
---@param width integer
---@return integer
local function rows_of(text, width)
  if api.nvim_strwidth(text) <= width then
    return 1
  end
  local rows, used, most = 1, 0, text:find("[\128-\255]") and width - 1 or width
  for word, after in text:gmatch("([^%s!@*+;:,./?-]*)([%s!@*+;:,./?-]*)") do
    local cells = api.nvim_strwidth(word)
    if used > 0 and used + cells > width then
      rows, used = rows + 1, 0
    end
    used = used + api.nvim_strwidth(word .. after)
    rows = rows + math.floor(math.max(0, used - 1) / most)
    used = used > 0 and (used - 1) % most + 1 or 0
  end
  return rows
end

---Cut a line that would fill the block alone; windows that do not wrap get its end in any case.
---@param line CodeCompanion.Visible
---@param most integer Columns
---@return CodeCompanion.Visible
local function bounded(line, most)
  if api.nvim_strwidth(line.text) <= most then
    return line
  end
  local half = math.max(10, math.floor(most / 2) - 16)
  local head, tail = fit.head(line.text, half), fit.tail(line.text, half)
  local left_out = vim.fn.strchars(line.text:sub(#head + 1, -#tail - 1))
  local note = (" <%d characters not shown> "):format(left_out)
  local marks = vim.tbl_filter(function(mark)
    return mark[2] <= #head
  end, line.marks)
  marks[#marks + 1] = { #head, #head + #note }
  return { text = head .. note .. tail, marks = marks, count = line.count, cut = true }
end

---The lines that fit: the beginning and the end, never only the beginning.
---@param lines CodeCompanion.Visible[]
---@param width integer
---@param rows integer
---@param wraps boolean
---@return CodeCompanion.Visible[] shown
---@return integer left_out
local function fitting(lines, width, rows, wraps)
  local function rows_at(index)
    return wraps and rows_of(lines[index].text, width) or 1
  end
  for index, line in ipairs(lines) do
    lines[index] = bounded(line, wraps and math.max(width * 2, width * math.floor(rows / 2)) or width)
  end
  local first, last, used = 0, #lines + 1, 1
  local head_rows = math.ceil(rows * 2 / 3)
  while first < #lines and used + rows_at(first + 1) <= head_rows do
    first = first + 1
    used = used + rows_at(first)
  end
  while last > first + 1 and used + rows_at(last - 1) <= rows do
    last = last - 1
    used = used + rows_at(last)
  end
  while first + 1 < last and used + rows_at(first + 1) <= rows do
    first = first + 1
    used = used + rows_at(first)
  end
  local left_out = last - first - 1
  if left_out <= 0 then
    return lines, 0
  end
  local shown = vim.list_slice(lines, 1, first)
  local note = ("<%d line%s not shown>"):format(left_out, left_out == 1 and "" or "s")
  shown[#shown + 1] = { text = note, marks = { { 0, #note } }, count = 0 }
  vim.list_extend(shown, lines, last)
  return shown, left_out
end

---What each key says of this question, nil where it means nothing.
---@param event table approval_requested
---@return { [1]: string, [2]: string }[] action, words
local function choices(event)
  if kinds[event.kind] then
    return kinds[event.kind].choices
  end
  local always = event.filetype == "sh" and "always this command" or "always in this chat"
  local found = { { "approve_once", "once" } }
  if event.why == "" then
    found[#found + 1] = { "approve_always", always }
  end
  if event.prefix ~= "" and event.why == "" then
    found[#found + 1] = { "approve_prefix", "always " .. event.prefix .. " …" }
  end
  found[#found + 1] = { "reject", "reject…" }
  found[#found + 1] = { "cancel_all", "cancel all" }
  found[#found + 1] = { "show_original", event.path ~= "" and "diff" or "show all" }
  return found
end

---The lines that name the keys, as many as the width needs.
---@param event table
---@param width integer
---@return string[] lines
---@return { row: integer, from: integer, to: integer, group: string }[] marks Rows within these lines
local function key_lines(event, width)
  local lines, marks = { "" }, {}
  for _, choice in ipairs(choices(event)) do
    local key = keymaps.keys(choice[1], "n")[1]
    if key then
      local words = visible.line(choice[2]).text
      local line = lines[#lines]
      if line ~= "" and api.nvim_strwidth(line) + 3 + api.nvim_strwidth(key .. " " .. words) > width then
        lines[#lines + 1] = ""
        line = ""
      end
      line = line .. (line == "" and "" or "   ")
      local mark = { row = #lines - 1, from = #line, to = #line + #key, group = "CodeCompanionApprovalKey" }
      marks[#marks + 1] = mark
      lines[#lines] = line .. key .. " " .. words
    end
  end
  return lines, marks
end

---Columns that are kept free in the first line of a change: for `with your changes`.
local EDITED_MARK = 19
local MIN_TITLE = 12
local UNSAVED = ", which has unsaved changes"

---What is asked about a file, as wide as there is room: the file's name is kept, other words go first.
---@param name string Of the tool
---@param what string `Edit src/stack.py`
---@param left integer With room for `with your changes`
---@param whole integer Without
---@return string
---@return boolean is_silent It is not said that the file has unsaved changes
local function of_file(name, what, left, whole)
  local verb, path = what:match("^(%u%l+ )(.+)$")
  if not path or api.nvim_strwidth(what) <= left then
    return fit.squeeze(what, left), false
  end
  local after = ""
  if vim.endswith(path, UNSAVED) then
    path, after = path:sub(1, -#UNSAVED - 1), ", unsaved"
  end
  local short = name:find(vim.trim(verb):lower(), 1, true) and "" or verb -- the tool's name says it already
  for _, words in ipairs({ verb .. path .. after, short .. path .. after, short .. path }) do
    if api.nvim_strwidth(words) <= left then
      return words, not vim.endswith(words, after)
    end
  end
  local shown = fit.path(path, left - api.nvim_strwidth(short))
  if api.nvim_strwidth(short .. shown) > left then
    shown = fit.path(path, whole - api.nvim_strwidth(short))
  end
  local is_narrow = api.nvim_strwidth(short .. shown) > whole
  return is_narrow and fit.squeeze(shown, math.max(MIN_TITLE, whole)) or short .. shown, after ~= ""
end

---`? run_command: npm test · needs your approval`, in one line of the window: what is asked is cut last.
---@param event table
---@param total integer Lines of the whole body
---@param shown integer
---@param width integer
---@return string
---@return boolean is_silent A file has unsaved changes, which it does not say
local function title_of(event, total, shown, width)
  local title, what, is_silent = "? " .. event.name, "", false
  if event.title ~= "" and event.title ~= event.name then
    what = visible.line(blocks.one_line(event.title)).text
  end
  local notice = kinds[event.kind] and kinds[event.kind].notice or " · needs your approval"
  local key = keymaps.keys("show_original", "n")[1]
  if shown < total then
    local all = key and (" · %s shows all"):format(key) or ""
    notice = (" · %d line%s, %d shown%s"):format(total, total == 1 and "" or "s", shown, all)
  end
  if what ~= "" then
    local space = width - api.nvim_strwidth(title .. ": ") - (event.path ~= "" and EDITED_MARK or 0)
    local besides = api.nvim_strwidth(notice)
    if shown == total and api.nvim_strwidth(what) + besides > space then
      notice, besides = "", 0
    end
    local left = math.max(MIN_TITLE, space - besides)
    if event.path ~= "" then
      what, is_silent = of_file(event.name, what, left, width - api.nvim_strwidth(title .. ": "))
    end
    title = title .. ": " .. (event.path ~= "" and what or fit.cut(what, left))
  end
  return title .. notice, is_silent
end

---@param event table
---@param hidden integer Characters that do not show by themselves
---@param is_unsaved boolean The first line has no room to say it
---@return string[]
local function warnings(event, hidden, is_unsaved)
  local found = { is_unsaved and "! The file has unsaved changes" or nil }
  if event.why ~= "" then
    found[#found + 1] = ("! Asked every time: %s"):format(event.why)
  end
  if hidden > 0 then
    local what = hidden == 1 and "1 invisible character" or ("%d invisible characters"):format(hidden)
    found[#found + 1] = ("! %s shown as ^X or <U+…>"):format(what)
  end
  return found
end

---Rows that are taken besides the body, the first line's first and the keys' first one: `OTHER_ROWS` has these.
---@param title string
---@param warned string[]
---@param keys string[]
---@param width integer
---@return integer
local function more_rows(title, warned, keys, width)
  local count = rows_of(title, width) - 1 + #keys - 1
  for _, warning in ipairs(warned) do
    count = count + rows_of(warning, width)
  end
  return count
end

---@param chat CodeCompanion.Chat
---@param event table approval_requested
---@return CodeCompanion.Block
function M.block(chat, event)
  local width, rows, wraps = room(chat)
  local all = visible.lines(event.body, event.filetype == "diff")
  local total = select(2, (event.body:gsub("\n+$", "")):gsub("\n", "")) + 1
  local hidden = 0
  for _, line in ipairs(all) do
    hidden = hidden + line.count
  end
  local keys, key_marks = key_lines(event, width)
  local title, is_silent = title_of(event, total, 0, width) -- the longest one
  rows = rows - more_rows(title, warnings(event, hidden, is_silent), keys, width)
  local body, left_out = fitting(all, width, math.max(MIN_ROWS, rows), wraps)
  title, is_silent = title_of(event, total, left_out > 0 and #all - left_out or total, width)
  local marks, lines = {}, { title }
  for _, warning in ipairs(warnings(event, hidden, is_silent)) do
    marks[#marks + 1] = { row = #lines, from = 0, to = #warning, group = "CodeCompanionWarning" }
    lines[#lines + 1] = warning
  end
  local is_prose = kinds[event.kind] and kinds[event.kind].is_prose
  local has_fence = not is_prose and event.body ~= ""
  local fence, fenced = blocks.fence(event.body), #lines
  lines[#lines + 1] = has_fence and fence .. (event.filetype or "text") or nil
  for _, line in ipairs(event.body ~= "" and body or {}) do
    for _, range in ipairs(line.marks) do
      marks[#marks + 1] = { row = #lines, from = range[1], to = range[2], group = "CodeCompanionInvisible" }
    end
    lines[#lines + 1] = line.text
  end
  lines[#lines + 1] = has_fence and fence or nil
  local code_end = #lines
  for _, mark in ipairs(key_marks) do
    mark.row = mark.row + #lines
    marks[#marks + 1] = mark
  end
  vim.list_extend(lines, keys)
  marks[#marks + 1] = { row = 0, from = 0, to = #lines[1], group = "CodeCompanionApproval" }
  local item = { approval = event.call_id, event = event }
  local markdown = has_fence and { fenced, code_end } or nil
  return { kind = "approval", lines = lines, marks = marks, markdown = markdown, item = item }
end

return M
