---A compaction is done: where its card goes, and what it replaced (`fold_removed_messages` folds the old turns).

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local blocks = require("codecompanion.chat.draw.blocks")
local buffer = require("codecompanion.chat.buffer.chat_text")
local card = require("codecompanion.chat.draw.card")
local draw = require("codecompanion.chat.draw.put_blocks")
local marks = require("codecompanion.chat.buffer.row_marks")
local runs = require("codecompanion.chat.draw.fold_removed_messages")

local M = {}

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
function M.show(chat, event)
  if chat.changes[event.compaction_id] then
    return -- the log had it already when the buffer was drawn
  end
  drop_bare_header(chat)
  local block = card.compacted(chat, event)
  local before = event.before or ""
  local row = before ~= "" and marks.message_row(chat, before)
  if row then
    insert_card(chat, row, chat.by_message[before][1], block)
  else
    draw.append(chat, block)
    chat.header = false
  end
  runs.take_out(chat, event.removed or {}, "compacted")
  card.supersede(chat)
end

return M
