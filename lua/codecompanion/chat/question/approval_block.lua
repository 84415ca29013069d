---Builds the block of an approval as plain tables: the question, the exact command or as many changed lines as fit the
---screen, the reason for asking despite grants, and the keys. Each line begins with a bar.

local api = vim.api
local counts = require("codecompanion.changes.line_counts").text
local fit = require("codecompanion.text.fit")
local keymaps = require("codecompanion.chat.state.configured_keys")
local keys = require("codecompanion.changes.decision_keys")
local kinds = require("codecompanion.chat.state.question_kinds")
local rows_of_change = require("codecompanion.changes.change_rows")
local unsaved_files = require("codecompanion.chat.question.unsaved_files")
local visible = require("codecompanion.text.visible_characters")

local M = {}

local BAR = rows_of_change.BAR
local MAX_ROWS, MIN_ROWS = 60, 5
---Rows of the screen reserved for the block's own lines and the input below it.
local OTHER_ROWS = 7
local DEFAULT_WIDTH = 80
local UNSAVED = ", which has unsaved changes"
---Minimum number of cells needed to identify a command; with less space, only the body of the block shows the command.
local MIN_COMMAND = 8
---Text about where a command would run, by `place` of the event.
local PLACES = {
  inside = "in the sandbox",
  network = "in the sandbox, with network",
  outside = "outside the sandbox",
  none = "no sandbox on this system",
  off = "sandbox off",
}
---Reasons for running a failed command again, by `place`; the accept key is appended.
local RETRIES = {
  network = { "It failed in the sandbox (no network).", "runs it with network access" },
  outside = { "It failed in the sandbox.", "runs it outside" },
}

---Return the space in the windows that show the chat: columns of the narrowest, rows of the shortest.
---@param chat CodeCompanion.Chat
---@return CodeCompanion.RowRoom
local function room_of(chat)
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
  return {
    width = math.max(20, width),
    rows = math.min(MAX_ROWS, math.max(MIN_ROWS, height - OTHER_ROWS)),
    wraps = wraps,
  }
end

---@return string ", K", or "" without a key
local function with_key()
  local key = keymaps.keys("show_original", "n")[1]
  return key and ", " .. key or ""
end

---Shorten a line that would fill the block by itself; in a window that does not wrap, its end is always visible.
---@param line CodeCompanion.Visible
---@param most integer In columns
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

---Return a string as lines with bars: its beginning and end, never only the beginning.
---@param text string
---@param room CodeCompanion.RowRoom
---@return CodeCompanion.ShownRows
local function body_of(text, room)
  local all, found = visible.lines(text), { lines = {}, marks = {}, left_out = 0, hidden = 0, is_cut = false }
  local most = (room.wraps and math.max(room.width * 2, room.width * math.floor(room.rows / 2)) or room.width) - #BAR
  for index, line in ipairs(all) do
    all[index] = bounded(line, most)
    all[index].height = room.wraps and fit.height(BAR .. all[index].text, room.width) or 1
    found.hidden, found.is_cut = found.hidden + line.count, found.is_cut or all[index].cut == true
  end
  local first, last = rows_of_change.fitting(all, room.rows)
  for index = 1, #all do
    local line = all[index]
    if index <= first or index >= last then
      for _, range in ipairs(line.marks) do
        local from, to = #BAR + range[1], #BAR + range[2]
        found.marks[#found.marks + 1] = { row = #found.lines, from = from, to = to, group = "CodeCompanionInvisible" }
      end
      found.lines[#found.lines + 1] = BAR .. line.text
    elseif index == first + 1 then
      found.left_out = last - first - 1
      local note = ("%s… %d more%s"):format(BAR, found.left_out, with_key())
      found.marks[#found.marks + 1] = { row = #found.lines, from = 0, to = #note, group = "CodeCompanionChangeHint" }
      found.lines[#found.lines + 1] = note
    end
  end
  return found
end

---Return the label of each key for this question.
---@param event table approval_requested event
---@param has_more boolean The block does not show everything
---@return { [1]: string, [2]: string }[] verb, words
local function choices(event, has_more)
  local kind, is_change = kinds[event.kind], event.path ~= "" and event.before ~= event.after
  local found =
    vim.list_slice(kind and kind.choices or { { "accept_change", "accept" }, { "reject_change", "reject…" } })
  if not kind and event.why == "" and (event.narrowed or "") == "" then
    found[#found + 1] = { "always_accept", "always…" }
  end
  if is_change then
    found[#found + 1] = { "show_original", "diff" }
  elseif has_more then
    found[#found + 1] = { "show_original", "show all" }
  end
  return found
end

---Return the lines with the keys, as many as the width requires.
---@param chat CodeCompanion.Chat
---@param event table
---@param has_more boolean
---@param width integer
---@return string[] lines
---@return CodeCompanion.BlockMark[] marks Rows are relative to these lines
local function key_lines(chat, event, has_more, width)
  local lines, marks = { BAR }, {}
  for _, choice in ipairs(choices(event, has_more)) do
    local verb, words = choice[1], visible.line(choice[2]).text
    local key = verb == "show_original" and keymaps.keys(verb, "n")[1] or keys.of(verb, chat.bufnr)
    if key then
      local line = lines[#lines]
      if line ~= BAR and api.nvim_strwidth(line) + 3 + api.nvim_strwidth(key .. " " .. words) > width then
        lines[#lines + 1] = BAR
        line = BAR
      end
      line = line .. (line == BAR and "" or " · ")
      marks[#marks + 1] = { row = #lines - 1, from = #line, to = #line + #key, group = "CodeCompanionApprovalKey" }
      lines[#lines] = line .. key .. " " .. words
    end
  end
  if lines[1] == BAR then -- every key is disabled
    lines[1] = BAR .. ":CodeCompanion accept · :CodeCompanion reject"
  end
  return lines, marks
end

---Return `Edit lua/conform/util.lua   +3 −7   2 hunks`; folders of the path are omitted first, then the number of
---hunks.
---@param event table
---@param size CodeCompanion.ChangeSize
---@param width integer
---@return string
local function title_of_change(event, size, width)
  local title = visible.line(event.title).text
  if vim.endswith(title, UNSAVED) then
    title = title:sub(1, -#UNSAVED - 1)
  end
  local verb, path = title:match("^(%u%l+ )(.+)$")
  local how_many = size.hunks > 1 and ("   %d hunks"):format(size.hunks) or ""
  local sums = counts(size)
  local after = sums ~= "" and "   " .. sums or ""
  local ways = { { verb or "", after .. how_many }, { verb or "", after }, { verb or "", "" }, { "", "" } }
  for index, way in ipairs(ways) do
    local left = width - api.nvim_strwidth(BAR .. way[1] .. way[2])
    local shown = verb and fit.path(path, left) or fit.squeeze(title, left)
    if api.nvim_strwidth(shown) <= left or index == #ways then
      return BAR .. way[1] .. fit.squeeze(shown, math.max(8, left)) .. way[2]
    end
  end
  return BAR .. title
end

---Return `run_command · in the sandbox` in one line of the window: text that the body repeats may be omitted, the place
---of a command never.
---@param event table
---@param width integer
---@return string
local function title_of_call(event, width)
  local place = PLACES[event.place] or ""
  if event.retry then
    place = "again" .. (place ~= "" and ", " .. place or "")
  end
  place = place ~= "" and " · " .. place or ""
  local notice = kinds[event.kind] and kinds[event.kind].notice or place
  local what = event.title ~= event.name and visible.line(event.title).text or ""
  local first = visible.line((event.body:match("^[^\n]*"))).text
  local title = BAR .. (event.name ~= "" and event.name or "approval")
  local folder = vim.startswith(what, first) and what:sub(#first + 1):match("^ %((in .+)%)$")
  if folder then -- the body has the command
    title, what = ("%s %s"):format(title, folder), ""
  end
  if what ~= "" and what ~= first and first:sub(1, #what) ~= what then
    local before = title .. ": "
    for _, name in ipairs({ event.name, event.name:match("__(.+)$") }) do -- the second: its name on its MCP server
      if vim.startswith(what, name .. " ") then -- the tool's own title contains its name
        before, what = BAR .. name .. " ", what:sub(#name + 2)
        break
      end
    end
    local left = width - api.nvim_strwidth(before .. notice)
    if left < api.nvim_strwidth(what) then
      left, notice = width - api.nvim_strwidth(before .. place), place
    end
    title = left >= MIN_COMMAND and before .. fit.squeeze(what, left) or title
  end
  if place ~= "" and api.nvim_strwidth(title .. notice) > width then
    notice = place
  end
  return title .. notice
end

---Return the hosts that a command would reach, one per row unless one row fits all of them, so that no name is split at
---a dot into two names that look like other hosts.
---@param event table
---@param width integer
---@return string[]
local function network(event, width)
  local hosts = vim.tbl_map(function(host)
    return visible.line(host).text
  end, event.hosts or {})
  local line = BAR .. "! Network: " .. (#hosts > 0 and table.concat(hosts, ", ") or "any host")
  if api.nvim_strwidth(line) <= width then
    return { line }
  end
  local found = { BAR .. "! Network:" }
  for _, host in ipairs(hosts) do
    found[#found + 1] = BAR .. "  " .. host
  end
  return found
end

---Return a warning in rows that each begin with the bar.
---@param text string
---@param width integer
---@return string[]
local function wrapped(text, width)
  local found, before = {}, BAR .. "! "
  local room = width - api.nvim_strwidth(before)
  for _, line in ipairs(fit.wrap(text, room)) do
    for _, row in ipairs(fit.rows(line, room)) do
      found[#found + 1], before = before .. row, BAR .. "  "
    end
  end
  return found
end

---@param chat CodeCompanion.Chat
---@param event table
---@param hidden integer Number of invisible characters
---@param width integer
---@return string[]
local function warnings(chat, event, hidden, width)
  local found = {}
  local function warn(text, ...)
    vim.list_extend(found, wrapped(text:format(...), width))
  end
  if vim.endswith(event.title, UNSAVED) then
    local whole = "The file has unsaved changes, so the edit will not be saved"
    warn(api.nvim_strwidth(BAR .. "! " .. whole) <= width and whole or "The file has unsaved changes")
  end
  local unsaved = unsaved_files.warning(chat, event)
  if unsaved then
    warn("%s", unsaved)
  end
  local retry = event.retry and RETRIES[event.place]
  if retry then
    local key = keys.of("accept_change", chat.bufnr) or ":CodeCompanion accept"
    warn("%s %s %s", retry[1], key, retry[2])
  elseif event.why ~= "" then
    warn("Always asks: %s", visible.line(event.why).text)
  elseif event.again ~= "" then
    warn("Asks again: %s", visible.line(event.again).text)
  end
  if event.place == "network" then
    vim.list_extend(found, network(event, width))
  end
  if (event.note or "") ~= "" then
    warn("%s", visible.line(event.note).text)
  end
  if (event.narrowed or "") ~= "" then
    warn("%s", require("codecompanion.chat.question.no_always").warning(chat, event))
  end
  if (event.title .. event.body .. " " .. table.concat(event.hosts or {}, " ")):lower():find("%f[%w]xn%-%-") then
    warn("A host named xn--… contains non-ASCII letters")
  end
  if hidden > 0 then
    local what = hidden == 1 and "1 character that could mislead" or ("%d characters that could mislead"):format(hidden)
    warn("%s shown as <U+…>", what)
  end
  return found
end

---@param lines string[]
---@param room CodeCompanion.RowRoom
---@return integer
local function height(lines, room)
  local rows = 0
  for _, line in ipairs(lines) do
    rows = rows + (room.wraps and fit.height(line, room.width) or 1)
  end
  return rows
end

---@param chat CodeCompanion.Chat
---@param event table approval_requested event
---@return CodeCompanion.Block
function M.block(chat, event)
  local room, is_change = room_of(chat), rows_of_change.is_change(event)
  local keys_first = key_lines(chat, event, true, room.width)
  local above = height(warnings(chat, event, 1, room.width), room) + height(keys_first, room)
  room.rows = math.max(MIN_ROWS, room.rows - above + 1)
  local body, title
  if is_change then
    local rows, size = rows_of_change.of_event(event, room.rows)
    body, title = rows_of_change.layout(rows, room, with_key()), title_of_change(event, size, room.width)
  else
    body, title = body_of(event.body, room), title_of_call(event, room.width)
  end
  local lines, marks = { title }, { { row = 0, from = 0, to = #title, group = "CodeCompanionApproval" } }
  for _, warning in ipairs(warnings(chat, event, body.hidden, room.width)) do
    marks[#marks + 1] = { row = #lines, from = 0, to = #warning, group = "CodeCompanionWarning" }
    lines[#lines + 1] = warning
  end
  local function add(more, more_marks)
    for _, mark in ipairs(more_marks) do
      marks[#marks + 1] = vim.tbl_extend("force", mark, { row = mark.row + #lines })
    end
    vim.list_extend(lines, more)
  end
  if is_change or event.body ~= "" then
    add(body.lines, body.marks)
  end
  add(key_lines(chat, event, body.left_out > 0 or body.is_cut, room.width))
  local item = { approval = event.call_id, event = event, width = room.width }
  item.unsaved = unsaved_files.warning(chat, event)
  return { kind = "approval", lines = lines, marks = marks, item = item }
end

return M
