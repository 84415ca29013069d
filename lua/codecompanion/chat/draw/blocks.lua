---Builds blocks, the content of a chat buffer, as plain tables: text in, lines and decorations out. No function changes
---a buffer. `tool_call.lua` builds those of tool calls.
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

---Mark at the end of a line that continues on the next one.
M.CONTINUED = { { "↩", "CodeCompanionHint" } }
---Mark at the end of a truncated reply.
M.CUT_OFF = { { "  ✗ cut off", "CodeCompanionError" } }

---Maximum displayed length of a line: longer ones are shown in parts, because every chunk copies its line. The message
---itself is unchanged.
local MAX_PART_BYTES = 4096

local NOTICES = {
  [severity.INFO] = { "· ", "CodeCompanionHint" },
  [severity.WARN] = { "! ", "CodeCompanionWarning" },
  [severity.ERROR] = { "✗ ", "CodeCompanionError" },
}

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
