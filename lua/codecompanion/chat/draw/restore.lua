---Redraws a stored chat: the newest piece at once, older ones above it in slices when idle.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local blocks = require("codecompanion.chat.draw.blocks")
local buffer = require("codecompanion.chat.buffer.chat_text")
local card = require("codecompanion.chat.draw.card")
local draw = require("codecompanion.chat.draw.put_blocks")
local marks = require("codecompanion.chat.buffer.row_marks")
local notices = require("codecompanion.chat.draw.notices")
local options = require("codecompanion.chat.state.chat_options")
local places = require("codecompanion.chat.buffer.cursor_places")
local redraw = require("codecompanion.screen.redraw_rows")
local replaced = require("codecompanion.chat.draw.replaced_answers")
local runs = require("codecompanion.chat.draw.fold_removed_messages")
local severity = require("codecompanion.severity")
local tool_call = require("codecompanion.chat.draw.tool_call")
local tools = require("codecompanion.chat.draw.tool_blocks")

local M = {}

local SLICE_ENTRIES = 12
local BUDGET_MS = 6
local PAUSE_MS = 8
local SETTLED_MS = 200

---@class CodeCompanion.Restore
---@field queue table<integer, table> Waiting entries, newest first
---@field drawn integer Number of drawn entries
---@field size integer Number of received entries
---@field last boolean All pieces have arrived
---@field running boolean
---@field noted table<CodeCompanion.Notice, true> Notices that are already drawn
---@field top_kind? string Kind of the topmost drawn block
---@field orphan? integer Role mark of a reply header without its user message above

---@param chat CodeCompanion.Chat
---@param entry table
---@param list CodeCompanion.Block[]
---@param header boolean The model's header is above
---@return boolean header
local function add_entry(chat, entry, list, header)
  if entry.kind == "user" then
    local item = { message_id = entry.message_id, pinned = entry.pinned, number = entry.number }
    list[#list + 1] = blocks.user(entry.text or "", item, blocks.tokens(entry.tokens))
    return false
  elseif entry.kind == "updated" then
    local block = vim.tbl_extend("force", entry, { body = entry.text or "" })
    list[#list + 1] = require("codecompanion.chat.draw.live_updates").block(block, chat.cleared[entry.message_id])
    return false
  elseif entry.kind == "gathered" or entry.kind == "mentioned" then
    local cleared = chat.cleared[entry.message_id]
    if cleared == nil and entry.cleared == true and not chat.marked then
      cleared = (entry.kept_percent or {})[1] or true
    end
    list[#list + 1] = tools.gathered_block(
      vim.tbl_extend("force", entry, { body = entry.text or "", mentioned = entry.kind == "mentioned" }),
      cleared,
      chat.lost[entry.message_id]
    )
    return false
  elseif entry.kind == "compacted" then
    list[#list + 1] = card.compacted(chat, entry)
    return false
  elseif entry.kind == "edited" then
    list[#list + 1] = card.edited({
      cleared = entry.messages or 0,
      code = entry.code or 0,
      cuts = entry.kept_percent,
      tokens_before = entry.tokens_before or 0,
      tokens_after = entry.tokens_after or 0,
      change_id = entry.change_id,
      undone = entry.undone,
      why = entry.text,
    })
    return header
  end
  if entry.kind == "changed" then
    list[#list + 1] = require("codecompanion.chat.draw.turn_changes_line").block(entry.changes)
    return header
  elseif entry.kind == "cleared" then
    list[#list + 1] = card.cleared(entry)
    return false
  elseif entry.kind == "note" then
    local block = blocks.notice(entry.text or "", entry.severity or severity[entry.level], entry.hint)
    block.notice = entry.notice
    list[#list + 1] = block
    return header
  end
  if not header or entry.opens then
    list[#list + 1] = blocks.header(chat, entry.adapter or "", entry.model or "")
  end
  if entry.kind == "tool" then
    if entry.change and entry.change.unsaved then
      require("codecompanion.chat.draw.unsaved_changes").watch()
    end
    local cleared = chat.cleared[entry.message_id]
    if cleared == nil and entry.cleared == true and not chat.marked then
      cleared = (entry.kept_percent or {})[1] or true
    end
    list[#list + 1] = tool_call.block({
      call_id = entry.call_id,
      message_id = entry.message_id,
      reply_id = entry.reply_id,
      name = entry.name,
      title = entry.title or entry.name or "",
      summary = entry.summary,
      preview = entry.text,
      status = entry.status or "ok",
      cleared = cleared,
      pinned = entry.pinned,
      change = entry.change,
    })
  elseif entry.kind == "reasoning" then
    if options.display().show_reasoning then
      list[#list + 1] = blocks.reasoning(entry.text or "", entry.message_id)
    end
  elseif (entry.text or ""):find("%S") then
    list[#list + 1] = blocks.reply(entry)
  end
  return true
end

---Convert entries in buffer order to blocks.
---@param chat CodeCompanion.Chat
---@param entries table[]
---@return CodeCompanion.Block[]
---@return boolean header Whether the last turn has a header
function M.blocks(chat, entries)
  local list, header = {}, false
  for _, entry in ipairs(entries) do
    header = add_entry(chat, entry, list, header)
  end
  return list, header
end

---Remove a header that was drawn because the piece began inside a turn; the piece above has the actual header.
---@param chat CodeCompanion.Chat
---@param header boolean The piece above ends inside a turn that has a header
local function drop_orphan(chat, header)
  local orphan = chat.restore.orphan
  chat.restore.orphan = nil
  if not orphan or not header then
    return
  end
  local mark = api.nvim_buf_get_extmark_by_id(chat.bufnr, marks.roles, orphan, {})
  if mark[1] then
    chat.roles[orphan] = nil
    api.nvim_buf_del_extmark(chat.bufnr, marks.roles, orphan)
    buffer.remove(chat, mark[1], mark[1] + 1)
  end
end

---Return the kind of the block that becomes the topmost one when an orphaned header is removed.
---@param list CodeCompanion.Block[]
---@return string
local function top_kind(list)
  return list[1].kind == "header" and list[2] and list[2].kind or list[1].kind
end

---Draw entries above all drawn content.
---@param chat CodeCompanion.Chat
---@param entries table[]
local function draw_above(chat, entries)
  local list, header = M.blocks(chat, entries)
  if #list == 0 then
    return
  end
  for _, entry in ipairs(entries) do
    if (entry.gone or "") ~= "" then
      for _, id in ipairs(entry.summary_ids or { entry.message_id }) do
        chat.gone[id] = entry.gone
      end
    end
  end
  local orphaned = chat.restore.orphan ~= nil
  drop_orphan(chat, header)
  local top = anchors.position(chat, "top")
  local was_empty = anchors.position(chat, "tail") <= top
  local count = draw.sequence(chat, top, list)
  if was_empty then
    chat.tail_kind = list[#list].kind
    -- a finished turn, and a regenerated answer, is followed by a new header
    chat.header = header and chat.state ~= "idle" and (entries[#entries].gone or "") == ""
  elseif orphaned and header and list[#list].kind == "tool" and chat.restore.top_kind == "tool" then
    -- calls of one reply stay together, even across pieces
    buffer.remove(chat, top + count - 1, top + count)
  end
  chat.restore.top_kind = top_kind(list)
  if list[1].kind == "header" and not entries[1].opens then
    chat.restore.orphan = list[1].role_id
  end
end

---Redraw all rows once the colours are applied: if a window starts inside a line ('smoothscroll'), Neovim (0.10 to
---0.12) omits a row above a closed fold among lines that get colours. Not while the buffer changes, which would cause
---the same problem again.
---@param chat CodeCompanion.Chat
local function settle_rows(chat)
  vim.defer_fn(function()
    if api.nvim_buf_is_loaded(chat.bufnr) and chat.state == "idle" then
      redraw.all_rows(chat.bufnr)
    end
  end, SETTLED_MS)
end

---Fold removed messages once all pieces are drawn, so that the folds of the first piece grow only once.
---@param chat CodeCompanion.Chat
local function finish(chat)
  chat.restore.orphan = nil
  replaced.draw(chat)
  runs.refresh(chat)
  card.supersede(chat)
  places.settle(chat)
  settle_rows(chat)
end

---Draw slices for a few milliseconds, then yield to the user.
---@param chat CodeCompanion.Chat
---@param mine CodeCompanion.Restore
local function step(chat, mine)
  local restore = chat.restore
  if mine ~= restore or not api.nvim_buf_is_loaded(chat.bufnr) then
    return -- the chat is being redrawn
  end
  local start = vim.uv.hrtime()
  while restore.drawn < restore.size and (vim.uv.hrtime() - start) / 1e6 < BUDGET_MS do
    local slice = {}
    for index = restore.drawn + 1, math.min(restore.drawn + SLICE_ENTRIES, restore.size) do
      table.insert(slice, 1, restore.queue[index])
      restore.queue[index], restore.drawn = nil, index
    end
    draw_above(chat, slice)
  end
  if restore.drawn < restore.size then
    vim.defer_fn(function()
      step(chat, mine)
    end, PAUSE_MS)
    return
  end
  restore.running = false
  if restore.last then
    finish(chat)
  end
end

---@param entry table
---@return boolean
local function has_change(entry)
  return entry.change ~= nil
end

---Handle a piece of the log.
---@param chat CodeCompanion.Chat
---@param event table restored event
function M.piece(chat, event)
  local restore = chat.restore
  restore.last = restore.last or event.last == true
  chat.has_changed_files = chat.has_changed_files or vim.iter(event.entries):any(has_change)
  local entries = notices.merge(chat, event)
  if event.first then
    draw_above(chat, entries)
    replaced.draw(chat)
    if restore.last and not restore.running then
      finish(chat)
    else
      runs.refresh(chat)
    end
    return
  end
  for index = #entries, 1, -1 do -- the newest first, as pieces arrive
    restore.size = restore.size + 1
    restore.queue[restore.size] = entries[index]
  end
  if not restore.running then
    restore.running = true
    vim.defer_fn(function()
      step(chat, restore)
    end, PAUSE_MS)
  end
end

return M
