---Shows the changes of a live attachment that are sent before a message: one line below it, with the diff in a fold.

local api = vim.api
local blocks = require("codecompanion.chat.draw.blocks")
local draw = require("codecompanion.chat.draw.put_blocks")
local fit = require("codecompanion.text.fit")
local numbers = require("codecompanion.text.numbers")
local tool_call = require("codecompanion.chat.draw.tool_call")

local M = {}

local MARK = "↻ "
local MAX_LINES = 200
local INDENT = "  "
local HINT = "K show"
local MIN_GAP = 2

---@param item table
---@return string
local function size(item)
  return item.tokens > 0 and (" · %s tokens"):format(numbers.short(item.tokens)) or ""
end

---Return the line of the closed fold; the size, then the hint are omitted if space is short.
---@param item table
---@param width? integer Available cells
---@return { [1]: string, [2]: string }[]
local function chunks_of(item, width)
  local outcome = tool_call.shortened(item.cleared) or size(item)
  local head = "▸ " .. MARK
  local room = width and width - api.nvim_strwidth(head .. outcome)
  if room and room < api.nvim_strwidth(item.title) then
    room, outcome = width - api.nvim_strwidth(head), ""
  end
  local chunks = {
    { head, "CodeCompanionFoldMark" },
    { room and fit.squeeze(item.title, room) or item.title, "CodeCompanionTool" },
    { outcome, item.cleared and "CodeCompanionCleared" or "CodeCompanionToolSummary" },
  }
  local gap = width and width - fit.width(chunks) - #HINT or 0
  if gap >= MIN_GAP then
    chunks[4] = { (" "):rep(gap) .. HINT, "CodeCompanionHint" }
  end
  return width and fit.cut_chunks(chunks, width) or chunks
end

---@param line string
---@return string
local function group_of(line)
  local sign = line:sub(#INDENT + 1, #INDENT + 1)
  return sign == "+" and "CodeCompanionAdded" or sign == "-" and "CodeCompanionRemoved" or "CodeCompanionToolOutput"
end

---@param entry { message_id: string, title: string, body: string, tokens: integer, pinned?: boolean }
---@param cleared? boolean|integer
---@return CodeCompanion.Block
function M.block(entry, cleared)
  local item = {
    message_id = entry.message_id,
    title = blocks.one_line(entry.title),
    tokens = entry.tokens or 0,
    cleared = cleared or nil,
    pinned = entry.pinned,
  }
  local line = "▾ " .. MARK .. item.title .. size(item)
  local block = {
    kind = "updated",
    lines = { line },
    item = item,
    marks = { { row = 0, from = 0, to = #line, group = "CodeCompanionTool" } },
  }
  local body, key = blocks.body(entry.body, MAX_LINES), "updated:" .. entry.message_id
  return blocks.folded(block, body, group_of, key, function(width)
    return chunks_of(item, width)
  end)
end

---Draw an update below the last user message, although it precedes that message in the request.
---@param chat CodeCompanion.Chat
---@param event table file_updated event
function M.add(chat, event)
  if not chat.by_message[event.message_id] then -- otherwise it was in the log when the buffer was drawn
    draw.append(chat, M.block(event))
  end
end

return M
