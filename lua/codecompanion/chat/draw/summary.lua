---What the card of a compaction says: a title, and the summary with one fold per section (R-543). Text in, a block out.

local blocks = require("codecompanion.chat.draw.blocks")
local numbers = require("codecompanion.screen.numbers")

local M = {}

---More lines than this that no section folds (a transcript in a summary's place) are drawn as a closed card.
local MAX_OPEN_LINES = 30

---The sections of a summary, which the host has found, as rows.
---@param lines string[]
---@param told? CodeCompanion.Wire.SummarySection[] `line`: of its heading, 0-based
---@return { first: integer, last: integer, number: integer, title: string, open: boolean }[]
local function sections(lines, told)
  local found = {}
  for index, this in ipairs(told or {}) do
    local following = told[index + 1]
    found[index] = {
      first = this.line + 1,
      last = following and following.line or #lines,
      number = this.number or 0,
      title = blocks.one_line(this.title),
      open = this.open == true,
    }
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

---The folds of a card below its title: one per section, and one around them all.
---@param block CodeCompanion.Block
---@param summary string[]
---@param parts table[]
---@param rows integer Of the window
local function add_sections(block, summary, parts, rows)
  local id, shown = block.change.id or "", #summary
  for index, part in ipairs(parts) do
    local label = (part.number > 0 and part.number .. ". " or "") .. blocks.plain(part.title) .. amount(summary, part)
    local closed = not part.open
    shown = shown - (closed and part.last - part.first or 0)
    -- the blank line before the next section belongs to the fold: closed sections stand in a list
    block.folds[#block.folds + 1] = {
      first = part.first,
      last = part.last,
      closed = closed,
      marked = true,
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
---@param event table
---@param rows integer Of the smallest window that shows it
---@param heading fun(id: string?, title: string): { [1]: string, [2]: string }[] Of the closed card, as it is now
---@return CodeCompanion.Block
function M.block(event, rows, heading)
  local text = title(event)
  local id = event.compaction_id or event.change_id
  local lines = { "▾ " .. text }
  local summary = blocks.split(((event.summary or event.text or ""):gsub("%s+$", "")))
  vim.list_extend(lines, summary)
  local parts = sections(summary, event.sections)
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
          local chunks = heading(id, text)
          table.insert(chunks, 1, { "▸ ", "CodeCompanionFoldMark" })
          return chunks
        end,
      },
    },
  }
  add_sections(block, summary, parts, rows)
  return block
end

return M
