---What a compaction looks like: the summary as a card with one fold per section (R-543); `runs` folds the old turns.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local blocks = require("codecompanion.chat.draw.blocks")
local buffer = require("codecompanion.chat.buffer.text")
local changes = require("codecompanion.chat.draw.changes")
local draw = require("codecompanion.chat.draw.put")
local marks = require("codecompanion.chat.buffer.marks")
local numbers = require("codecompanion.screen.numbers")
local runs = require("codecompanion.chat.draw.runs")

local M = {}

M.ns = api.nvim_create_namespace("codecompanion.chat.compaction")

---Sections that tell what goes on: they are open, the others are folded.
local OPEN = { [1] = true, [7] = true, [8] = true, [9] = true }
---More lines than this that no section folds (a transcript in a summary's place) are drawn as a closed card.
local MAX_OPEN_LINES = 30

---The number and title of a section heading: `## 7. Pending`, `7. **Pending**`, `## Ledger`.
---@param line string
---@param after integer Number of the section before
---@return integer? number 0 for a heading without one
---@return string? title
local function section(line, after)
  local number, title = line:match("^#+%s*(%d+)[.)]%s+(.+)$")
  if not number then
    number, title = line:match("^(%d+)%.%s+%*%*([^*]+)%*%*:?%s*$")
  end
  if not number then
    number, title = line:match("^%*%*(%d+)%.%s+([^*]+)%*%*:?%s*$")
  end
  if number then
    number = assert(tonumber(number))
    if number > after then
      return number, (title:gsub("%*", ""):gsub("[:%s]+$", ""))
    end
    return nil
  end
  -- the ledger below a model's prose stands on its own (`append_ledger`)
  title = line:match("^##+%s+(.+)$") or line:match("^%*%*(Ledger)%*%*")
  if title then
    return 0, (title:gsub("%*", ""))
  end
end

---@param lines string[]
---@return { first: integer, last: integer, number: integer, title: string }[]
local function sections(lines)
  local found, number = {}, 0
  for index, line in ipairs(lines) do
    local this, title = section(line, number)
    if this then
      if #found > 0 then
        found[#found].last = index - 1
      end
      found[#found + 1] = { first = index, last = #lines, number = this, title = title }
      number = this > 0 and this or number
    end
  end
  return found
end

---How much a folded section holds: its list items, or its lines.
---@param lines string[]
---@param part { first: integer, last: integer }
---@return string
local function amount(lines, part)
  local items, filled = 0, 0
  for index = part.first + 1, part.last do
    items = items + (lines[index]:find("^[-*+] ") and 1 or 0)
    filled = filled + (lines[index]:find("%S") and 1 or 0)
  end
  if items > 1 then
    return (" (%d)"):format(items)
  end
  return filled > 0 and (" · %d line%s"):format(filled, filled == 1 and "" or "s") or ""
end

local TRIGGERS = { proactive = "automatic", reactive = "window full", manual = "by hand" }
local STANDARD_TITLE = "Session context compacted"

---@param event table compacted event or entry, which leaves out what is 0
---@return string
local function title(event)
  local messages = event.messages or 0
  local count = ("%d message%s"):format(messages, messages == 1 and "" or "s")
  local name = blocks.one_line(event.title or "")
  local parts = { "Summary of " .. count }
  if name ~= "" and name ~= STANDARD_TITLE then
    parts = { name, count }
  end
  parts[#parts + 1] = ("%s → %s tokens"):format(
    numbers.short(event.tokens_before or 0),
    numbers.short(event.tokens_after or 0)
  )
  parts[#parts + 1] = TRIGGERS[event.trigger]
  local by = blocks.one_line(event.summariser or "")
  if vim.startswith(by, "no model") then
    parts[#parts + 1] = "without a model" .. by:sub(#"no model" + 1)
  elseif by ~= "" then
    parts[#parts + 1] = "by " .. by
  end
  parts[#parts + 1] = numbers.duration(event.duration_ms or 0)
  return table.concat(parts, " · ")
end

---Rows of the smallest window that shows the chat.
---@param chat CodeCompanion.Chat
---@return integer
local function smallest(chat)
  local rows = vim.o.lines
  for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
    rows = math.min(rows, api.nvim_win_get_height(win))
  end
  return rows
end

---The folds of a card below its title: one per section, and one around them all.
---@param block CodeCompanion.Block
---@param summary string[]
---@param parts table[]
---@param rows integer Of the window
local function add_sections(block, summary, parts, rows)
  local id, shown = block.change.id or "", #summary
  for index, part in ipairs(parts) do
    local label = (part.number > 0 and part.number .. ". " or "") .. blocks.plain(part.title) .. amount(summary, part)
    local closed = not OPEN[part.number]
    shown = shown - (closed and part.last - part.first or 0)
    -- the blank line before the next section belongs to the fold: closed sections stand in a list
    block.folds[#block.folds + 1] = {
      first = part.first,
      last = part.last,
      closed = closed,
      key = ("card:%s:%d"):format(id, index),
      text = function()
        return { { "▸ ", "CodeCompanionFoldMark" }, { label, "CodeCompanionCompacted" } }
      end,
    }
  end
  local words = ("%d line%s"):format(#summary, #summary == 1 and "" or "s")
  if #parts > 1 then
    words = ("%d sections · %s"):format(#parts, words)
  end
  -- two lines are enough where the card would push the conversation off the screen
  table.insert(block.folds, 2, {
    first = 1,
    last = #summary,
    closed = shown > rows / 2,
    key = ("card:%s:body"):format(id),
    text = function()
      return { { "▸ ", "CodeCompanionFoldMark" }, { words, "CodeCompanionCompacted" } }
    end,
  })
end

---The card of a compaction. Nobody said it: it has no header.
---@param chat CodeCompanion.Chat
---@param event table
---@return CodeCompanion.Block
function M.card(chat, event)
  local text = title(event)
  local id = event.compaction_id or event.change_id
  local lines = { "▾ " .. text }
  local summary = blocks.split(vim.trim(event.summary or event.text or ""))
  vim.list_extend(lines, summary)
  local parts = sections(summary)
  local loose = parts[1] and parts[1].first - 1 or #summary
  local folded = event.folded == true or loose > MAX_OPEN_LINES
  local block = {
    kind = "card",
    lines = lines,
    marks = { { row = 0, from = 0, to = #lines[1], group = "CodeCompanionCompacted" } },
    markdown = { 1, #lines },
    item = { compaction_id = id or "", summary_ids = event.summary_ids, speaker = true },
    change = { id = id, kind = "compacted", undone = event.undone == true, folded = folded, event = event },
    folds = {
      {
        first = 0,
        last = #lines - 1,
        closed = event.undone == true or folded,
        change = id,
        key = "card:" .. (id or ""),
        text = function()
          local chunks = changes.title(chat, id, text)
          table.insert(chunks, 1, { "▸ ", "CodeCompanionFoldMark" })
          return chunks
        end,
      },
    },
  }
  add_sections(block, summary, parts, smallest(chat))
  return block
end

---A header below which nothing stands yet goes: the provider compacted before it wrote, and the header comes again
---below the card.
---@param chat CodeCompanion.Chat
local function drop_bare_header(chat)
  if chat.tail_kind ~= "header" then
    return
  end
  local tail = anchors.position(chat, "tail")
  local mark = api.nvim_buf_get_extmarks(chat.bufnr, marks.roles, { tail - 1, -1 }, 0, { limit = 1 })[1]
  if mark then
    api.nvim_buf_del_extmark(chat.bufnr, marks.roles, mark[1])
    chat.roles[mark[1]] = nil
    buffer.remove(chat, mark[2], tail)
    chat.tail_kind = chat.before_header
    chat.header = false
  end
end

---The row of the header of the model that stands directly above `row`.
---@param chat CodeCompanion.Chat
---@param row integer
---@return integer?
local function header_above(chat, row)
  local at = { row - 1, 0 }
  local mark = row > 0 and api.nvim_buf_get_extmarks(chat.bufnr, marks.roles, at, at, { limit = 1 })[1]
  return mark and chat.roles[mark[1]] == "llm" and row - 1 or nil
end

---The header of the model above `row` when nothing but notices is between them: it heads nothing that is sent.
---@param chat CodeCompanion.Chat
---@param row integer
---@return integer? mark
---@return integer? header Its row
local function bare_header(chat, row)
  local found = api.nvim_buf_get_extmarks(chat.bufnr, marks.roles, { row - 1, -1 }, 0, { limit = 1 })
  local id, header = unpack(found[1] or {})
  if not id or chat.roles[id] ~= "llm" then
    return nil
  end
  for _, mark in ipairs(api.nvim_buf_get_extmarks(chat.bufnr, marks.items, { header, 0 }, { row - 1, -1 }, {})) do
    if chat.items[mark[1]] then
      return nil
    end
  end
  return id, header
end

---Put the card above the message that follows it in the next request; within a reply the header is said again.
---@param chat CodeCompanion.Chat
---@param row integer Where that message begins
---@param item table
---@param block CodeCompanion.Block
local function insert_card(chat, row, item, block)
  local header = header_above(chat, row)
  if item.speaker or header then
    draw.sequence(chat, header or row, { block })
    return
  end
  buffer.edit(chat, function()
    local mark, bare = bare_header(chat, row)
    if mark and bare then
      api.nvim_buf_del_extmark(chat.bufnr, marks.roles, mark)
      chat.roles[mark] = nil
      buffer.remove(chat, bare, bare + 1)
      row = row - 1
    end
    if row > 0 and api.nvim_buf_get_lines(chat.bufnr, row - 1, row, false)[1] ~= "" then
      buffer.insert(chat, row, { "" })
      row = row + 1
    end
    local again = blocks.header(chat.adapter, chat.model)
    local count = draw.sequence(chat, row, { block, again })
    buffer.remove(chat, row + count - 1, row + count)
  end)
end

---A compaction is done: draw the card where the summary stands in the next request, fold what it replaced.
---@param chat CodeCompanion.Chat
---@param event table
function M.compacted(chat, event)
  if chat.changes[event.compaction_id] then
    return -- the log had it already when the buffer was drawn
  end
  drop_bare_header(chat)
  local block = M.card(chat, event)
  local before = event.before or ""
  local row = before ~= "" and marks.message_row(chat, before)
  if row then
    insert_card(chat, row, chat.by_message[before][1], block)
  else
    draw.append(chat, block)
    chat.header = false
  end
  runs.take_out(chat, event.removed or {}, "compacted")
  changes.supersede(chat)
end

return M
