---Draws hunks in a buffer that contains one of the two versions: its lines are highlighted, and lines of the other
---are virtual lines. Removed lines are always above the added ones. The text is unchanged, and the cursor's line keeps
---its position on the screen.

local api = vim.api
local fit = require("codecompanion.text.fit")
local keys = require("codecompanion.changes.decision_keys")
local redraw = require("codecompanion.screen.redraw_rows")

local M = {}

M.namespace = api.nvim_create_namespace("codecompanion.changes")

local MIN_WIDTH = 10
---Window rows kept free around a hunk, so that its old and new lines are visible together; lines that do not fit are
---counted.
local ROWS_BESIDE, MIN_ROWS = 4, 6

---Return a window that shows the buffer, preferably the current one.
---@param bufnr integer
---@return integer?
local function window_of(bufnr)
  local current = api.nvim_get_current_win()
  if api.nvim_win_get_buf(current) == bufnr then
    return current
  end
  return vim.fn.win_findbuf(bufnr)[1]
end

---@class CodeCompanion.ChangeRoom
---@field width integer Width for the text of a line, in cells
---@field gutter integer Width to the left of it, in cells
---@field rows integer Maximum number of old and new lines per change
---@field wraps boolean
---@field tabstop integer

---@param bufnr integer
---@return CodeCompanion.ChangeRoom
local function room_in(bufnr)
  local win = window_of(bufnr)
  local info = win and vim.fn.getwininfo(win)[1]
  local gutter = info and info.textoff or 0
  return {
    width = math.max(MIN_WIDTH, (info and info.width or vim.o.columns) - gutter),
    gutter = gutter,
    rows = (info and info.height or vim.o.lines) - ROWS_BESIDE,
    wraps = win == nil or vim.wo[win].wrap,
    tabstop = vim.bo[bufnr].tabstop,
  }
end

---Return a line as displayed: tabs as spaces, unprintable characters escaped.
---@param line string
---@param tabstop integer
---@return string
local function visible(line, tabstop)
  line = fit.without_nul(line)
  if line:find("\t", 1, true) then
    local parts, column = {}, 0
    for text, tab in line:gmatch("([^\t]*)(\t?)") do
      column = column + api.nvim_strwidth(text)
      local spaces = tab ~= "" and tabstop - column % tabstop or 0
      parts[#parts + 1] = text .. (" "):rep(spaces)
      column = column + spaces
    end
    line = table.concat(parts)
  end
  return line:find("%c") and vim.fn.strtrans(line) or line
end

---@param text string
---@param width integer
---@return string
local function padded(text, width)
  return text .. (" "):rep(math.max(0, width - api.nvim_strwidth(text)))
end

---@alias CodeCompanion.VirtualLine { [1]: string, [2]: string }[]

---Return lines of the other version as virtual lines.
---@param lines string[]
---@param sign "+"|"−"
---@param most integer Maximum number of rows
---@param room CodeCompanion.ChangeRoom
---@param in_gutter? boolean As for `mark`
---@return CodeCompanion.VirtualLine[]
local function other_lines(lines, sign, most, room, in_gutter)
  local shown, group = {}, sign == "+" and "CodeCompanionAdded" or "CodeCompanionRemoved"
  local space = (" "):rep(room.gutter)
  local has_gutter = room.gutter >= 2 -- otherwise the text would not align with that of the buffer
  local before = has_gutter and padded((in_gutter and "" or (" "):rep(room.gutter - 2)) .. sign, room.gutter) or space
  for at, line in ipairs(lines) do
    if #shown >= most and at < #lines - 1 then -- the notice takes a row as well
      local more = ("… %d more"):format(#lines - at + 1) .. keys.hint({ { "view_diff", "shows all" } }, " · ")
      shown[#shown + 1] = { { space .. more, "CodeCompanionChangeHint" } }
      break
    end
    local text = visible(line, room.tabstop)
    local rows = room.wraps and fit.rows(text, room.width) or { text }
    local mark = not has_gutter and "  " .. sign or "" -- as after a line of the buffer
    if room.wraps and api.nvim_strwidth(rows[#rows] .. mark) > room.width then
      rows = fit.rows(text, room.width - api.nvim_strwidth(mark))
    end
    for index, row in ipairs(rows) do
      local note = index == #rows and mark or ""
      local left = room.width - api.nvim_strwidth(row .. note)
      shown[#shown + 1] = {
        { index == 1 and before or space, "CodeCompanionChangeHint" },
        { row, group },
        left >= 0 and { note, { group, "CodeCompanionChangeHint" } } or { "", group },
        { (" "):rep(left >= 0 and left or room.width - api.nvim_strwidth(row)), group },
      }
    end
  end
  return shown
end

---Return whether a line leaves no cells for a sign in its last row.
---@param bufnr integer
---@param row integer
---@param room CodeCompanion.ChangeRoom
---@return boolean
local function fills_last_row(bufnr, row, room)
  local line = visible(api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or "", room.tabstop)
  local used = api.nvim_strwidth(line) % room.width
  return room.wraps and line ~= "" and (used == 0 or used > room.width - 2)
end

---Highlight lines of the buffer.
---@param bufnr integer
---@param first integer
---@param last integer
---@param group string
---@param sign "+"|"−"
---@param room CodeCompanion.ChangeRoom
---@param in_gutter? boolean Whether the sign is left of the line or at its end; defaults to the end if the user uses
---the gutter
local function mark(bufnr, first, last, group, sign, room, in_gutter)
  for row = first, last - 1 do
    local fills_row = not in_gutter and fills_last_row(bufnr, row, room)
    api.nvim_buf_set_extmark(bufnr, M.namespace, row, 0, {
      end_row = row + 1,
      hl_group = group,
      hl_eol = true,
      priority = 250,
      strict = false,
      virt_text = not in_gutter and not fills_row and { { " " .. sign, "CodeCompanionChangeHint" } } or nil,
    })
    if fills_row then -- text after the line would be invisible; inline text wraps
      local last_col = #api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]
      local look = { virt_text = { { " " .. sign, "CodeCompanionChangeHint" } }, virt_text_pos = "inline" }
      api.nvim_buf_set_extmark(bufnr, M.namespace, row, last_col, look)
    end
    if in_gutter then -- each line of the mark has a sign
      local look = { sign_text = sign, sign_hl_group = "CodeCompanionChangeHint", strict = false }
      api.nvim_buf_set_extmark(bufnr, M.namespace, row, 0, look)
    end
  end
end

---Add virtual lines below a row; -1 puts them above the first row.
---@param bufnr integer
---@param row integer
---@param lines CodeCompanion.VirtualLine[]
local function put_below(bufnr, row, lines)
  if #lines == 0 then
    return
  end
  local options = { virt_lines = lines, virt_lines_above = row < 0, virt_lines_leftcol = true }
  options.virt_lines_overflow = vim.fn.has("nvim-0.11") == 1 and "scroll" or nil
  api.nvim_buf_set_extmark(bufnr, M.namespace, math.max(0, row), 0, options)
  if row < 0 then
    for _, win in ipairs(vim.fn.win_findbuf(bufnr)) do
      api.nvim_win_call(win, function()
        if vim.fn.line("w0") == 1 then
          vim.fn.winrestview({ topline = 1, topfill = #lines })
        end
      end)
    end
  end
end

---Draw, and keep the cursor's line at its position on the screen in every window.
---@param bufnr integer
---@param draw fun()
function M.without_moving(bufnr, draw)
  local before = {}
  for _, win in ipairs(vim.fn.win_findbuf(bufnr)) do
    before[win] = api.nvim_win_call(win, vim.fn.winline)
  end
  draw()
  redraw.all_rows(bufnr)
  if api.nvim_get_mode().mode:find("^[iR]") then
    return
  end
  for win, row in pairs(before) do
    api.nvim_win_call(win, function()
      local lines = vim.fn.winline() - row
      local view = vim.fn.winsaveview()
      -- Virtual lines above the first line become visible only by scrolling down.
      if lines ~= 0 and not (view.topline == 1 and view.topfill > 0) then
        local key = lines > 0 and "\5" or "\25" -- CTRL-E, CTRL-Y
        pcall(vim.cmd.normal, { math.abs(lines) .. key, bang = true })
      end
    end)
  end
end

---@class CodeCompanion.ShownHunks
---@field first integer 0-based row that hunk rows are relative to
---@field hunks CodeCompanion.PlacedHunk[]
---@field hint string[] Hints below the first hunk; the first one that fits is shown
---@field in_gutter? boolean Whether the signs are in the sign column

---Return the hints below a hunk that overlaps a user's change.
---@return string[] Longest first
local function conflict_hint()
  local accept = keys.selecting()
  local choice =
    keys.hint({ accept and { "=" .. accept, "accepts the new lines" } or nil, { "skip_hunk", "keeps yours" } })
  return { "You changed these lines too · " .. choice, "You changed these" }
end

---Return a line below a hunk: the first text that fits.
---@param texts string[]
---@param group string
---@param room CodeCompanion.ChangeRoom
---@return CodeCompanion.VirtualLine?
local function hint_below(texts, group, room)
  for at, text in ipairs(texts) do
    if api.nvim_strwidth(text) <= room.width or at == #texts then
      return { { (" "):rep(room.gutter) .. fit.cut(text, room.width), group } }
    end
  end
end

---@param bufnr integer
---@param shown CodeCompanion.ShownHunks
---@param room CodeCompanion.ChangeRoom
local function draw_in_old_text(bufnr, shown, room)
  for index, one in ipairs(shown.hunks) do
    local first = shown.first + one.first
    local last = first + one.count
    local group = one.is_conflict and "CodeCompanionConflict" or "CodeCompanionRemoved"
    mark(bufnr, first, last, group, "−", room, shown.in_gutter)
    local lines = other_lines(one.lines, "+", math.max(MIN_ROWS, room.rows - one.count), room)
    lines[#lines + 1] = one.is_conflict and hint_below(conflict_hint(), "CodeCompanionConflict", room) or nil
    lines[#lines + 1] = index == 1 and hint_below(shown.hint, "CodeCompanionChangeHint", room) or nil
    put_below(bufnr, last - 1, lines)
  end
end

---Draw hunks in a buffer with the original text; replaces the previous drawing.
---@param bufnr integer
---@param all CodeCompanion.ShownHunks[]
function M.draw(bufnr, all)
  M.without_moving(bufnr, function()
    api.nvim_buf_clear_namespace(bufnr, M.namespace, 0, -1)
    local room = room_in(bufnr)
    for _, shown in ipairs(all) do
      draw_in_old_text(bufnr, shown, room)
    end
  end)
end

---Draw hunks in a buffer with the resulting text; replaces the previous drawing.
---@param bufnr integer
---@param base string[] Original text
---@param all CodeCompanion.Hunk[]
function M.draw_result(bufnr, base, all)
  M.without_moving(bufnr, function()
    api.nvim_buf_clear_namespace(bufnr, M.namespace, 0, -1)
    local room, offset = room_in(bufnr), 0
    for _, hunk in ipairs(all) do
      local first = hunk.first + offset
      mark(bufnr, first, first + #hunk.lines, "CodeCompanionAdded", "+", room, true)
      local removed = vim.list_slice(base, hunk.first + 1, hunk.first + hunk.count)
      put_below(bufnr, first - 1, other_lines(removed, "−", math.huge, room, true))
      offset = offset + #hunk.lines - hunk.count
    end
  end)
end

local progress = api.nvim_create_namespace("codecompanion.changes.progress")

---Show the current activity at the end of a line.
---@param bufnr integer
---@param row integer
---@param text string
---@param id? integer Existing mark to update
---@return integer mark
function M.progress(bufnr, row, text, id)
  return api.nvim_buf_set_extmark(bufnr, progress, math.min(row, api.nvim_buf_line_count(bufnr) - 1), 0, {
    id = id,
    virt_text = { { "  " .. text, "CodeCompanionEditProgress" } },
    virt_text_pos = "eol",
    hl_mode = "combine",
  })
end

---@param bufnr integer
---@param id? integer
function M.end_progress(bufnr, id)
  if id and api.nvim_buf_is_loaded(bufnr) then
    api.nvim_buf_del_extmark(bufnr, progress, id)
  end
end

---Open folds that hide a change.
---@param bufnr integer
---@param shown CodeCompanion.ShownHunks
function M.unfold(bufnr, shown)
  for _, win in ipairs(vim.fn.win_findbuf(bufnr)) do
    api.nvim_win_call(win, function()
      for _, one in ipairs(shown.hunks) do
        local last = math.min(api.nvim_buf_line_count(bufnr), shown.first + one.first + math.max(one.count, 1))
        for line = shown.first + one.first + 1, last do
          if vim.fn.foldclosed(line) > 0 then
            pcall(vim.cmd, ("silent! %dfoldopen!"):format(line))
          end
        end
      end
    end)
  end
end

---Scroll the current window until a change is visible including its new lines, which are drawn below the old ones and
---would be below the window at the end of a file. The first line and the cursor's line stay in the window.
---@param first integer 0-based row
---@param last integer 0-based row of the last old line
function M.reveal(first, last)
  local win = api.nvim_get_current_win()
  local top = vim.fn.line("w0") - 1
  if api.nvim_get_mode().mode:find("^[iR]") or last < top then
    return
  end
  local function rows_to(row) -- including the virtual lines below it
    if row < top then
      return 0
    end
    local is_last = row + 1 >= api.nvim_buf_line_count(0)
    local area = is_last and { start_row = top } or { start_row = top, end_row = row + 1, end_vcol = 0 }
    return api.nvim_win_text_height(win, area).all
  end
  local hidden = rows_to(last) - api.nvim_win_get_height(win)
  local lines = math.min(hidden, vim.fn.winline() - 1, rows_to(first - 1))
  if lines > 0 then
    pcall(vim.cmd.normal, { lines .. "\5", bang = true }) -- CTRL-E
  end
end

---@param bufnr integer
function M.clear(bufnr)
  if api.nvim_buf_is_loaded(bufnr) then
    M.without_moving(bufnr, function()
      api.nvim_buf_clear_namespace(bufnr, M.namespace, 0, -1)
      api.nvim_buf_clear_namespace(bufnr, progress, 0, -1)
    end)
  end
end

return M
