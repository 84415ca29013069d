---Scrolls while machine text is written: windows that follow the end keep it visible, all others stay in place.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local options = require("codecompanion.chat.state.chat_options")

local M = {}

---Return the windows whose cursor is at or below the insertion point of machine text, usually in the input.
---@param chat CodeCompanion.Chat
---@return integer[] winids
function M.followers(chat)
  if not options.display().auto_scroll then
    return {}
  end
  local tail = anchors.position(chat, "tail")
  local found = {}
  for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
    if api.nvim_win_get_cursor(win)[1] >= tail then
      found[#found + 1] = win
    end
  end
  return found
end

---Return the number of text rows in a window.
---@param win integer
---@return integer
local function text_rows(win)
  return api.nvim_win_get_height(win) - (vim.wo[win].winbar ~= "" and 1 or 0)
end

---Maximum bytes of a character, which usually takes one cell.
local UTF8_BYTES = 4

---Limit for measuring a single line, as a multiple of the window's cells; a line with more bytes counts as too long.
local MEASURED = 16

---Return the first line to show so that the last line is at the bottom of the screen (1-based); call it inside the
---window. Many lines are measured at once, fewer if they do not fit: a call costs more than a short line. Lines with
---more bytes than the window has cells are halved instead of measured; a single line is measured up to a limit.
---@param win integer
---@param bufnr integer
---@param last integer Line count
---@param below integer Rows of virtual text below the last line
---@return integer
---@return integer too_many Number of rows of that line that do not fit; 0 if it fits or cannot be shown in part
local function topline_for_end(win, bufnr, last, below)
  local room, line, step, grow, too_many = math.max(text_rows(win) - below, 1), last + 1, 8, 2, 0
  local width = api.nvim_win_get_width(win)
  while line > 1 and room > 0 do
    step = math.min(step, room, line - 1)
    local fold = vim.fn.foldclosed(line - step)
    local first = fold == -1 and line - step or fold
    local bytes = api.nvim_buf_get_offset(bufnr, line - 1) - api.nvim_buf_get_offset(bufnr, first - 1)
    local is_folded = step == 1 and fold ~= -1
    local used = room + 1
    if is_folded or bytes <= room * width * (step == 1 and MEASURED or 1) then
      used = api.nvim_win_text_height(win, { start_row = first - 1, end_row = line - 2 }).all
      too_many = step == 1 and used - room or 0
    end
    if used <= room then
      room, line, step, too_many = room - used, first, step * grow, 0
    elseif step == 1 then
      break
    else
      step, grow = math.floor(step / 2), 1
    end
  end
  if too_many > 0 and vim.wo[win].smoothscroll and vim.wo[win].wrap then
    return line - 1, too_many
  end
  return math.min(line, last), 0
end

---@param win integer
---@param bufnr integer
---@param below integer Rows of virtual text below the last line
local function show_end(win, bufnr, below)
  api.nvim_win_call(win, function()
    local last = api.nvim_buf_line_count(bufnr)
    local top = vim.fn.line("w0")
    local cursor = vim.fn.line(".")
    if top == 1 and last <= text_rows(win) and vim.fn.line("w$") == last then
      return
    end
    local wanted, too_many = topline_for_end(win, bufnr, last, below)
    if cursor < wanted then
      wanted, too_many = cursor, 0
    end
    local skipped = too_many > 0 and too_many * require("codecompanion.text.fit").room(win) or 0
    if wanted ~= top or skipped > 0 then
      vim.fn.winrestview({ topline = wanted, skipcol = skipped })
    end
  end)
end

---Put the cursor at the end of the input.
---@param chat CodeCompanion.Chat
---@param win? integer
function M.cursor_to_input(chat, win)
  win = win or api.nvim_get_current_win()
  if api.nvim_win_get_buf(win) == chat.bufnr then
    local last = api.nvim_buf_line_count(chat.bufnr)
    local line = api.nvim_buf_get_lines(chat.bufnr, last - 1, last, false)[1]
    api.nvim_win_set_cursor(win, { last, #line })
  end
end

---@class CodeCompanion.PlaceInInput
---@field text string Text of the input
---@field row integer Line relative to the start of the input
---@field col integer 0-based byte

---Return the windows whose cursor is in the input.
---@param chat CodeCompanion.Chat
---@return integer[]
function M.in_input(chat)
  local first = anchors.position(chat, "input") + 1
  return vim.tbl_filter(function(win)
    return api.nvim_win_get_cursor(win)[1] >= first
  end, vim.fn.win_findbuf(chat.bufnr))
end

---Return the position of the cursor in the input, or nil if it is elsewhere.
---@param chat CodeCompanion.Chat
---@param text string Text of the input
---@return CodeCompanion.PlaceInInput?
function M.place_in_input(chat, text)
  local win, first = api.nvim_get_current_win(), anchors.position(chat, "input") + 1
  local cursor = api.nvim_win_get_cursor(win)
  if api.nvim_win_get_buf(win) == chat.bufnr and cursor[1] >= first then
    return { text = text, row = cursor[1] - first, col = cursor[2] }
  end
end

---Put the cursors of windows at a position in the input, or at its end.
---@param chat CodeCompanion.Chat
---@param wins integer[]
---@param place? CodeCompanion.PlaceInInput
function M.back_in_input(chat, wins, place)
  local first = anchors.position(chat, "input") + 1
  for _, win in ipairs(wins) do
    if place then
      api.nvim_win_set_cursor(win, { first + place.row, place.col })
    else
      M.cursor_to_input(chat, win)
    end
  end
end

---Keep the end visible in windows that followed it before an edit.
---@param chat CodeCompanion.Chat
---@param wins integer[]
function M.follow(chat, wins)
  for _, win in ipairs(wins) do
    if api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) == chat.bufnr then
      show_end(win, chat.bufnr, chat.rows_below or 0)
    end
  end
end

---Return whether the input fills its window and hides the text above.
---@param chat CodeCompanion.Chat
---@return boolean
function M.input_fills_window(chat)
  local win = vim.fn.bufwinid(chat.bufnr)
  if win == -1 then
    return false
  end
  local header = anchors.position(chat, "header")
  local last, cells = api.nvim_buf_line_count(chat.bufnr), api.nvim_win_get_width(win) * text_rows(win)
  local bytes = api.nvim_buf_get_offset(chat.bufnr, last) - api.nvim_buf_get_offset(chat.bufnr, header)
  if bytes > cells * UTF8_BYTES then
    return true -- avoid measuring a megabyte
  end
  return api.nvim_win_text_height(win, { start_row = header }).all >= text_rows(win)
end

---@return integer row Row of the cursor in the current window, 0-based
function M.cursor_row()
  return api.nvim_win_get_cursor(0)[1] - 1
end

---Show the line of a closed fold from its beginning: a window that starts inside a long line ('smoothscroll') would
---show only the rest of it.
---@param chat CodeCompanion.Chat
function M.unskip_folds(chat)
  for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
    api.nvim_win_call(win, function()
      local top = vim.fn.winsaveview()
      if top.skipcol > 0 and vim.fn.foldclosed(top.topline) ~= -1 then
        vim.fn.winrestview({ skipcol = 0 })
      end
    end)
  end
end

return M
