---What a compaction looks like: old turns folded, the summary as a card with one fold per section (R-543).

local api = vim.api
local blocks = require("codecompanion.chat.blocks")
local buffer = require("codecompanion.chat.buffer")
local draw = require("codecompanion.chat.draw")
local folds = require("codecompanion.chat.folds")
local options = require("codecompanion.chat.options")
local status = require("codecompanion.chat.status")

local M = {}

M.ns = api.nvim_create_namespace("codecompanion.chat.compaction")

---Sections that tell what goes on: they are open, the others are folded.
local OPEN = { [1] = true, [7] = true, [8] = true, [9] = true }
---More lines than this that no section folds (a transcript in a summary's place) are drawn as a closed card.
local MOST_OPEN_LINES = 30

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

---@param event table compacted event or entry, which leaves out what is 0
---@return string
local function title(event)
  local messages = event.messages or 0
  return table.concat({
    event.title or "Session context compacted",
    ("%d message%s"):format(messages, messages == 1 and "" or "s"),
    ("%s → %s tokens"):format(status.short(event.tokens_before or 0), status.short(event.tokens_after or 0)),
    event.trigger or "",
    event.summariser or "",
    status.duration(event.duration_ms or 0),
  }, " · ")
end

---The card of a compaction.
---@param chat CodeCompanion.Chat
---@param event table
---@return CodeCompanion.Block
function M.card(chat, event)
  local text = title(event)
  local id = event.compaction_id or event.change_id
  local lines = { "## " .. options.header("user"), "▾ " .. text }
  local summary = blocks.split(vim.trim(event.summary or event.text or ""))
  vim.list_extend(lines, summary)
  local last = #lines - 1
  local parts = sections(summary)
  local loose = parts[1] and parts[1].first - 1 or #summary
  local folded = event.folded == true or loose > MOST_OPEN_LINES
  local block = {
    kind = "card",
    lines = lines,
    role = "user",
    marks = { { row = 1, from = 0, to = #lines[2], group = "CodeCompanionCompacted" } },
    markdown = { 2, #lines },
    item = { compaction_id = id },
    change = { id = id, kind = "compacted", undone = event.undone == true, folded = folded, event = event },
    folds = {
      {
        first = 1,
        last = last,
        closed = event.undone == true or folded,
        change = id,
        text = function()
          local chunks = require("codecompanion.chat.changes").title(chat, id, text)
          table.insert(chunks, 1, { "▸ ", "CodeCompanionFoldMark" })
          return chunks
        end,
      },
    },
  }
  for _, part in ipairs(parts) do
    local label = (part.number > 0 and part.number .. ". " or "") .. part.title .. amount(summary, part)
    -- the blank line before the next section belongs to the fold: closed sections stand in a list
    block.folds[#block.folds + 1] = {
      first = part.first + 1,
      last = part.last + 1,
      closed = not OPEN[part.number],
      text = function()
        return { { "▸ ", "CodeCompanionFoldMark" }, { label, "CodeCompanionCompacted" } }
      end,
    }
  end
  return block
end

---Fold the turns that a compaction replaced: rows [first, last).
---@param chat CodeCompanion.Chat
---@param first integer
---@param last integer
---@param event table
function M.fold_old(chat, first, last, event)
  if last <= first then
    return
  end
  local from, to = unpack(event.cycles or { 0, 0 })
  local span = from == to and ("cycle %d"):format(from) or ("cycles %d–%d"):format(from, to)
  local messages = event.messages or 0
  local text = ("%d message%s compacted (%s)"):format(messages, messages == 1 and "" or "s", span)
  buffer.edit(chat, function()
    buffer.insert(chat, first, { "▾ " .. text })
    draw.decorate(chat, first, {
      kind = "old",
      lines = {},
      marks = { { row = 0, from = 0, to = #text + #"▾ ", group = "CodeCompanionCompacted" } },
    })
    -- the blank line before the card stays outside
    local fold = folds.add(chat, first, last - 1, {
      closed = true,
      text = function()
        return { { "▸ ", "CodeCompanionFoldMark" }, { text, "CodeCompanionCompacted" } }
      end,
    })
    if fold then
      fold.old_of = event.compaction_id or event.change_id
    end
  end)
end

---Turns that an undone compaction had folded away count again: they are open, and the line above them goes.
---@param chat CodeCompanion.Chat
---@param id string Of the compaction
function M.unfold_old(chat, id)
  local wins = vim.fn.win_findbuf(chat.bufnr)
  for _, win in ipairs(wins) do
    folds.remember(chat, win)
  end
  for _, fold in pairs(vim.tbl_values(chat.folds)) do
    local first = fold.old_of == id and folds.rows(chat, fold)
    if first then
      folds.remove(chat, fold)
      buffer.remove(chat, first, first + 1)
    end
  end
  for _, win in ipairs(wins) do
    folds.apply(chat, win) -- removing one opens what is inside
  end
  local change = chat.changes[id]
  local card = change and draw.item_rows(chat, change.item)
  if card then
    -- the next compaction is about them, too
    api.nvim_buf_clear_namespace(chat.bufnr, M.ns, card, card + 1)
  end
end

---Fold the turns above a card whose compaction counts again.
---@param chat CodeCompanion.Chat
---@param item table
---@param event table
function M.refold_old(chat, item, event)
  local card = draw.item_rows(chat, item)
  if not card then
    return
  end
  local from = buffer.position(chat, "top")
  local mark = api.nvim_buf_get_extmarks(chat.bufnr, M.ns, { card, -1 }, 0, { limit = 1 })[1]
  if mark then
    from = math.max(from, mark[2])
  end
  M.fold_old(chat, from, card, event)
  M.mark(chat, (draw.item_rows(chat, item)))
end

---The row of the newest card that counts: what stands above it was compacted away, 0 when there is none.
---@param chat CodeCompanion.Chat
---@return integer
function M.newest_row(chat)
  local mark = api.nvim_buf_get_extmarks(chat.bufnr, M.ns, -1, 0, { limit = 1 })[1]
  return mark and mark[2] or 0
end

---Where the card goes: above a message that has not been answered yet (it survives verbatim, R-551), otherwise where
---the machine writes.
---@param chat CodeCompanion.Chat
---@return integer row
local function card_row(chat)
  local tail = buffer.position(chat, "tail")
  if chat.tail_kind ~= "user" then
    return tail
  end
  local mark = api.nvim_buf_get_extmarks(chat.bufnr, draw.roles, { tail - 1, -1 }, 0, { limit = 1 })[1]
  return mark and mark[2] or tail
end

---A header below which nothing stands yet goes: the provider compacted before it wrote, and the header comes again
---below the card.
---@param chat CodeCompanion.Chat
local function drop_bare_header(chat)
  if chat.tail_kind ~= "header" then
    return
  end
  local tail = buffer.position(chat, "tail")
  local mark = api.nvim_buf_get_extmarks(chat.bufnr, draw.roles, { tail - 1, -1 }, 0, { limit = 1 })[1]
  if mark then
    api.nvim_buf_del_extmark(chat.bufnr, draw.roles, mark[1])
    buffer.remove(chat, mark[2], tail)
    chat.tail_kind = chat.before_header
  end
end

local NOTICES = { CodeCompanionError = true, CodeCompanionWarning = true, CodeCompanionHint = true }

---Where the notices begin that stand above `row`: what was said last, often of this compaction, is not folded away.
---@param chat CodeCompanion.Chat
---@param row integer
---@return integer row
local function above_notices(chat, row)
  while chat.tail_kind == "notice" and row > 2 do
    local at = { row - 2, 0 }
    local mark = api.nvim_buf_get_extmarks(chat.bufnr, draw.decor, at, at, { limit = 1, details = true })[1]
    if not (mark and NOTICES[mark[4].hl_group]) then
      break
    end
    row = row - 2
  end
  return row
end

---A compaction is done: fold what it replaced, draw the card.
---@param chat CodeCompanion.Chat
---@param event table
function M.compacted(chat, event)
  drop_bare_header(chat)
  local from = buffer.position(chat, "top")
  local mark = api.nvim_buf_get_extmarks(chat.bufnr, M.ns, -1, 0, { limit = 1 })[1]
  if mark then
    from = math.max(from, mark[2])
  end
  M.fold_old(chat, from, above_notices(chat, card_row(chat)), event)
  local block = M.card(chat, event)
  draw.sequence(chat, card_row(chat), { block })
  if chat.tail_kind ~= "user" then
    chat.tail_kind = block.kind
  end
  M.mark(chat, block.row)
end

---Note that a card begins at `row`: the next compaction folds what stands from there on.
---@param chat CodeCompanion.Chat
---@param row integer
function M.mark(chat, row)
  api.nvim_buf_set_extmark(chat.bufnr, M.ns, row, 0, { right_gravity = true })
end

return M
