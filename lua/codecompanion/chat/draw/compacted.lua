---Shows a finished compaction: places its card and folds the replaced turns (with `fold_removed_messages`).

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local blocks = require("codecompanion.chat.draw.blocks")
local buffer = require("codecompanion.chat.buffer.chat_text")
local card = require("codecompanion.chat.draw.card")
local draw = require("codecompanion.chat.draw.put_blocks")
local marks = require("codecompanion.chat.buffer.row_marks")
local runs = require("codecompanion.chat.draw.fold_removed_messages")

local M = {}

---Remove a header without content: the provider compacted before it wrote any text, and the header is drawn again below
---the card.
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

---Return the row of the model's header directly above `row`.
---@param chat CodeCompanion.Chat
---@param row integer
---@return integer?
local function header_above(chat, row)
  local at = { row - 1, 0 }
  local mark = row > 0 and api.nvim_buf_get_extmarks(chat.bufnr, marks.roles, at, at, { limit = 1 })[1]
  return mark and chat.roles[mark[1]] == "llm" and row - 1 or nil
end

---Return the model's header above `row` if there are only notices between them, so that no sent message belongs to it.
---@param chat CodeCompanion.Chat
---@param row integer
---@return integer? mark
---@return integer? header Row of the header
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

---Insert the card above the message that follows it in the next request; inside a reply the header is repeated.
---@param chat CodeCompanion.Chat
---@param row integer First row of that message
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
    local again = blocks.header(chat, chat.adapter, chat.model)
    local count = draw.sequence(chat, row, { block, again })
    buffer.remove(chat, row + count - 1, row + count)
  end)
end

---Draw the card of a finished compaction where the summary is in the next request, and fold the replaced messages.
---@param chat CodeCompanion.Chat
---@param event table
function M.show(chat, event)
  if chat.changes[event.compaction_id] then
    return -- it was already in the log when the buffer was drawn
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
