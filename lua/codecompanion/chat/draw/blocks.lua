---What is drawn, as plain tables: text in, lines and decorations out. Nothing here touches a buffer.
---
---Longer than other files because the look of everything stands in one: signs, words and colours are compared there.
---
---@class CodeCompanion.Block
---@field kind string "user", "header", "text", "reasoning", "tool", "notice", "approval", "edited", "card"
---@field lines string[] Without the blank line after the block
---@field role? "user"|"llm" The first line is a role header
---@field right? { [1]: string, [2]: string }[] Text at the right end of the first line
---@field marks? CodeCompanion.BlockMark[] Colours, offsets within the block
---@field eol? { row: integer, chunks: table, pos?: string, col?: integer }[] Virtual text, after the line by default
---@field markdown? { [1]: integer, [2]: integer } Offsets [first, last) to be painted as Markdown
---@field folds? { first: integer, last: integer, closed: boolean, text: fun(): table }[]
---@field item? table What `K` shows and what is addressed later: call_id, message_id, …
---@field virtual? { [1]: string, [2]: string }[] A line of virtual text instead of lines
---@field virtual_id? integer Its extmark, once it is drawn
---@field change? CodeCompanion.Change The change of the view that it tells of
---@field notice? CodeCompanion.Notice What it says, as it is remembered

---@class CodeCompanion.BlockMark
---@field row integer
---@field from integer
---@field to integer
---@field group string
---@field eol? boolean Up to the edge of the window

local api = vim.api
local fit = require("codecompanion.text.fit")
local keys = require("codecompanion.chat.state.configured_keys")
local numbers = require("codecompanion.text.numbers")
local options = require("codecompanion.chat.state.chat_options")
local severity = require("codecompanion.severity")

local M = {}

---What the line of a cleared result says, and of one that was cut so that it fits.
M.CLEARED = " · cleared"
M.LOST = " · taken out since"
M.CUT = " · cut to %d %%"

---What the line of a reverted change of a file says.
M.REVERTED = " · reverted"

local MIN_TITLE = 12
---Cells between a line and what stands at its right end.
local MIN_GAP = 2
---Below this many cells a line leaves out what its sign says.
local NARROW = 60
---What stands after a line that goes on in the next one.
M.CONTINUED = { { "↩", "CodeCompanionHint" } }
---What stands after a reply that ended early.
M.CUT_OFF = { { "  ✗ cut off", "CodeCompanionError" } }

---A line longer than this is shown in parts (the message itself is not changed): every chunk copies its line.
local MAX_PART_BYTES = 4096

local MAX_BODY_LINES = 400
local MAX_BODY_BYTES = 64 * 1024
local MAX_LINE_BYTES = 2000

local NOTICES = {
  [severity.INFO] = { "· ", "CodeCompanionHint" },
  [severity.WARN] = { "! ", "CodeCompanionWarning" },
  [severity.ERROR] = { "✗ ", "CodeCompanionError" },
}

local STATES = {
  running = { "… ", "CodeCompanionActivity" },
  ok = { "✓ ", "CodeCompanionToolOk" },
  error = { "✗ ", "CodeCompanionToolFailed" },
  cancelled = { "⊘ ", "CodeCompanionToolStopped" },
  rejected = { "⊘ ", "CodeCompanionToolStopped" },
}

---Calls whose line says why they have no result.
local HAS_REASON = { error = true, rejected = true }

---@param text string
---@return string[]
function M.split(text)
  return vim.split((text:gsub("\r\n", "\n")), "\n", { plain = true })
end

---Control bytes as they are drawn, `^@` for NUL: a list of chunks or a variable of Vim's with a NUL in it is a blob.
---@param text string
---@return string
function M.plain(text)
  return (
    text:gsub("[%z\1-\8\11-\31\127]", function(byte)
      return "^" .. string.char((byte:byte() + 64) % 128)
    end)
  )
end

---@param text string
---@return string
function M.one_line(text)
  return M.plain((text:gsub("%s*[\r\n]+%s*", " ")))
end

---@param tokens? integer
---@return { [1]: string, [2]: string }[]?
function M.tokens(tokens)
  local display = options.display()
  if not display.show_token_count or not tokens or tokens <= 0 then
    return nil
  end
  local text
  if display.token_count then
    -- A function of the user's that fails must not stop the drawing.
    local ok, written = pcall(display.token_count, tokens)
    text = ok and type(written) == "string" and M.one_line(written) or nil
  end
  return { { text or ("(%s tokens)"):format(numbers.short(tokens)), "CodeCompanionTokens" } }
end

---A message of the user's.
---@param text string
---@param item table
---@param right? table
---@return CodeCompanion.Block
function M.user(text, item, right)
  local lines = { "## " .. options.header("user") }
  vim.list_extend(lines, M.split(text))
  item.own, item.speaker = true, true
  return { kind = "user", lines = lines, role = "user", right = right, markdown = { 1, #lines }, item = item }
end

---The header of the model's side.
---@param adapter string
---@param model string
---@return CodeCompanion.Block
function M.header(adapter, model)
  return { kind = "header", lines = { "## " .. options.header("llm", adapter, model) }, role = "llm" }
end

---Cut text into buffer lines; `width` bytes stand already on the first one.
---@param text string
---@param width integer
---@return string[] lines
---@return integer[] continued Indexes of lines that go on in the next one
function M.to_lines(text, width)
  local lines, continued = {}, {}
  for _, line in ipairs(vim.split(text, "\n", { plain = true })) do
    while width + #line > MAX_PART_BYTES do
      local cut = math.max(0, MAX_PART_BYTES - width)
      if cut > 0 then
        cut = cut + vim.str_utf_end(line, cut)
      end
      lines[#lines + 1] = line:sub(1, cut)
      continued[#continued + 1] = #lines
      line = line:sub(cut + 1)
      width = 0
    end
    lines[#lines + 1] = line
    width = 0
  end
  return lines, continued
end

---A finished reply, as it is when it has arrived piece by piece: without blank lines before and after.
---@param entry table
---@return CodeCompanion.Block
function M.reply(entry)
  local lines, continued = M.to_lines((entry.text:gsub("\r\n", "\n"):gsub("^%s*\n", "")), 0)
  while #lines > 1 and lines[#lines]:find("^%s*$") do
    lines[#lines] = nil
  end
  local block = { kind = "text", lines = lines, markdown = { 0, #lines }, eol = {} }
  for _, index in ipairs(continued) do
    block.eol[#block.eol + 1] = { row = index - 1, chunks = M.CONTINUED }
  end
  block.item = { message_id = entry.message_id, pinned = entry.pinned }
  if entry.cut then
    -- within the line: what follows it would be lost at the edge of the window
    block.eol[#block.eol + 1] = { row = #lines - 1, col = #lines[#lines], pos = "inline", chunks = M.CUT_OFF }
  end
  return block
end

---The first line of a fold of reasoning.
---@param count integer
---@return { [1]: string, [2]: string }[]
function M.reasoning_text(count)
  return {
    { "▸ ", "CodeCompanionFoldMark" },
    { ("reasoning · %d line%s"):format(count, count == 1 and "" or "s"), "CodeCompanionReasoning" },
  }
end

---The model's reasoning, finished.
---@param text string
---@param message_id? string
---@return CodeCompanion.Block
function M.reasoning(text, message_id)
  local lines = { "▾ reasoning" }
  vim.list_extend(lines, M.split(vim.trim(text)))
  local marks = {}
  for row = 0, #lines - 1 do
    marks[#marks + 1] = { row = row, from = 0, to = #lines[row + 1], group = "CodeCompanionReasoning" }
  end
  local count = #lines - 1
  return {
    kind = "reasoning",
    lines = lines,
    marks = marks,
    item = message_id and { message_id = message_id, reasoning = true } or nil,
    folds = {
      {
        first = 0,
        last = count,
        key = message_id and ("reasoning:" .. message_id) or nil,
        closed = options.display().fold_reasoning,
        text = function()
          return M.reasoning_text(count)
        end,
      },
    },
  }
end

---Keep the head and the tail of a text that is too long to be shown (lesson 47).
---@param text string
---@return string[]
local function bounded(text)
  if #text > MAX_BODY_BYTES then
    local half = MAX_BODY_BYTES / 2
    local left_out = #text - 2 * half
    local note = ("\n… %s more · K shows all …\n"):format(numbers.counted(left_out, "byte"))
    text = text:sub(1, half) .. note .. text:sub(-half)
  end
  local lines = M.split(text)
  if lines[#lines] == "" then
    lines[#lines] = nil
  end
  if #lines > MAX_BODY_LINES then
    local half = MAX_BODY_LINES / 2
    local short = vim.list_slice(lines, 1, half)
    short[#short + 1] = ("… %s more · K shows all …"):format(numbers.counted(#lines - 2 * half, "line"))
    lines = vim.list_extend(short, lines, #lines - half + 1)
  end
  for index, line in ipairs(lines) do
    if #line > MAX_LINE_BYTES then
      lines[index] = line:sub(1, MAX_LINE_BYTES + vim.str_utf_end(line, MAX_LINE_BYTES)) .. " …"
    end
  end
  return lines
end

---A fence that the text cannot close.
---@param text string
---@return string
function M.fence(text)
  local longest = 2
  for ticks in text:gmatch("```+") do
    longest = math.max(longest, #ticks)
  end
  return ("`"):rep(longest + 1)
end

local MAX_REASON_BYTES = 200

---Why a call failed: the first line of its error, without the full stop and the file that the title names, bounded.
---@param text? string
---@param title string
---@return string
local function reason_of(text, title)
  local line = vim.trim(M.plain((vim.trim(text or ""):match("^[^\r\n]*"):gsub("%s+", " ")))):gsub("%.$", "")
  local file = title:match("%s(%S+)$")
  if file and #line > #file + 1 and vim.startswith(line, file) then
    line = line:sub(#file + 1):gsub("^:?%s+", "")
  end
  if #line > MAX_REASON_BYTES then
    line = line:sub(1, MAX_REASON_BYTES + vim.str_utf_end(line, MAX_REASON_BYTES)) .. "…"
  end
  return line
end

---The outcome of a call as its line shows it: a call that failed or was rejected says why.
---@param tool table
---@return string
local function summary_of(tool)
  local summary, status = M.one_line(tool.summary or ""), tool.status
  if status == "error" and (summary == "" or summary == "failed") then
    local reason = reason_of(tool.preview, tool.title)
    summary = reason == "" and "failed" or "failed: " .. reason
  elseif status == "error" and not vim.startswith(summary, "failed") then
    summary = "failed: " .. summary
  elseif status == "rejected" and not vim.startswith(summary, status) then
    summary = summary == "" and status or ("%s: %s"):format(status, summary)
  elseif status == "cancelled" and summary ~= "interrupted" and not summary:find(status, 1, true) then
    summary = summary == "" and status or ("%s · %s"):format(status, summary)
  end
  return summary ~= "" and (" · " .. summary) or ""
end

---What the line of a result says that is sent shorter than it was written, nil for one that is not.
---@param cleared? boolean|integer A number: so many percent of it are sent
---@return string?
function M.shortened(cleared)
  return type(cleared) == "number" and M.CUT:format(cleared) or cleared and M.CLEARED or nil
end

---The keys of a result that is sent shorter than it was written: its line has room for them at its right end, and shows
---them while the cursor is on it (`draw/view_marks.lua`).
---@param cleared boolean|integer
---@return string
function M.cleared_keys(cleared)
  local show, restore = keys.keys("show_original", "n")[1], keys.keys("restore", "n")[1]
  local found = { show and show .. (type(cleared) == "number" and " whole" or " original") or nil }
  found[#found + 1] = restore and restore .. " restore" or nil
  return table.concat(found, " · ")
end

---What the line of an item says of what is sent of it, nil where that is what was drawn.
---@param item table
---@return string?
function M.note(item)
  return M.shortened(item.cleared) or item.lost and M.LOST or nil
end

---The line of a closed tool fold: mark, state, title, summary. Where the window is too narrow the title gives way: what
---came of a call is worth more than the middle of a command.
---@param tool table
---@param width? integer Cells there are
---@return { [1]: string, [2]: string }[]
function M.tool_chunks(tool, width)
  local state = STATES[tool.status] or STATES.running
  local outcome = M.shortened(tool.cleared) or summary_of(tool)
  local title = vim.trim(M.one_line(tool.title))
  local reverted = tool.change and tool.change.reverted and M.REVERTED or ""
  if width then
    local room = width - api.nvim_strwidth("▸ " .. state[1] .. reverted)
    local for_keys = tool.cleared and api.nvim_strwidth(M.cleared_keys(tool.cleared)) + MIN_GAP or 0
    room = room - for_keys >= api.nvim_strwidth(outcome) + MIN_TITLE and room - for_keys or room
    if HAS_REASON[tool.status] and not tool.cleared then
      local width_of_title = api.nvim_strwidth(title)
      if width < NARROW and width_of_title + api.nvim_strwidth(outcome) > room then
        outcome = outcome:gsub("^ · failed: ", " · ") -- its sign says so
      end
      if api.nvim_strwidth(outcome) > room - MIN_TITLE then -- the title keeps up to half of the line
        outcome = fit.cut_words(outcome, room - math.min(width_of_title, math.floor(room / 2)))
      end
    else
      outcome = fit.cut(outcome, math.max(room - MIN_TITLE, math.floor(room / 2)))
    end
    title = fit.squeeze(title, room - api.nvim_strwidth(outcome))
  end
  return {
    { "▸ ", "CodeCompanionFoldMark" },
    state,
    { title, "CodeCompanionTool" },
    { outcome, tool.cleared and "CodeCompanionCleared" or "CodeCompanionToolSummary" },
    reverted ~= "" and { reverted, "CodeCompanionUndone" } or nil,
  }
end

---What the fold of a call has in it: its output in a fence, or the lines that it changed in a file.
---@param tool table
---@return string[] lines
---@return CodeCompanion.BlockMark[] marks Rows within these lines
local function body_of(tool)
  if not tool.preview or tool.preview == "" then
    return {}, {}
  end
  local rows = tool.change and require("codecompanion.changes.change_rows").of_diff(tool.preview) or {}
  if #rows > 0 then
    local room = { width = MAX_LINE_BYTES, rows = MAX_BODY_LINES, wraps = false }
    local shown = require("codecompanion.changes.change_rows").layout(rows, room)
    return shown.lines, shown.marks
  end
  local fence, marks = M.fence(tool.preview), {}
  local lines = vim.list_extend({ fence }, bounded(tool.preview))
  lines[#lines + 1] = fence
  for row, line in ipairs(lines) do
    marks[row] = { row = row - 1, from = 0, to = #line, group = "CodeCompanionToolOutput" }
  end
  return lines, marks
end

---A tool call: one line, and its output in a fold.
---@param tool table title, summary, status, preview, cleared, call_id, message_id, name, change
---@return CodeCompanion.Block
function M.tool(tool)
  local body, body_marks = body_of(tool)
  local title = (#body > 0 and "▾ " or "▸ ") .. vim.trim(M.one_line(tool.title))
  local line = title .. summary_of(tool)
  local lines, marks =
    { line }, {
      { row = 0, from = 0, to = #"▸", group = "CodeCompanionFoldMark" },
      { row = 0, from = #"▸ ", to = #title, group = "CodeCompanionTool" },
      { row = 0, from = #title, to = #line, group = "CodeCompanionToolSummary" },
    }
  if #body > 0 then
    vim.list_extend(lines, body)
    for _, mark in ipairs(body_marks) do
      marks[#marks + 1] = vim.tbl_extend("force", mark, { row = mark.row + 1 })
    end
  end
  local state = { STATES[tool.status] or STATES.running }
  local eol = { { row = 0, col = #"▸ ", pos = "inline", chunks = state } }
  local shortened = M.shortened(tool.cleared)
  if shortened then
    eol[2] = { row = 0, col = #line, pos = "inline", chunks = { { shortened, "CodeCompanionCleared" } } }
  end
  if tool.change and tool.change.reverted then
    eol[#eol + 1] = { row = 0, col = #line, pos = "inline", chunks = { { M.REVERTED, "CodeCompanionUndone" } } }
  end
  local block = { kind = "tool", lines = lines, marks = marks, eol = eol, item = tool }
  if #lines > 1 then
    block.folds = {
      {
        first = 0,
        last = #lines - 1,
        key = tool.message_id and ("tool:" .. tool.message_id) or nil,
        closed = options.display().fold_tools,
        text = function(width)
          return M.tool_chunks(tool, width)
        end,
      },
    }
  end
  return block
end

---One sentence.
---@param text string
---@param level? CodeCompanion.Severity
---@param hint? string What can be done about it
---@return CodeCompanion.Block
function M.notice(text, level, hint)
  local sign, group = unpack(NOTICES[level] or NOTICES[severity.INFO])
  local line = sign .. M.one_line(text)
  local block = { kind = "notice", lines = { line }, marks = { { row = 0, from = 0, to = #line, group = group } } }
  if hint then
    block.eol = { { row = 0, col = #line, pos = "inline", chunks = { { hint, "CodeCompanionHint" } } } }
  end
  return block
end

---Put lines below the first one of a block, and all of it into a fold that is closed.
---@param block CodeCompanion.Block
---@param body string[]
---@param group fun(line: string): string Of a line, by what it says
---@param key string Of the fold
---@param text fun(width?: integer): { [1]: string, [2]: string }[] The line of the closed fold
---@return CodeCompanion.Block
function M.folded(block, body, group, key, text)
  for _, line in ipairs(body) do
    block.lines[#block.lines + 1] = line
    block.marks[#block.marks + 1] = { row = #block.lines - 1, from = 0, to = #line, group = group(line) }
  end
  block.folds = { { first = 0, last = #block.lines - 1, key = key, closed = true, text = text } }
  return block
end

---The lines of a text below the first line of a block, indented; what is too much is counted.
---@param text string
---@param most integer
---@return string[]
function M.body(text, most)
  local lines = text ~= "" and M.split(text) or {}
  local more = #lines - most
  if more > 0 then
    lines = vim.list_slice(lines, 1, most)
    lines[#lines + 1] = ("… %d more · K shows all"):format(more)
  end
  return vim.tbl_map(function(line)
    return "  " .. M.plain(line)
  end, lines)
end

return M
