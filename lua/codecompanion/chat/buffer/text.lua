---The text of a chat buffer: where machine text goes, where the user writes, and what keeps the two apart.
---
---Four anchors (extmarks) divide the buffer:
---  top     first row below the context block; older pieces of a restored chat go here
---  tail    row where the next block of machine text goes
---  header  the row `## Me` above the input
---  input   where the input begins; it reaches to the end of the buffer
---Between `tail` and `header` stand messages that are on their way. Role borders are anchors, never headings, so a
---message may contain any text (R-547). Machine edits are kept out of the undo history: `u` belongs to the user.

local api = vim.api
local options = require("codecompanion.chat.state.options")

local M = {}

M.ns = api.nvim_create_namespace("codecompanion.chat.anchors")

local SWEEP_MS, SWEEP_ROWS = 4, 500

local ID = { top = 1, tail = 2, header = 3, input = 4 }
local GRAVITY = { top = false, tail = true, header = true, input = false }

---@alias CodeCompanion.Anchor "top"|"tail"|"header"|"input"

---@param chat CodeCompanion.Chat
---@param anchor CodeCompanion.Anchor
---@return integer row 0-based
---@return integer col 0-based, bytes
function M.position(chat, anchor)
  local mark = api.nvim_buf_get_extmark_by_id(chat.bufnr, M.ns, ID[anchor], {})
  return mark[1] or 0, mark[2] or 0
end

---@param chat CodeCompanion.Chat
---@param anchor CodeCompanion.Anchor
---@param row integer
---@param col? integer
function M.place(chat, anchor, row, col)
  api.nvim_buf_set_extmark(chat.bufnr, M.ns, row, col or 0, {
    id = ID[anchor],
    right_gravity = GRAVITY[anchor],
    strict = false,
  })
end

---Take away the marks below the last line in slices: a buffer that was unloaded keeps them where its text was. Nothing
---is drawn there, and what is inserted above moves them along.
---@param chat CodeCompanion.Chat
local function sweep(chat)
  local bufnr, began = chat.bufnr, vim.uv.hrtime()
  repeat
    if not api.nvim_buf_is_loaded(bufnr) then
      return
    end
    local next = api.nvim_buf_get_extmarks(bufnr, -1, { api.nvim_buf_line_count(bufnr), 0 }, -1, { limit = 1 })[1]
    if not next then
      return
    end
    api.nvim_buf_clear_namespace(bufnr, -1, next[2], next[2] + SWEEP_ROWS)
  until (vim.uv.hrtime() - began) / 1e6 >= SWEEP_MS
  vim.defer_fn(function()
    sweep(chat)
  end, SWEEP_MS)
end

---Take all marks away but the anchors: at once where there are lines, each namespace by itself would look at them all.
---@param chat CodeCompanion.Chat
function M.clear_marks(chat)
  local places = {}
  for anchor in pairs(ID) do
    places[anchor] = { M.position(chat, anchor) }
  end
  api.nvim_buf_clear_namespace(chat.bufnr, -1, 0, api.nvim_buf_line_count(chat.bufnr) + 1)
  sweep(chat)
  for anchor, place in pairs(places) do
    M.place(chat, anchor, place[1], place[2])
  end
end

---The line that stands above the input.
---@return string
function M.input_header()
  return "## " .. options.header("user")
end

---Make `bufnr` the buffer of a chat, with an empty input. Its options are set again whenever it is loaded.
---@param chat CodeCompanion.Chat
---@param bufnr integer
function M.take(chat, bufnr)
  chat.bufnr = bufnr
  -- `acwrite`: `:e` reads it again, `:w` keeps the draft; `modified` stays off, so that `:qa` is never held up
  for name, value in pairs({ buftype = "acwrite", bufhidden = "hide", swapfile = false, modeline = false }) do
    api.nvim_set_option_value(name, value, { buf = bufnr })
  end
  vim.bo[bufnr].buflisted = options.display().window.buflisted == true
  M.blank(chat, "")
end

---Leave nothing in the buffer but a draft.
---@param chat CodeCompanion.Chat
---@param text string
function M.blank(chat, text)
  M.edit(chat, function()
    api.nvim_buf_clear_namespace(chat.bufnr, M.ns, 0, -1)
    local lines = { M.input_header() }
    vim.list_extend(lines, vim.split(text, "\n", { plain = true }))
    api.nvim_buf_set_lines(chat.bufnr, 0, -1, false, lines)
    M.place(chat, "top", 0)
    M.place(chat, "tail", 0)
    M.place(chat, "header", 0)
    M.place(chat, "input", 1)
  end)
end

---Run `change`, which edits the buffer, so that it leaves no trace in the undo history and only windows that follow
---the end scroll. Line numbers in older undo entries would point at wrong lines after a machine edit, so they are
---dropped; what the user wrote is undone by `codecompanion.chat.wire.draft`.
---@param chat CodeCompanion.Chat
---@param change fun()
function M.edit(chat, change)
  if chat.editing then
    return change()
  end
  local bo = vim.bo[chat.bufnr]
  local levels, modifiable = bo.undolevels, bo.modifiable
  local view = require("codecompanion.chat.buffer.view")
  local followers = view.followers(chat)
  chat.editing = true
  -- an option that has the value already is not written: each write costs more than the edit
  if not modifiable then
    bo.modifiable = true
  end
  bo.undolevels = -1
  local ok, problem = xpcall(change, debug.traceback)
  chat.editing = false
  if not api.nvim_buf_is_valid(chat.bufnr) then
    return
  end
  bo.undolevels = levels
  if not modifiable then
    bo.modifiable = false
  end
  -- where the transcript is now, for changes that are not ours (`guard.changed`)
  chat.bounds = { M.position(chat, "top"), (M.position(chat, "header")) }
  if bo.modified then
    bo.modified = false
  end
  view.follow(chat, followers)
  if not ok then
    error(problem, 0)
  end
end

---Lines for a function of Vim's, where a NUL is a newline: a Lua string with a NUL would be a blob.
---@param lines string[]
---@return string[]
function M.for_vim(lines)
  local given = lines
  for index, line in ipairs(lines) do
    if line:find("%z") then
      given = given == lines and vim.list_slice(lines) or given
      given[index] = line:gsub("%z", "\n")
    end
  end
  return given
end

---Put whole lines above `row`. Not with nvim_buf_set_lines(): from 0.11 on it leaves a fold that begins at `row`
---where it was, so that the fold swallows the new lines. appendbufline() does not, but forgets the current window's
---view.
---@param chat CodeCompanion.Chat
---@param row integer
---@param lines string[]
function M.insert(chat, row, lines)
  M.edit(chat, function()
    local win = api.nvim_get_current_win()
    local top = api.nvim_win_get_buf(win) == chat.bufnr and vim.fn.line("w0") or 0
    vim.fn.appendbufline(chat.bufnr, row, M.for_vim(lines))
    if top > row then
      vim.fn.winrestview({ topline = top + #lines })
    end
  end)
end

---Take whole lines away.
---@param chat CodeCompanion.Chat
---@param first integer
---@param last integer Exclusive
function M.remove(chat, first, last)
  M.edit(chat, function()
    api.nvim_buf_set_lines(chat.bufnr, first, last, false, {})
  end)
end

---What stands in the input region, exactly.
---@param chat CodeCompanion.Chat
---@return string
function M.input_text(chat)
  local row, col = M.position(chat, "input")
  local count = api.nvim_buf_line_count(chat.bufnr)
  if row >= count then
    return ""
  end
  local lines = api.nvim_buf_get_lines(chat.bufnr, row, -1, false)
  lines[1] = lines[1]:sub(col + 1)
  return table.concat(lines, "\n")
end

---Replace what stands in the input region.
---@param chat CodeCompanion.Chat
---@param text string
function M.set_input(chat, text)
  M.ensure_input(chat)
  M.edit(chat, function()
    local row, col = M.position(chat, "input")
    local last = api.nvim_buf_line_count(chat.bufnr) - 1
    local width = #api.nvim_buf_get_lines(chat.bufnr, last, last + 1, false)[1]
    api.nvim_buf_set_text(chat.bufnr, row, col, last, width, vim.split(text, "\n", { plain = true }))
    M.place(chat, "input", row, col)
  end)
end

---Put lines in front of what stands in the input region; cursors in it stay on their words.
---@param chat CodeCompanion.Chat
---@param text string Ends in a line break
function M.prepend_input(chat, text)
  M.ensure_input(chat)
  M.edit(chat, function()
    local row = M.position(chat, "input")
    api.nvim_buf_set_lines(chat.bufnr, row, row, false, vim.split(text:sub(1, -2), "\n", { plain = true }))
    M.place(chat, "input", row, 0)
  end)
end

---Whether header and input stand where they should.
---@param chat CodeCompanion.Chat
---@return boolean
local function intact(chat)
  local header, header_col = M.position(chat, "header")
  local input, input_col = M.position(chat, "input")
  if header_col ~= 0 or input_col ~= 0 or input ~= header + 1 or input >= api.nvim_buf_line_count(chat.bufnr) then
    return false
  end
  if header > 0 and api.nvim_buf_get_lines(chat.bufnr, header - 1, header, false)[1] ~= "" then
    return false
  end
  return api.nvim_buf_get_lines(chat.bufnr, header, header + 1, false)[1] == M.input_header()
end

---What was typed on the header line itself; it belongs to the draft.
---@param chat CodeCompanion.Chat
---@return string
local function typed_on_header(chat)
  local header = M.position(chat, "header")
  local input, input_col = M.position(chat, "input")
  local line = api.nvim_buf_get_lines(chat.bufnr, header, header + 1, false)[1] or ""
  local wanted = M.input_header()
  local from, to = line:find(wanted, 1, true)
  if input == header + 1 and input_col == 0 and from then
    return line:sub(1, from - 1) .. line:sub(to + 1)
  end
  return ""
end

---Rebuild header and input after an edit that ran across them (`ggdG`, `dd` on the last line, `J` on the header).
---The text of the region stays as it is.
---@param chat CodeCompanion.Chat
---@return boolean changed
function M.ensure_input(chat)
  if intact(chat) then
    return false
  end
  local extra = typed_on_header(chat)
  local text = extra .. M.input_text(chat)
  local header, header_col = M.position(chat, "header")
  local first = math.min(header, (M.position(chat, "input")))
  local lines = {}
  local kept = header_col > 0 and api.nvim_buf_get_lines(chat.bufnr, header, header + 1, false)[1] or ""
  if kept ~= "" then
    -- the deletion began in the middle of a line: what stands before it stays
    lines = { kept:sub(1, header_col), "" }
  elseif first > 0 and api.nvim_buf_get_lines(chat.bufnr, first - 1, first, false)[1] ~= "" then
    lines = { "" }
  end
  local at = first + #lines
  lines[#lines + 1] = M.input_header()
  vim.list_extend(lines, vim.split(text, "\n", { plain = true }))
  M.edit(chat, function()
    api.nvim_buf_set_lines(chat.bufnr, first, -1, false, lines)
    M.place(chat, "header", at)
    M.place(chat, "input", at + 1)
    M.place(chat, "tail", math.min((M.position(chat, "tail")), at))
    M.place(chat, "top", math.min((M.position(chat, "top")), at))
  end)
  if api.nvim_get_current_buf() == chat.bufnr and api.nvim_win_get_cursor(0)[1] == at + 1 then
    api.nvim_win_set_cursor(0, { at + 2, #extra })
  end
  return true
end

return M
