---Draws tool calls and the attachments of a message. A call is one line when it starts; its output is added in a fold
---when it ends, and marked when cleared. Attachments (code or editor context) are one line below their message, with
---the rest in a fold.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local blocks = require("codecompanion.chat.draw.blocks")
local buffer = require("codecompanion.chat.buffer.chat_text")
local draw = require("codecompanion.chat.draw.put_blocks")
local fit = require("codecompanion.text.fit")
local marks = require("codecompanion.chat.buffer.row_marks")
local numbers = require("codecompanion.text.numbers")
local tool_call = require("codecompanion.chat.draw.tool_call")
local unread = require("codecompanion.chat.buffer.unread")

local M = {}

local MAX_PIECES = 200
local MIN_GAP = 2

---Draw a call that started, or that waits for approval.
---@param chat CodeCompanion.Chat
---@param event table tool_started event
function M.started(chat, event)
  draw.append(
    chat,
    tool_call.block({
      call_id = event.call_id,
      reply_id = event.reply_id,
      name = event.name,
      title = event.title,
      status = "running",
    })
  )
end

---Draw the block of a call again in its rows.
---@param chat CodeCompanion.Chat
---@param item table
---@param first integer
---@param last integer
---@param tool table The new item
local function redraw(chat, item, first, last, tool)
  local block = tool_call.block(tool)
  buffer.edit(chat, function()
    api.nvim_buf_clear_namespace(chat.bufnr, marks.decor, first, last)
    if last > first + 1 then
      buffer.remove(chat, first + 1, last)
    end
    if #block.lines > 1 then
      buffer.insert(chat, first + 1, vim.list_slice(block.lines, 2))
    end
    -- not nvim_buf_set_text(): on 0.11 a fold that ends with the line would lose it
    vim.fn.setbufline(chat.bufnr, first + 1, buffer.for_vim({ block.lines[1] }))
    chat.items[item.id] = nil
    tool.id = item.id
    draw.decorate(chat, first, block)
  end)
end

---Show the block of an approval in place of the line of its call, and the line again once the approval is closed. A
---line that others follow stays.
---@param chat CodeCompanion.Chat
---@param call_id string
---@param is_asked boolean
function M.asked(chat, call_id, is_asked)
  local item = chat.calls[call_id]
  if not item or item.status ~= "running" then
    return
  end
  local first, last = marks.item_rows(chat, item)
  if not is_asked and item.is_hidden then
    item.is_hidden = nil
    draw.append(chat, tool_call.block(item))
  elseif is_asked and first and last and last + 1 == anchors.position(chat, "tail") then
    local is_joined, above = buffer.is_joined(chat, first), marks.item_at(chat, first - 1)
    chat.items[item.id], item.id, item.is_hidden = nil, nil, true
    api.nvim_buf_clear_namespace(chat.bufnr, marks.decor, first, last)
    buffer.remove(chat, first, is_joined and last or last + 1)
    chat.tail_kind = is_joined and (above and above.call_id and "tool" or "header") or nil
  end
end

---Draw the result of a call: the second half of its line, and the output below it in a fold.
---@param chat CodeCompanion.Chat
---@param event table tool_finished event
function M.finished(chat, event)
  if event.message_id and chat.by_message[event.message_id] then
    return -- it was already in the log when the buffer was drawn
  end
  local item = chat.calls[event.call_id]
  local first, last
  if item and item.status == "running" then
    first, last = marks.item_rows(chat, item)
  end
  local tool = {
    call_id = event.call_id,
    message_id = event.message_id,
    reply_id = event.reply_id,
    name = event.name,
    title = event.title ~= "" and event.title or (item and item.title or event.name),
    summary = event.summary,
    preview = event.preview,
    status = event.status,
    change = event.change,
  }
  if first and last then
    redraw(chat, item, first, last, tool)
  else
    draw.append(chat, tool_call.block(tool))
  end
  if tool.change and tool.change.unsaved then
    require("codecompanion.chat.draw.unsaved_changes").watch()
  end
end

---Remove a note from a line that has it.
---@param chat CodeCompanion.Chat
---@param row integer
---@param text string
local function remove_note(chat, row, text)
  local found = api.nvim_buf_get_extmarks(chat.bufnr, marks.decor, { row, 0 }, { row, -1 }, { details = true })
  for _, mark in ipairs(found) do
    if mark[4].virt_text and mark[4].virt_text[1][1] == text then
      api.nvim_buf_del_extmark(chat.bufnr, marks.decor, mark[1])
    end
  end
end

---Redraw the note of an item about its form in the request.
---@param chat CodeCompanion.Chat
---@param item table
---@param field "cleared"|"lost"
---@param value boolean|integer
local function set_note(chat, item, field, value)
  if (item[field] or false) == value then
    return -- in a long chat most items are unchanged: skip even the position lookup
  end
  local first = marks.item_rows(chat, item)
  if not first then
    return
  end
  local before = tool_call.note(item)
  item[field], item.drawn = value, unread.stamp(chat)
  if before then
    remove_note(chat, first, before)
  end
  local note = tool_call.note(item)
  if note then
    local line = api.nvim_buf_get_lines(chat.bufnr, first, first + 1, false)[1]
    api.nvim_buf_set_extmark(chat.bufnr, marks.decor, first, #line, {
      virt_text = { { note, "CodeCompanionCleared" } },
      virt_text_pos = "inline", -- wraps with the line
      hl_mode = "combine",
    })
  end
end

---Set whether a call's result is in the context: the fold of a cleared or cut result shows this; the text is unchanged
---(R-516).
---@param chat CodeCompanion.Chat
---@param item table
---@param cleared boolean|integer It is sent shortened; a number: the percentage that is sent
function M.set_cleared(chat, item, cleared)
  set_note(chat, item, "cleared", cleared)
end

---Set whether the text that a note refers to is no longer in the request.
---@param chat CodeCompanion.Chat
---@param item table
---@param lost boolean
function M.set_lost(chat, item, lost)
  set_note(chat, item, "lost", lost)
end

---Set whether the file change of a call is in effect and saved; its fold is marked if it is not.
---@param chat CodeCompanion.Chat
---@param item table
---@param reverted boolean
---@param unsaved boolean
local function set_change(chat, item, reverted, unsaved)
  local change = item.change
  if (change.reverted == true) == reverted and (change.unsaved == true) == unsaved then
    return
  end
  local first = marks.item_rows(chat, item)
  if not first then
    return
  end
  local before = tool_call.change_note(change)
  if before then
    remove_note(chat, first, before[1])
  end
  change.reverted, change.unsaved = reverted, unsaved
  local note = tool_call.change_note(change)
  if note then
    api.nvim_buf_set_extmark(chat.bufnr, marks.decor, first, 0, {
      virt_text = { note },
      virt_text_pos = "eol",
      hl_mode = "combine",
    })
  end
end

---Update which calls have a reverted or unsaved file change.
---@param chat CodeCompanion.Chat
---@param change_ids string[] All changes that are now reverted
---@param unsaved_ids string[] All changes that are only in a buffer
function M.reverted(chat, change_ids, unsaved_ids)
  for _, item in pairs(chat.items) do
    if item.change then
      local id = item.change.change_id
      set_change(chat, item, vim.list_contains(change_ids, id), vim.list_contains(unsaved_ids, id))
    end
  end
  vim.cmd.redraw({ bang = false })
end

---Update the messages that are shortened in the context.
---@param chat CodeCompanion.Chat
---@param message_ids string[]
---@param call_ids string[] Calls of results without a known message id
---@param cut table<string, integer> Percentages of cut messages that are sent, by message
function M.cleared(chat, message_ids, call_ids, cut)
  for _, id in ipairs(message_ids) do
    for _, item in ipairs(chat.by_message[id] or {}) do
      if item.call_id or item.along then
        M.set_cleared(chat, item, cut[id] or true)
      end
    end
  end
  for _, call_id in ipairs(#message_ids == 0 and call_ids or {}) do
    if chat.calls[call_id] then
      M.set_cleared(chat, chat.calls[call_id], true)
    end
  end
  -- a closed fold computes its line from the item, so redraw it
  vim.cmd.redraw({ bang = false })
end

---Return the size in the context, as an estimate like the meter's; the inspector has the current value. "" if the
---message only names code that was already sent.
---@param item table
---@return string
local function size(item)
  return item.tokens > 0 and (" · ~%s tokens"):format(numbers.short(item.tokens)) or ""
end

---@param item table
---@return string
local function time(item)
  if not item.gathered then
    return ""
  end
  local ms = item.duration_ms
  return ms >= 1000 and (" · %.1f s"):format(ms / 1000) or (" · %d ms"):format(ms)
end

---Return the title, outcome and hint of the closed fold, longest form first: the size is always kept, and hints are
---dropped before any of the title.
---@param item table
---@return { [1]: string, [2]: string, [3]: string }[]
local function wordings(item)
  local title, shortened = item.title, tool_call.shortened(item.cleared)
  if shortened then
    local short, hint = title:match("^%d+ %a+") or title, tool_call.cleared_keys(item.cleared)
    return { { title, shortened, hint }, { short, shortened, hint }, { short, shortened, "" } }
  end
  local tokens = item.lost and tool_call.LOST or size(item)
  if not item.gathered or item.lost then
    return { { title, tokens, "K show" }, { title, tokens, "" } }
  end
  return {
    { title, tokens .. time(item), "K show · why: /context" },
    { title, tokens, "K show · why: /context" },
    { title, tokens, "K show · /context" },
    { title, tokens, "K show" },
    { title, tokens, "" },
    { title:match("^[^,]+") or title, tokens, "" },
  }
end

---Return the line of the closed fold.
---@param item table
---@param width? integer Available cells
---@return { [1]: string, [2]: string }[]
local function gathered_chunks(item, width)
  local mark, found = "▸ ", nil
  for _, wording in ipairs(wordings(item)) do
    found = wording
    local gap = wording[3] ~= "" and MIN_GAP or 0
    if not width or api.nvim_strwidth(mark .. table.concat(wording)) + gap <= width then
      break
    end
  end
  local title, outcome, hint = unpack(found)
  local room = width and width - api.nvim_strwidth(mark .. outcome .. hint) - (hint ~= "" and MIN_GAP or 0)
  if room then -- for a mention, the reason for missing text is more important than its spelling
    title = (item.gathered and fit.squeeze or fit.reason)(title, room)
  end
  local chunks = {
    { mark, "CodeCompanionFoldMark" },
    { title, "CodeCompanionTool" },
    { outcome, tool_call.note(item) and "CodeCompanionCleared" or "CodeCompanionToolSummary" },
  }
  if width and hint ~= "" and not item.cleared then
    chunks[4] = { (" "):rep(width - fit.width(chunks) - api.nvim_strwidth(hint)) .. hint, "CodeCompanionHint" }
  end
  return width and fit.cut_chunks(chunks, width) or chunks
end

---@return string
local function plain_group()
  return "CodeCompanionToolOutput"
end

---@param entry table code_gathered or editor_context_sent; `mentioned`: the latter
---@param cleared? boolean|integer
---@param lost? boolean The text it refers to is no longer in the request
---@return CodeCompanion.Block
function M.gathered_block(entry, cleared, lost)
  local item = {
    message_id = entry.message_id,
    along = true,
    gathered = not entry.mentioned,
    title = blocks.one_line(entry.title),
    tokens = entry.tokens or 0,
    duration_ms = entry.duration_ms or 0,
    cleared = cleared or nil,
    lost = lost or nil,
    pinned = entry.pinned,
  }
  local title = "▾ " .. item.title
  local line = title .. size(item) .. time(item)
  local block = {
    kind = "gathered",
    lines = { line },
    item = item,
    marks = {
      { row = 0, from = 0, to = #"▾", group = "CodeCompanionFoldMark" },
      { row = 0, from = #"▾ ", to = #title, group = "CodeCompanionTool" },
      { row = 0, from = #title, to = #line, group = "CodeCompanionToolSummary" },
    },
  }
  local shortened = tool_call.note(item)
  if shortened then
    block.eol = { { row = 0, col = #line, pos = "inline", chunks = { { shortened, "CodeCompanionCleared" } } } }
  end
  local body, key = blocks.body(entry.body, MAX_PIECES), "gathered:" .. entry.message_id
  return blocks.folded(block, body, plain_group, key, function(width)
    return gathered_chunks(item, width)
  end)
end

---Draw the code or mentions sent with the last user message below it, although they precede it in the request.
---@param chat CodeCompanion.Chat
---@param event table code_gathered or editor_context_sent
---@param mentioned? boolean
function M.gathered(chat, event, mentioned)
  if not chat.by_message[event.message_id] then -- otherwise it was in the log when the buffer was drawn
    draw.append(chat, M.gathered_block(vim.tbl_extend("force", event, { mentioned = mentioned })))
  end
end

return M
