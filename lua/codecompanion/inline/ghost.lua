---Draws a suggestion at the cursor: its first line on the cursor line, the others as virtual lines below it. The buffer
---is unchanged.

local fit = require("codecompanion.text.fit")
local shorter = require("codecompanion.inline.short_reasons")

local api = vim.api

local M = {}

local GHOST = "CodeCompanionGhost"
local HINT = "CodeCompanionGhostHint"
local MORE = " · :CodeCompanion complete status"
local MAX_ROWS = 40
local NOTICE_MS = 8000
local ns = api.nvim_create_namespace("codecompanion.ghost")
local notice_ns = api.nvim_create_namespace("codecompanion.ghost_notice")
local noticed, notices = nil, 0 ---@type integer?, integer Buffer of the notice; number of notices
---@type { bufnr: integer, id: integer, is_hint: boolean?, row: integer, col: integer }?
local drawn
---@type { rest: string, row: integer, after: string, virt_lines: table }? The virtual lines as last drawn
local kept

---Expand tabs to spaces at this column: in virtual text they would appear as `^I`.
---@param text string
---@param column integer Display column at which it begins
---@return string
local function without_tabs(text, column)
  if not text:find("\t", 1, true) then
    return text
  end
  local parts, width = {}, column
  for piece, tab in text:gmatch("([^\t]*)(\t?)") do
    parts[#parts + 1] = piece
    width = width + vim.fn.strdisplaywidth(piece, width)
    if tab ~= "" then
      local cells = vim.fn.strdisplaywidth("\t", width)
      parts[#parts + 1] = (" "):rep(cells)
      width = width + cells
    end
  end
  return table.concat(parts)
end

---@class CodeCompanion.GhostRoom
---@field columns integer Text columns of the window
---@field rows integer Rows below the cursor's line, including the suggestion's first line

---Return how much of a suggestion is visible: virtual lines below the window's last row are not.
---@param place CodeCompanion.Place
---@param column integer Display column of the cursor
---@param first string
---@return CodeCompanion.GhostRoom
local function room_for(place, column, first)
  local info = vim.fn.getwininfo(api.nvim_get_current_win())[1]
  local columns = info.width - info.textoff
  local last = column + vim.fn.strdisplaywidth(first .. place.after, column)
  local wrapped = vim.wo.wrap and math.floor(math.max(last - 1, 0) / columns) - math.floor(column / columns) or 0
  local rows = info.height - vim.fn.winline() - math.max(wrapped, 0)
  return { columns = columns, rows = math.min(rows, MAX_ROWS) }
end

---Draw the first line over the rest of the cursor's line, which moves to the end of the suggestion's last line.
---@param first string
---@param place CodeCompanion.Place
---@param column integer
---@param columns integer
---@return table? chunks nil if it does not fit on the window line
local function over_the_rest(first, place, column, columns)
  local covered = vim.fn.strdisplaywidth(place.after, column)
  local width = vim.fn.strdisplaywidth(first, column)
  if column + math.max(covered, width) > columns then
    return nil
  end
  return { { first .. (" "):rep(covered - width), GHOST } }
end

---@param number integer
---@return string
local function more(number)
  return ("… %d more line%s"):format(number, number == 1 and "" or "s")
end

---Restrict the marks to this window, because the user is not typing in other windows of the buffer.
---@param bufnr integer
local function only_here(bufnr)
  if not api.nvim__ns_set then
    return
  end
  local windows = #vim.fn.win_findbuf(bufnr) > 1 and { api.nvim_get_current_win() } or {}
  pcall(api.nvim__ns_set, ns, { wins = windows })
end

---Return the rows below the cursor's line; the last one shows the number of lines that do not fit.
---@param lines string[] Without the first line
---@param room CodeCompanion.GhostRoom
---@return table virt_lines
---@return boolean is_whole
local function below(lines, room)
  local shown, shown_before = {}, 0
  for number, line in ipairs(lines) do
    local text = without_tabs(line, 0)
    for _, row in ipairs(vim.wo.wrap and fit.rows(text, room.columns) or { text }) do
      shown[#shown + 1] = { { row, GHOST } }
    end
    local limit = number < #lines and room.rows - 1 or room.rows
    if #shown > limit then
      shown = vim.list_slice(shown, 1, shown_before)
      shown[#shown + 1] = { { more(#lines - number + 1), GHOST } }
      return shown, false
    end
    shown_before = #shown
  end
  return shown, true
end

---@param place CodeCompanion.Place
---@param text string
---@return table mark For `nvim_buf_set_extmark()`
local function mark_of(place, text)
  local lines = vim.split(text, "\n", { plain = true })
  local column = vim.fn.virtcol({ place.row + 1, place.col }) -- start of the cursor's character
  local first = without_tabs(table.remove(lines, 1), column)
  local mark = { hl_mode = "combine", virt_text = { { first, GHOST } }, virt_text_pos = "inline" }
  if #lines == 0 then
    return mark
  end
  local rest = text:sub(text:find("\n", 1, true), -1)
  if kept and drawn and kept.rest == rest and kept.row == place.row and kept.after == place.after then
    mark.virt_lines = kept.virt_lines -- the user is typing along the first line
    return mark
  end
  local room = room_for(place, column, first)
  if room.rows < 1 then
    mark.virt_text = { { first .. " " .. more(#lines), GHOST } }
    return mark
  end
  local covering = place.after ~= "" and over_the_rest(first, place, column, room.columns)
  if covering then
    lines[#lines] = lines[#lines] .. place.after
  end
  local is_whole
  mark.virt_lines, is_whole = below(lines, room)
  if covering and is_whole then
    mark.virt_text, mark.virt_text_pos = covering, "overlay"
  else
    kept = { rest = rest, row = place.row, after = place.after, virt_lines = mark.virt_lines }
  end
  return mark
end

---Draw a suggestion in the current window, replacing the previous one.
---@param place CodeCompanion.Place
---@param text string
function M.show(place, text)
  if drawn and (drawn.is_hint or drawn.bufnr ~= place.bufnr) then
    M.clear()
  end
  local mark = mark_of(place, text)
  mark.id = drawn and drawn.id
  if not drawn then
    only_here(place.bufnr)
  end
  local ok, id = pcall(api.nvim_buf_set_extmark, place.bufnr, ns, place.row, place.col, mark)
  drawn = ok and { bufnr = place.bufnr, id = id, row = place.row, col = place.col } or nil
end

---Remove the suggestion.
function M.clear()
  if drawn then
    pcall(api.nvim_buf_del_extmark, drawn.bufnr, ns, drawn.id)
    drawn = nil
  end
end

---@param why string
---@return string[] texts Longest form first
local function hints(why)
  return vim.tbl_map(function(form)
    return "no suggestions" .. (form ~= "" and ": " .. form or "")
  end, shorter(why))
end

---@param place CodeCompanion.Place
---@param texts string[]
---@return table mark The first text that fits after the cursor's line
local function hint_mark(place, texts)
  local info = vim.fn.getwininfo(api.nvim_get_current_win())[1]
  local columns = info.width - info.textoff
  local room = columns - vim.fn.strdisplaywidth(place.before .. place.after) % columns - 1
  local text = vim.iter(texts):find(function(one)
    return vim.fn.strdisplaywidth(one) <= room
  end) or texts[#texts]
  return { virt_text = { { (text:gsub("\n", " ")), HINT } }, hl_mode = "combine" }
end

---Show the reason for a missing suggestion after the cursor line until the next key. On the command line, 'showmode'
---would overwrite the reason in Insert mode.
---@param place CodeCompanion.Place
---@param why string Shortened to fit the window
function M.hint(place, why)
  M.clear()
  M.clear_notice()
  local mark = hint_mark(place, hints(why))
  local ok, id = pcall(api.nvim_buf_set_extmark, place.bufnr, ns, place.row, place.col, mark)
  drawn = ok and { bufnr = place.bufnr, id = id, is_hint = true, row = place.row, col = place.col } or nil
end

---Remove the notice of a failure.
function M.clear_notice()
  if noticed and api.nvim_buf_is_valid(noticed) then
    api.nvim_buf_clear_namespace(noticed, notice_ns, 0, -1)
  end
  noticed = nil
end

---Show a notice after the cursor line that there will be no suggestions, and where to read more. The notice stays for a
---few seconds, even while the user types.
---@param place CodeCompanion.Place
---@param why string Shortened to fit the window
function M.notice(place, why)
  M.clear_notice()
  local texts = hints(why)
  local told = vim.tbl_map(function(text)
    return text .. MORE
  end, texts)
  table.insert(vim.list_extend(told, texts), "no suggestions")
  local ok = pcall(api.nvim_buf_set_extmark, place.bufnr, notice_ns, place.row, 0, hint_mark(place, told))
  noticed, notices = ok and place.bufnr or nil, notices + 1
  local number = notices
  vim.defer_fn(function()
    if number == notices then
      M.clear_notice()
    end
  end, NOTICE_MS)
end

---@return boolean
function M.is_shown()
  return drawn ~= nil and not drawn.is_hint
end

---Remove a hint, unless it is for this place.
---@param row? integer 0-based
---@param col? integer
function M.clear_hint(row, col)
  if drawn and drawn.is_hint and not (drawn.row == row and drawn.col == col) then
    M.clear()
  end
end

return M
