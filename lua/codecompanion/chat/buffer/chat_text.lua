---Edits the text of a chat buffer without adding to the undo history, and manages the input region.
---
---`anchors` stores the positions. Machine edits are kept out of the undo history: `u` belongs to the user.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local options = require("codecompanion.chat.state.chat_options")
local view = require("codecompanion.chat.buffer.scroll")

local M = {}

---Return the header line above the input.
---@return string
function M.input_header()
  return "## " .. options.header("user")
end

---Make `bufnr` the buffer of a chat, with an empty input. Its options are set on every load.
---@param chat CodeCompanion.Chat
---@param bufnr integer
function M.take(chat, bufnr)
  chat.bufnr = bufnr
  -- `acwrite`: `:e` reloads it, `:w` saves the draft; `modified` stays off, so it never blocks `:qa`
  for name, value in pairs({ buftype = "acwrite", bufhidden = "hide", swapfile = false, modeline = false }) do
    api.nvim_set_option_value(name, value, { buf = bufnr })
  end
  vim.bo[bufnr].buflisted = options.display().window.buflisted == true
  M.blank(chat, "")
end

---Remove everything from the buffer except a draft.
---@param chat CodeCompanion.Chat
---@param text string
function M.blank(chat, text)
  M.edit(chat, function()
    api.nvim_buf_clear_namespace(chat.bufnr, anchors.ns, 0, -1)
    local lines = { M.input_header() }
    vim.list_extend(lines, vim.split(text, "\n", { plain = true }))
    api.nvim_buf_set_lines(chat.bufnr, 0, -1, false, lines)
    anchors.place(chat, "top", 0)
    anchors.place(chat, "tail", 0)
    anchors.place(chat, "header", 0)
    anchors.place(chat, "input", 1)
  end)
end

---Run `change`, which edits the buffer, without adding to the undo history; only windows that follow the end scroll.
---After a machine edit, older undo entries would have wrong line numbers, so they are dropped;
---`codecompanion.chat.wire.draft` undoes the user's edits.
---@param chat CodeCompanion.Chat
---@param change fun()
function M.edit(chat, change)
  if chat.editing then
    return change()
  end
  local bo = vim.bo[chat.bufnr]
  local levels, modifiable = bo.undolevels, bo.modifiable
  local followers = view.followers(chat)
  chat.editing = true
  -- options that already have the value are not set: each assignment costs more than the edit
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
  -- current bounds of the transcript, to detect foreign changes (`guard.changed`)
  chat.bounds = { anchors.position(chat, "top"), (anchors.position(chat, "header")) }
  if bo.modified then
    bo.modified = false
  end
  view.follow(chat, followers)
  if not ok then
    error(problem, 0)
  end
end

---Return lines for a Vim function, with NUL as newline: a Lua string with a NUL would be a blob.
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

---Insert whole lines above `row`. Not with nvim_buf_set_lines(): since 0.11 a fold that begins at `row` would stay
---there and swallow the new lines. appendbufline() does not, but loses the current window's view. While the user is in
---Insert mode in any window, Vim adds a single appended line to the fold that ends above it, so a second line is
---appended with it and deleted again.
---@param chat CodeCompanion.Chat
---@param row integer
---@param lines string[]
function M.insert(chat, row, lines)
  M.edit(chat, function()
    local win = api.nvim_get_current_win()
    local top = api.nvim_win_get_buf(win) == chat.bufnr and vim.fn.line("w0") or 0
    local joins_fold = #lines == 1 and api.nvim_get_mode().mode:find("^[iR]") ~= nil
    vim.fn.appendbufline(chat.bufnr, row, M.for_vim(joins_fold and { lines[1], "" } or lines))
    if joins_fold then
      api.nvim_buf_set_lines(chat.bufnr, row + 1, row + 2, false, {})
    end
    if top > row then
      vim.fn.winrestview({ topline = top + #lines })
    end
  end)
end

---Remove whole lines.
---@param chat CodeCompanion.Chat
---@param first integer
---@param last integer Exclusive
function M.remove(chat, first, last)
  M.edit(chat, function()
    api.nvim_buf_set_lines(chat.bufnr, first, last, false, {})
  end)
end

---Return whether a block follows the one above without a blank line.
---@param chat CodeCompanion.Chat
---@param row integer First row of the block
---@return boolean
function M.is_joined(chat, row)
  return row > 0 and api.nvim_buf_get_lines(chat.bufnr, row - 1, row, false)[1] ~= ""
end

---Return the exact text of the input.
---@param chat CodeCompanion.Chat
---@return string
function M.input_text(chat)
  local row, col = anchors.position(chat, "input")
  local count = api.nvim_buf_line_count(chat.bufnr)
  if row >= count then
    return ""
  end
  local lines = api.nvim_buf_get_lines(chat.bufnr, row, -1, false)
  lines[1] = lines[1]:sub(col + 1)
  return table.concat(lines, "\n")
end

---Replace the text of the input.
---@param chat CodeCompanion.Chat
---@param text string
function M.set_input(chat, text)
  M.ensure_input(chat)
  M.edit(chat, function()
    local row, col = anchors.position(chat, "input")
    local last = api.nvim_buf_line_count(chat.bufnr) - 1
    local width = #api.nvim_buf_get_lines(chat.bufnr, last, last + 1, false)[1]
    api.nvim_buf_set_text(chat.bufnr, row, col, last, width, vim.split(text, "\n", { plain = true }))
    anchors.place(chat, "input", row, col)
  end)
end

---Insert lines before the text of the input; cursors in it stay on their words.
---@param chat CodeCompanion.Chat
---@param text string Ends with a line break
function M.prepend_input(chat, text)
  M.ensure_input(chat)
  M.edit(chat, function()
    local row = anchors.position(chat, "input")
    api.nvim_buf_set_lines(chat.bufnr, row, row, false, vim.split(text:sub(1, -2), "\n", { plain = true }))
    anchors.place(chat, "input", row, 0)
  end)
end

---Return whether the header and the input are in place.
---@param chat CodeCompanion.Chat
---@return boolean
local function intact(chat)
  local header, header_col = anchors.position(chat, "header")
  local input, input_col = anchors.position(chat, "input")
  if header_col ~= 0 or input_col ~= 0 or input ~= header + 1 or input >= api.nvim_buf_line_count(chat.bufnr) then
    return false
  end
  if header > 0 and api.nvim_buf_get_lines(chat.bufnr, header - 1, header, false)[1] ~= "" then
    return false
  end
  return api.nvim_buf_get_lines(chat.bufnr, header, header + 1, false)[1] == M.input_header()
end

---Return text typed on the header line itself; it is part of the draft.
---@param chat CodeCompanion.Chat
---@return string
local function typed_on_header(chat)
  local header = anchors.position(chat, "header")
  local input, input_col = anchors.position(chat, "input")
  local line = api.nvim_buf_get_lines(chat.bufnr, header, header + 1, false)[1] or ""
  local wanted = M.input_header()
  local from, to = line:find(wanted, 1, true)
  if input == header + 1 and input_col == 0 and from then
    return line:sub(1, from - 1) .. line:sub(to + 1)
  end
  return ""
end

---Rebuild the header and the input after an edit that spans both (`ggdG`, `dd` on the last line, `J` on the header).
---The text of the input is kept.
---@param chat CodeCompanion.Chat
---@return boolean changed
function M.ensure_input(chat)
  if intact(chat) then
    return false
  end
  local extra = typed_on_header(chat)
  local text = extra .. M.input_text(chat)
  local header, header_col = anchors.position(chat, "header")
  local first = math.min(header, (anchors.position(chat, "input")))
  local lines = {}
  local kept = header_col > 0 and api.nvim_buf_get_lines(chat.bufnr, header, header + 1, false)[1] or ""
  if kept ~= "" then
    -- the deletion began inside a line: keep the text before it
    lines = { kept:sub(1, header_col), "" }
  elseif first > 0 and api.nvim_buf_get_lines(chat.bufnr, first - 1, first, false)[1] ~= "" then
    lines = { "" }
  end
  local cursor = api.nvim_get_current_buf() == chat.bufnr and api.nvim_win_get_cursor(0) or nil
  local input, input_col = anchors.position(chat, "input")
  local is_on_header, col = cursor ~= nil and kept == "" and cursor[1] == header + 1, #extra
  if is_on_header and input == header then -- `<BS>` or `<C-u>` joined the input to its header
    col = math.max(0, cursor[2] - input_col)
  end
  local at = first + #lines
  lines[#lines + 1] = M.input_header()
  vim.list_extend(lines, vim.split(text, "\n", { plain = true }))
  M.edit(chat, function()
    api.nvim_buf_set_lines(chat.bufnr, first, -1, false, lines)
    anchors.place(chat, "header", at)
    anchors.place(chat, "input", at + 1)
    anchors.place(chat, "tail", math.min((anchors.position(chat, "tail")), at))
    anchors.place(chat, "top", math.min((anchors.position(chat, "top")), at))
  end)
  if cursor and (is_on_header or api.nvim_win_get_cursor(0)[1] == at + 1) then
    api.nvim_win_set_cursor(0, { at + 2, col })
  end
  return true
end

return M
