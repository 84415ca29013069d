---Builds the card of a compaction: a title, and the summary with one fold per section (R-543). Text in, a block out.

local api = vim.api
local blocks = require("codecompanion.chat.draw.blocks")
local numbers = require("codecompanion.text.numbers")

local M = {}

---Prefix of an open card.
M.BAR = "▎ "

---Maximum number of lines outside the sections of a card; a card with more is drawn closed (it has a transcript in
---place of a summary).
local MAX_OPEN_LINES = 30

---Return the row ranges of a summary's sections, which the host has found.
---@param lines string[]
---@param told? CodeCompanion.Wire.SummarySection[] `line`: row of its heading, 0-based
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

---Return the size of a folded section: its number of list items, or of lines.
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

local TRIGGERS = { proactive = "automatic", reactive = "the window was full", manual = "manual" }
---Title of CoWork's summaries; their cards have their own wording for removed messages (R-453).
local COWORK_TITLE = "Session context compacted"

---@param event table compacted event or entry; fields that are 0 are omitted
---@return string
local function name_of(event)
  local name = blocks.one_line(event.title or "")
  return name == "" and "Summary" or name
end

---@param event table compacted event or entry; fields that are 0 are omitted
---@return boolean
local function is_cowork(event)
  return event.title == COWORK_TITLE
end

---@param event table compacted event or entry; fields that are 0 are omitted
---@return string
local function title(event)
  local parts = { name_of(event) }
  if is_cowork(event) then
    parts[#parts + 1] = numbers.counted(event.messages or 0, "message") .. " removed"
    local freed = math.max((event.tokens_before or 0) - (event.tokens_after or 0), 0)
    parts[#parts + 1] = numbers.short(freed) .. " tokens freed"
    parts[#parts + 1] = TRIGGERS[event.trigger] and event.trigger or nil
    return table.concat(parts, " · ")
  end
  if (event.messages or 0) > 0 then
    parts[2] = numbers.counted(event.messages, "message")
  end
  if (event.tokens_before or 0) > 0 then
    parts[#parts + 1] = ("%s → %s"):format(numbers.short(event.tokens_before), numbers.short(event.tokens_after or 0))
  end
  return table.concat(parts, " · ")
end

---Return the details that the title omits: author and reason of the summary, duration, savings.
---@param event table compacted event or entry; fields that are 0 are omitted
---@return string[]
local function facts(event)
  local by = blocks.one_line(event.summariser or "")
  local took = (event.duration_ms or 0) > 0 and " in " .. numbers.duration(event.duration_ms) or ""
  local why = by:match("^no model: (.+)")
  if vim.startswith(by, "no model") then
    by = "the plugin, without a model" .. by:sub(#"no model" + 1)
  end
  local written = why and ("- written from the log%s: %s"):format(took, why) or ("- written by %s%s"):format(by, took)
  local found = { by ~= "" and written or nil }
  found[#found + 1] = TRIGGERS[event.trigger] and "- trigger: " .. TRIGGERS[event.trigger] or nil
  local messages, cycles = event.messages or 0, event.cycles or { 0, 0 }
  if messages > 0 then
    local which = cycles[2] > 0 and (" (cycles %d to %d)"):format(math.max(cycles[1], 1), cycles[2]) or ""
    found[#found + 1] = ("- replaces %s%s"):format(numbers.counted(messages, "message"), which)
  end
  local before, after = event.tokens_before or 0, event.tokens_after or 0
  if before > 0 then
    local saved = numbers.short(math.max(before - after, 0))
    found[#found + 1] = ("- %s → %s tokens, %s saved"):format(numbers.short(before), numbers.short(after), saved)
  end
  return found
end

---Return all details of a card as Markdown.
---@param event table compacted event or entry
---@return { title: string, text: string, filetype: string, state: string }
function M.details(event)
  local lines, text = facts(event), event.summary or event.text or ""
  if text ~= "" then
    vim.list_extend(lines, #lines > 0 and { "", text } or { text })
  end
  return { title = name_of(event), text = table.concat(lines, "\n"), filetype = "markdown", state = "" }
end

---Add the folds of a card below its title: one per section, and one around all of them.
---@param block CodeCompanion.Block
---@param summary string[]
---@param parts table[]
---@param rows integer Height of the window; if the card is taller, its open sections are also folded
local function add_sections(block, summary, parts, rows)
  local id, shown = block.change.id or "", #summary
  for index, part in ipairs(parts) do
    local label = (part.number > 0 and part.number .. ". " or "") .. blocks.plain(part.title) .. amount(summary, part)
    local closed = not part.open
    shown = shown - (closed and part.last - part.first or 0)
    -- the blank line before the next section is part of the fold: closed sections form a list
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
  -- two lines suffice where the card would push the conversation off the screen
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

---Return the card of a compaction. It has no header, because neither side wrote it.
---@param event table
---@param rows integer Height of the smallest window that shows it
---@param heading fun(id: string?, title: string, width?: integer): { [1]: string, [2]: string }[] Returns the title of
---the closed card
---@return CodeCompanion.Block
function M.block(event, rows, heading)
  local text = title(event)
  local id = event.compaction_id or event.change_id
  local lines = { M.BAR .. text }
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
        text = function(width)
          local chunks = heading(id, text, width and width - api.nvim_strwidth("▸ "))
          table.insert(chunks, 1, { "▸ ", "CodeCompanionFoldMark" })
          return chunks
        end,
      },
    },
  }
  add_sections(block, summary, parts, is_cowork(event) and math.huge or rows) -- R-454: they are open in any window
  return block
end

return M
