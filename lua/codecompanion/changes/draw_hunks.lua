---Draws hunks in a buffer that holds one of the two texts: its own lines of a hunk are marked, those of the other text
---are virtual lines. Removed lines are always above the added ones. The text is not touched, and the line under the
---cursor stays where it is on the screen.

local api = vim.api
local fit = require("codecompanion.text.fit")
local keys = require("codecompanion.changes.decision_keys")
local redraw = require("codecompanion.screen.redraw_rows")

local M = {}

M.namespace = api.nvim_create_namespace("codecompanion.changes")

local MIN_WIDTH = 10
---Rows of the window that are left free beside a hunk, whose old and new lines are to be seen together; what does not
---fit is counted.
local ROWS_BESIDE, MIN_ROWS = 4, 6

---A window that shows the buffer, the current one before others.
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
---@field width integer Cells for the text of a line
---@field gutter integer Cells left of it
---@field rows integer Old and new lines that may be shown of one change
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

---A line as it looks: tabs as spaces, what cannot be shown spelled out.
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

---Lines of the other text, as virtual lines.
---@param lines string[]
---@param sign "+"|"−"
---@param most integer How many rows there are for them
---@param room CodeCompanion.ChangeRoom
---@param in_gutter? boolean As for `mark`
---@return CodeCompanion.VirtualLine[]
local function other_lines(lines, sign, most, room, in_gutter)
  local shown, group = {}, sign == "+" and "CodeCompanionAdded" or "CodeCompanionRemoved"
  local space = (" "):rep(room.gutter)
  local has_gutter = room.gutter >= 2 -- else the text would not begin where that of the buffer does
  local before = has_gutter and padded((in_gutter and "" or (" "):rep(room.gutter - 2)) .. sign, room.gutter) or space
  for at, line in ipairs(lines) do
    if #shown >= most and at < #lines - 1 then -- a notice takes a row as well
      local more = ("… %d more"):format(#lines - at + 1) .. keys.hint({ { "view_diff", "shows all" } }, " · ")
      shown[#shown + 1] = { { space .. more, "CodeCompanionChangeHint" } }
      break
    end
    local text = visible(line, room.tabstop)
    local rows = room.wraps and fit.rows(text, room.width) or { text }
    for index, row in ipairs(rows) do
      local note = (not has_gutter and index == #rows) and "  " .. sign or "" -- as after a line of the buffer
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

---Mark lines of the buffer.
---@param bufnr integer
---@param first integer
---@param last integer
---@param group string
---@param sign "+"|"−"
---@param in_gutter? boolean The sign is left of the line; by default, where the gutter is the user's, at its end
local function mark(bufnr, first, last, group, sign, in_gutter)
  for row = first, last - 1 do
    api.nvim_buf_set_extmark(bufnr, M.namespace, row, 0, {
      end_row = row + 1,
      hl_group = group,
      hl_eol = true,
      priority = 250,
      strict = false,
      virt_text = not in_gutter and { { " " .. sign, "CodeCompanionChangeHint" } } or nil,
    })
    if in_gutter then -- a sign stands beside every line of its mark
      local look = { sign_text = sign, sign_hl_group = "CodeCompanionChangeHint", strict = false }
      api.nvim_buf_set_extmark(bufnr, M.namespace, row, 0, look)
    end
  end
end

---Put virtual lines below a row; above the first one for -1.
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

---Draw, and leave the cursor's line where it is in every window.
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
      -- What stands above the first line can be seen only by moving it down.
      if lines ~= 0 and not (view.topline == 1 and view.topfill > 0) then
        local key = lines > 0 and "\5" or "\25" -- CTRL-E, CTRL-Y
        pcall(vim.cmd.normal, { math.abs(lines) .. key, bang = true })
      end
    end)
  end
end

---@class CodeCompanion.ShownHunks
---@field first integer 0-based row that the hunks count from
---@field hunks CodeCompanion.PlacedHunk[]
---@field hint string[] What is said below the first hunk: the first that fits
---@field in_gutter? boolean The signs of its lines are in the sign column

---What is said below a hunk that overlaps a change of the user's.
---@return string[] In fewer and fewer words
local function conflict_hint()
  local accept = keys.selecting()
  local choice =
    keys.hint({ accept and { "=" .. accept, "takes the new ones" } or nil, { "skip_hunk", "keeps yours" } })
  return { "You changed these lines too · " .. choice, "You changed these" }
end

---A line below a hunk: the first text that fits.
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
    mark(bufnr, first, last, group, "−", shown.in_gutter)
    local lines = other_lines(one.lines, "+", math.max(MIN_ROWS, room.rows - one.count), room)
    lines[#lines + 1] = one.is_conflict and hint_below(conflict_hint(), "CodeCompanionConflict", room) or nil
    lines[#lines + 1] = index == 1 and hint_below(shown.hint, "CodeCompanionChangeHint", room) or nil
    put_below(bufnr, last - 1, lines)
  end
end

---Draw hunks in a buffer with the text that they change; what was drawn before goes.
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

---Draw hunks in a buffer with the text that they lead to; what was drawn before goes.
---@param bufnr integer
---@param base string[] The text they change
---@param all CodeCompanion.Hunk[]
function M.draw_result(bufnr, base, all)
  M.without_moving(bufnr, function()
    api.nvim_buf_clear_namespace(bufnr, M.namespace, 0, -1)
    local room, offset = room_in(bufnr), 0
    for _, hunk in ipairs(all) do
      local first = hunk.first + offset
      mark(bufnr, first, first + #hunk.lines, "CodeCompanionAdded", "+", true)
      local removed = vim.list_slice(base, hunk.first + 1, hunk.first + hunk.count)
      put_below(bufnr, first - 1, other_lines(removed, "−", math.huge, room, true))
      offset = offset + #hunk.lines - hunk.count
    end
  end)
end

local progress = api.nvim_create_namespace("codecompanion.changes.progress")

---Show at the end of a line what is happening.
---@param bufnr integer
---@param row integer
---@param text string
---@param id? integer The mark that shows it already
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

---Open the folds that hide a change.
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

---Scroll the current window so far that a change is seen with its new lines, which stand below its old ones; at the end
---of a file they would be below the window. Its first line and the cursor's line stay in the window.
---@param first integer 0-based row
---@param last integer 0-based row of the last old line
function M.reveal(first, last)
  local win = api.nvim_get_current_win()
  local top = vim.fn.line("w0") - 1
  if api.nvim_get_mode().mode:find("^[iR]") or last < top then
    return
  end
  local function rows_to(row) -- with what stands below it
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
