---Builds blocks, the content of a chat buffer, as plain tables: text in, lines and decorations out. No function changes
---a buffer.
---
---It defines the look of all blocks in one file, so that their signs, words and colours are easy to compare.
---
---@class CodeCompanion.Block
---@field kind string "user", "header", "text", "reasoning", "tool", "notice", "approval", "edited", "card"
---@field lines string[] Without the blank line after the block
---@field role? "user"|"llm" Set if the first line is a role header
---@field right? { [1]: string, [2]: string }[] Text at the right edge of the first line
---@field marks? CodeCompanion.BlockMark[] Colours, with offsets within the block
---@field eol? { row: integer, chunks: table, pos?: string, col?: integer }[] Virtual text, after the line by default
---@field markdown? { [1]: integer, [2]: integer } Offsets [first, last) to highlight as Markdown
---@field folds? { first: integer, last: integer, closed: boolean, text: fun(): table }[]
---@field item? table Data for `K` and for later updates: call_id, message_id, …
---@field virtual? { [1]: string, [2]: string }[] A line of virtual text instead of lines
---@field virtual_id? integer Its extmark, once drawn
---@field change? CodeCompanion.Change The change of the view that the block shows
---@field notice? CodeCompanion.Notice The notice that the block shows

---@class CodeCompanion.BlockMark
---@field row integer
---@field from integer
---@field to integer
---@field group string
---@field eol? boolean Extends to the edge of the window

local api = vim.api
local fit = require("codecompanion.text.fit")
local keys = require("codecompanion.chat.state.configured_keys")
local numbers = require("codecompanion.text.numbers")
local options = require("codecompanion.chat.state.chat_options")
local severity = require("codecompanion.severity")

local M = {}

---Text in the line of an item that is not sent, or not sent in full.
M.CLEARED = " · cleared"
M.LOST = " · since removed"
M.CUT = " · cut to %d %%"

---Text in the line of a reverted file change.
local REVERTED, UNSAVED = " · reverted", " · not saved"

local MIN_TITLE = 12
---Minimum number of cells between a line and the text at its right edge.
local MIN_GAP = 2
---Width in cells below which a line omits the words that its sign replaces.
local NARROW = 60
---Mark at the end of a line that continues on the next one.
M.CONTINUED = { { "↩", "CodeCompanionHint" } }
---Mark at the end of a truncated reply.
M.CUT_OFF = { { "  ✗ cut off", "CodeCompanionError" } }

---Maximum displayed length of a line: longer ones are shown in parts, because every chunk copies its line. The message
---itself is unchanged.
local MAX_PART_BYTES = 4096

local MAX_BODY_LINES = 400
local MAX_BODY_BYTES = 64 * 1024
local MAX_LINE_BYTES = 2000

local NOTICES = {
  [severity.INFO] = { "· ", "CodeCompanionHint" },
  [severity.WARN] = { "! ", "CodeCompanionWarning" },
  [severity.ERROR] = { "✗ ", "CodeCompanionError" },
}

---Outcomes of a stopped call that explain why it has no result.
local STOPPED = { interrupted = true, ["not answered"] = true }
local STATES = {
  running = { "… ", "CodeCompanionActivity" },
  ok = { "✓ ", "CodeCompanionToolOk" },
  error = { "✗ ", "CodeCompanionToolFailed" },
  cancelled = { "⊘ ", "CodeCompanionToolStopped" },
  rejected = { "⊘ ", "CodeCompanionToolStopped" },
}

---States of a call whose line shows why it has no result.
local HAS_REASON = { error = true, rejected = true }

---@param text string
---@return string[]
function M.split(text)
  return vim.split((text:gsub("\r\n", "\n")), "\n", { plain = true })
end

---Return a string with control bytes escaped, `^@` for NUL: a list of chunks or a Vim variable with a NUL would be a
---blob.
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
    -- An error in the user's function must not stop the drawing.
    local ok, written = pcall(display.token_count, tokens)
    text = ok and type(written) == "string" and M.one_line(written) or nil
  end
  return { { text or ("(%s tokens)"):format(numbers.short(tokens)), "CodeCompanionTokens" } }
end

---Return the block of a user message.
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

---Return the block with the model's header. It takes one row: if it does not fit, it omits the adapter, then the end of
---the model's name.
---@param chat CodeCompanion.Chat
---@param adapter string
---@param model string
---@return CodeCompanion.Block
function M.header(chat, adapter, model)
  local line = "## " .. options.header("llm", adapter, model)
  local cells = api.nvim_strwidth(line)
  local room = model ~= "" and not fit.certainly_fits(chat, cells) and fit.narrowest(chat) or cells
  if cells > room then
    line = "## " .. options.header("llm", nil, model)
    local kept = api.nvim_strwidth(model) - math.max(0, api.nvim_strwidth(line) - room)
    line = "## " .. options.header("llm", nil, fit.cut(model, math.max(1, kept)))
  end
  return { kind = "header", lines = { line }, role = "llm" }
end

---Split text into buffer lines; the first one already contains `width` bytes.
---@param text string
---@param width integer
---@return string[] lines
---@return integer[] continued Indexes of lines that continue on the next one
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

---Return the block of a finished reply, equal to the result of streaming it: without blank lines before and after.
---@param entry table
---@return CodeCompanion.Block
function M.reply(entry)
  local lines, continued = M.to_lines((entry.text:gsub("\r\n", "\n"):gsub("^%s*\n", "")), 0)
  while #lines > 1 and lines[#lines]:find("^%s*$") do
    lines[#lines] = nil
  end
  local block = { kind = "text", lines = lines, markdown = { 0, #lines }, eol = {} }
  local placement = require("codecompanion.chat.draw.placement_line").chunks(lines[1])
  block.eol[1] = placement and { row = 0, pos = "overlay", chunks = placement }
  for _, index in ipairs(continued) do
    block.eol[#block.eol + 1] = { row = index - 1, chunks = M.CONTINUED }
  end
  block.item = { message_id = entry.message_id, pinned = entry.pinned }
  if entry.cut then
    -- inline, because text after the line would be lost at the edge of the window
    block.eol[#block.eol + 1] = { row = #lines - 1, col = #lines[#lines], pos = "inline", chunks = M.CUT_OFF }
  end
  return block
end

---Return the first line of a fold of reasoning.
---@param count integer
---@return { [1]: string, [2]: string }[]
function M.reasoning_text(count)
  return {
    { "▸ ", "CodeCompanionFoldMark" },
    { ("reasoning · %d line%s"):format(count, count == 1 and "" or "s"), "CodeCompanionReasoning" },
  }
end

---Return the block of the model's finished reasoning.
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

---Keep the head and tail of a string that is too long to show (lesson 47).
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

---Return a fence that the text cannot close.
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

---Return why a call failed: the first line of its error, shortened, without the full stop and the file named in the
---title.
---@param text? string
---@param title string
---@return string
local function reason_of(text, title)
  local line = vim.trim(M.plain((vim.trim(text or ""):match("^[^\r\n]*"):gsub("%s+", " ")))):gsub("%.$", "")
  local file = title:match("%s(%S+)$")
  if file and #line > #file + 1 and vim.startswith(line, file) then
    line = line:sub(#file + 1):gsub("^:?%s+", "")
  elseif file then
    line = line:gsub("( file) " .. vim.pesc(file) .. "%f[.:,%s%z]", "%1", 1)
  end
  if #line > MAX_REASON_BYTES then
    line = line:sub(1, MAX_REASON_BYTES + vim.str_utf_end(line, MAX_REASON_BYTES)) .. "…"
  end
  return line
end

---Return the outcome of a call for its line, with the reason if it failed or was rejected.
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
  elseif status == "cancelled" and not STOPPED[summary] and not summary:find(status, 1, true) then
    summary = summary == "" and status or ("%s · %s"):format(status, summary)
  end
  return summary ~= "" and (" · " .. summary) or ""
end

---Return the note for a result that is sent shortened, or nil.
---@param cleared? boolean|integer A number: the percentage that is sent
---@return string?
function M.shortened(cleared)
  return type(cleared) == "number" and M.CUT:format(cleared) or cleared and M.CLEARED or nil
end

---Return the note on a file change that its file does not contain, as text and highlight group, or nil.
---@param change? table
---@return { [1]: string, [2]: string }?
function M.change_note(change)
  if change and change.reverted then
    return { REVERTED, "CodeCompanionUndone" }
  end
  return change and change.unsaved and { UNSAVED, "CodeCompanionToolSummary" } or nil
end

---Return the keys of a result that is sent shortened; they are shown at the right edge of its line while the cursor is
---on it (`draw/view_marks.lua`).
---@param cleared boolean|integer
---@return string
function M.cleared_keys(cleared)
  local show, restore = keys.keys("show_original", "n")[1], keys.keys("restore", "n")[1]
  local found = { show and show .. (type(cleared) == "number" and " whole" or " original") or nil }
  found[#found + 1] = restore and restore .. " restore" or nil
  return table.concat(found, " · ")
end

---Return the note of an item about its shortened form in the request, or nil if it is sent in full.
---@param item table
---@return string?
function M.note(item)
  return M.shortened(item.cleared) or item.lost and M.LOST or nil
end

---Return the line of a closed tool fold: mark, state, title, summary. In a narrow window the title is shortened first:
---the outcome of a call is more important than the end of a command.
---@param tool table
---@param width? integer Available cells
---@return { [1]: string, [2]: string }[]
function M.tool_chunks(tool, width)
  local state = STATES[tool.status] or STATES.running
  local outcome = M.shortened(tool.cleared) or summary_of(tool)
  local title = vim.trim(M.one_line(tool.title))
  local note = M.change_note(tool.change)
  if width then
    local room = width - api.nvim_strwidth("▸ " .. state[1] .. (note and note[1] or ""))
    local for_keys = tool.cleared and api.nvim_strwidth(M.cleared_keys(tool.cleared)) + MIN_GAP or 0
    if note and width < NARROW and api.nvim_strwidth(title .. outcome) > room then
      outcome = "" -- the size of a change that is not in the file is less important than its file
    end
    room = room - for_keys >= api.nvim_strwidth(outcome) + MIN_TITLE and room - for_keys or room
    if HAS_REASON[tool.status] and not tool.cleared then
      local width_of_title = api.nvim_strwidth(title)
      local function is_too_long()
        return width_of_title + api.nvim_strwidth(outcome) > room
      end
      if width >= NARROW and is_too_long() then
        outcome = outcome:match("^(.-)%.%s") or outcome
      elseif is_too_long() then
        outcome = outcome:gsub(" · [%d.,k]+ lines?$", "")
      end
      if is_too_long() then
        outcome = outcome:gsub("^ · failed: ", " · ") -- the sign already shows it
        outcome = outcome:gsub("^( · rejected): (.*)", width < NARROW and "%1" or " · %2")
      end
      if is_too_long() then
        outcome = outcome:match("^(.-)%.%s") or outcome
      end
      if api.nvim_strwidth(outcome) > room - MIN_TITLE then -- the title keeps up to half of the line
        outcome = fit.cut_words(outcome, room - math.min(width_of_title, math.floor(room / 2)))
      end
    else
      outcome = fit.cut(outcome, math.max(room - MIN_TITLE, math.floor(room / 2)))
    end
    title = fit.call(title, room - api.nvim_strwidth(outcome))
  end
  return {
    { "▸ ", "CodeCompanionFoldMark" },
    state,
    { title, "CodeCompanionTool" },
    { outcome, tool.cleared and "CodeCompanionCleared" or "CodeCompanionToolSummary" },
    note,
  }
end

---Return the content of a call's fold: its output in a fence, or the lines it changed in a file.
---@param tool table
---@return string[] lines
---@return CodeCompanion.BlockMark[] marks Rows are relative to these lines
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

---Return the block of a tool call: one line, with its output in a fold.
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
  local note = M.change_note(tool.change)
  if note then
    eol[#eol + 1] = { row = 0, col = #line, pos = "inline", chunks = { note } }
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

---Return the block of a one-sentence notice.
---@param text string
---@param level? CodeCompanion.Severity
---@param hint? string Suggested action
---@return CodeCompanion.Block
function M.notice(text, level, hint)
  local sign, group = unpack(NOTICES[level] or NOTICES[severity.INFO])
  local line = sign .. keys.in_message(M.one_line(text))
  local block = { kind = "notice", lines = { line }, marks = { { row = 0, from = 0, to = #line, group = group } } }
  if hint then
    block.eol = { { row = 0, col = #line, pos = "inline", chunks = { { hint, "CodeCompanionHint" } } } }
  end
  return block
end

---Add lines below the first line of a block, and fold the whole block.
---@param block CodeCompanion.Block
---@param body string[]
---@param group fun(line: string): string Returns the highlight group of a line
---@param key string Key of the fold
---@param text fun(width?: integer): { [1]: string, [2]: string }[] Returns the line of the closed fold
---@return CodeCompanion.Block
function M.folded(block, body, group, key, text)
  for _, line in ipairs(body) do
    block.lines[#block.lines + 1] = line
    block.marks[#block.marks + 1] = { row = #block.lines - 1, from = 0, to = #line, group = group(line) }
  end
  block.folds = { { first = 0, last = #block.lines - 1, key = key, closed = true, text = text } }
  return block
end

---Return the indented lines of a string for a block; lines beyond the limit are counted.
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
