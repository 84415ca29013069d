---`/context`: shows which code would be sent with a question, and why; `K` below a message shows which code was sent.
---
---Nothing is sent. A piece can be excluded from the next question or pinned for the chat; one key opens its location.

local api = vim.api
local fit = require("codecompanion.text.fit")
local float = require("codecompanion.screen.float")
local loading = require("codecompanion.chat.lists.loading_list")
local numbers = require("codecompanion.text.numbers")
local say = require("codecompanion.say")
local scratch = require("codecompanion.screen.scratch_buffer")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")

local M = {}

local WIDEST = 120
local NARROW = 50
local MARKS = { ["in"] = "✓", out = " ", ["left out"] = "✗", pinned = "⚑" }
local ABOVE = "↑"
local CHOSEN = {
  ["left out"] = "left out, starting with the next question",
  pinned = "pinned, starting with the next question",
}
---Short forms of the reasons, for narrow rows.
local SHORT = {
  [CHOSEN["left out"]] = "left out",
  [CHOSEN.pinned] = "pinned",
  ["you left it out"] = "left out",
  ["already sent: not sent again"] = "already sent",
  ["the budget is used up"] = "no room",
  ["not one line of it fits into the budget"] = "no room",
  ["it is large, and parts of it match better"] = "too large",
  ["it is too short to be useful"] = "too short",
  ["not searched for"] = "not searched",
}
local GROUPS = {
  out = "CodeCompanionHint",
  ["left out"] = "CodeCompanionCleared",
  pinned = "CodeCompanionPinned",
}

---@class CodeCompanion.CodeRow
---@field path string
---@field start integer
---@field what string
---@field source string
---@field score number
---@field tokens integer
---@field state "in"|"out"|"left out"|"pinned"
---@field why string
---@field is_above? boolean The model still has it from an earlier question
---@field kind? string
---@field name? string
---@field end? integer
---@field anchor? string A line that identifies a piece without a name
---@field anchor_at? integer
---@field chosen_at? integer

---Open the location named in a line (`path:10-40`), at its beginning or after the mark and figures of a row.
---@param path string
---@param line? integer
---@param root? string
local function open(path, line, root)
  if path == "" then
    return say.hint("No file location on this line.")
  end
  local whole = vim.fs.normalize(path, { expand_env = false })
  if root and not vim.startswith(whole, "/") then
    whole = vim.fs.joinpath(root, whole)
  end
  if vim.fn.filereadable(whole) == 0 then
    return say.hint(("No file %s"):format(path))
  end
  whole = require("codecompanion.system.literal_paths").absolute(whole)
  require("codecompanion.screen.open_file").file(whole, line and line > 0 and line or nil)
end

---Open the location named by a line of the fold.
---@param line string
function M.go_to(line)
  local path, first = line:match("^%s*(.-):(%d+)%-%d+ ")
  path = path or line:match("^%s*(.-) ·")
  if not path or vim.startswith(vim.trim(line), "▾") or vim.startswith(vim.trim(line), "▸") then
    return say.hint("No file location here; K lists the snippets, zo opens the fold.")
  end
  open(path, tonumber(first))
end

---Return the mark of a row: sent code and code from earlier questions have different marks.
---@param row CodeCompanion.CodeRow
---@return string
local function mark_of(row)
  return row.is_above and row.state == "in" and ABOVE or MARKS[row.state]
end

---Return the location of a row, longest form first: the file name and the line numbers are kept longest.
---@param row CodeCompanion.CodeRow
---@return string[]
local function places(row)
  local found = { row.what }
  if not vim.startswith(row.what, row.path) then
    return found
  end
  local rest = row.what:sub(#row.path + 1)
  local parts = vim.split(row.path, "/", { plain = true })
  for first = 2, #parts do
    found[#found + 1] = "…/" .. table.concat(parts, "/", first) .. rest
  end
  found[#found + 1] = parts[#parts] .. (rest:match("^:%d+%-%d+") or "")
  return found
end

---Return the text of a row, longest form first: the reason is shortened before the location.
---@param row CodeCompanion.CodeRow
---@param short string Short form of the reason
---@return fun(): string? source
---@return string? what
local function wordings(row, short)
  return coroutine.wrap(function()
    for _, source in ipairs({ ("%-7s "):format(row.source), "" }) do
      coroutine.yield(source, row.what .. (row.why ~= "" and " · " .. row.why or ""))
      for _, place in ipairs(places(row)) do
        coroutine.yield(source, place .. short)
      end
    end
  end)
end

---@param row CodeCompanion.CodeRow
---@param width integer
---@return string
local function row_text(row, width)
  local mark = mark_of(row)
  if row.path == "" then -- a map, the architecture or memories: all of it is sent
    local why = row.why ~= "" and " · " .. row.why or ""
    return fit.cut(("%s     %5s %s%s"):format(mark, numbers.short(row.tokens), row.what, why), width)
  end
  local score = row.score >= 0.995 and "1.0" or ("%.2f"):format(row.score):gsub("^0", "")
  local figures = ("%s %s %5s "):format(mark, score, numbers.short(row.tokens))
  local room = width - api.nvim_strwidth(figures)
  local short = row.why ~= "" and " · " .. (SHORT[row.why] or row.why) or ""
  for source, what in wordings(row, short) do
    if api.nvim_strwidth(source .. what) <= room then
      return figures .. source .. what
    end
  end
  local shown = places(row)
  local place = shown[#shown]
  local fits = api.nvim_strwidth(place) <= room
  return figures .. (fits and fit.cut(place .. short, room) or fit.squeeze(place, room))
end

---Return the page as lines, and the row on each line.
---@param report table
---@param width integer
---@return string[] lines
---@return table<integer, CodeCompanion.CodeRow> rows
---@return integer head Number of lines above the rows
function M.lines(report, width)
  local lines, rows = {}, {}
  for _, sentence in ipairs(report.head) do
    vim.list_extend(lines, fit.wrap(sentence, width))
  end
  local head = #lines
  if #report.rows == 0 then
    lines[#lines + 1] = "No code was found."
  else
    lines[#lines + 1] = ""
  end
  for _, row in ipairs(report.rows) do
    lines[#lines + 1] = row_text(row, width)
    rows[#lines] = row
  end
  if (report.text or "") ~= "" then
    vim.list_extend(lines, { "", report.text_title, "" })
    vim.list_extend(lines, vim.split(report.text, "\n", { plain = true }))
  end
  return lines, rows, head
end

---@class CodeCompanion.CodePage
---@field report table
---@field rows table<integer, CodeCompanion.CodeRow>

---@param bufnr integer
---@param page CodeCompanion.CodePage
local function draw(bufnr, page)
  local win = vim.fn.bufwinid(bufnr)
  local width = win ~= -1 and api.nvim_win_get_width(win) or math.min(vim.o.columns - 2, WIDEST)
  local lines, head
  lines, page.rows, head = M.lines(page.report, width)
  scratch.write(bufnr, lines)
  scratch.colour(bufnr, "codecompanion.chat.gathered", function(_, number)
    local row = page.rows[number]
    return row and GROUPS[row.state] or number <= head and "CodeCompanionTokens" or nil
  end)
end

---@param chat CodeCompanion.Chat
---@param bufnr integer
---@param page CodeCompanion.CodePage
---@param row CodeCompanion.CodeRow
---@param state "left out"|"pinned"
local function choose(chat, bufnr, page, row, state)
  local is_back = row.state == state
  local choice = is_back and "" or state:gsub(" ", "_")
  local payload = { choice = choice }
  for _, field in ipairs({ "path", "start", "end", "kind", "name", "anchor", "anchor_at" }) do
    payload[field] = row[field]
  end
  if (row.chosen_at or 0) > 0 then
    payload.start = row.chosen_at -- the definition has moved since
  end
  session.request(chat, "choose_code", payload, function(sentence)
    say.line(sentence)
    row.state = is_back and "in" or state
    row.why = CHOSEN[row.state] or "" -- the sums above belong to the question shown
    if api.nvim_buf_is_valid(bufnr) then
      draw(bufnr, page)
    end
  end)
end

---@param chat CodeCompanion.Chat
---@param report table
local function show(chat, report)
  local columns = math.min(vim.o.columns - 2, WIDEST)
  local page = { report = report }
  local lines
  lines, page.rows = M.lines(report, columns)
  local hints = #report.rows > 0 and { "<CR> open", "q close" } or { "q close" }
  if report.can_choose and #report.rows > 0 then
    hints = { "<CR> open", columns < NARROW and "x out" or "x leave out", "p pin", "q close" }
  end
  local bufnr, win = float.open({
    title = report.title,
    lines = lines,
    width = columns,
    max_width = WIDEST,
    wrap = false,
    footer = hints,
    on_resize = function(resized)
      draw(resized, page)
    end,
  })
  vim.bo[bufnr].filetype = "codecompanion_gathered"
  draw(bufnr, page)
  vim.wo[win].cursorline = true
  local first = vim.tbl_keys(page.rows)
  api.nvim_win_set_cursor(win, { #first > 0 and math.min(unpack(first)) or 1, 0 })
  local on = scratch.keys(bufnr, win, function(line)
    return page.rows[line]
  end)
  on({ "<CR>", "gf" }, "Open the location", function(row)
    scratch.close(win)
    open(row.path, row.start, report.root)
  end)
  if report.can_choose then
    local function can(row)
      return row.path ~= "" or say.hint("Only snippets of files can be left out or pinned.")
    end
    on("x", "Leave the snippet out of the next question, or include it again", function(row)
      if can(row) then
        choose(chat, bufnr, page, row, "left out")
      end
    end)
    on("p", "Pin the snippet in this chat, or unpin it", function(row)
      if can(row) then
        choose(chat, bufnr, page, row, "pinned")
      end
    end)
  end
end

---Request a report and show it, unless the user has started something else meanwhile.
---@param chat CodeCompanion.Chat
---@param verb "show_gathered"|"preview_code"
---@param payload table
---@param refuse? fun(reason: string)
local function ask(chat, verb, payload, refuse)
  local list = { what = "snippets", key = table.concat({ chat.id, payload.item or "", payload.question or "" }, "\n") }
  loading.list(list, function(done)
    session.request(chat, verb, payload, done, function(reason)
      done(nil)
      if refuse then
        return refuse(reason)
      end
      say.chat(chat, reason, severity.ERROR)
    end)
  end, function(report)
    show(chat, report)
  end)
end

---Show the code gathered for a sent message.
---@param chat CodeCompanion.Chat
---@param message_id string
---@param tokens integer Size of the message as the chat shows it
function M.shown(chat, message_id, tokens)
  ask(chat, "show_gathered", { item = message_id, tokens = tokens })
end

---Show the code that would be gathered for a question; by default for the text of the input, or the newest message.
---@param chat CodeCompanion.Chat
---@param question string
---@param refuse? fun(reason: string)
function M.preview(chat, question, refuse)
  local snapshot = require("codecompanion.editor_context.snapshot").snapshot()
  ask(chat, "preview_code", { question = question, snapshot = snapshot }, refuse)
end

return M
