---Removes an item from the next request when its line in the context block is deleted; `u` restores it.

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local buffer = require("codecompanion.chat.buffer.chat_text")
local context = require("codecompanion.chat.draw.context_block")
local history = require("codecompanion.chat.wire.edit_view")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")

local M = {}

---Remove items from the next request; refused ones are shown in the block again.
---@param chat CodeCompanion.Chat
---@param gone string[]
---@param before table[] The previous items of the block
local function detach(chat, gone, before)
  table.sort(gone)
  chat.just_detached = buffer.input_text(chat)
  session.request(chat, "detach", { items = gone }, function() end, function(reason)
    chat.just_detached = nil
    context.set(chat, before)
    say.chat(chat, reason, severity.WARN)
  end)
end

---Find the items whose lines were deleted and notify the host. No other edit is possible here: the block lists the
---items to be sent.
---@param chat CodeCompanion.Chat
function M.check(chat)
  local before, gone, left = chat.context_shown or {}, {}, {}
  if #before == 0 or chat.awaiting or chat.damaged then
    return
  end
  local removed = {}
  for id, item in pairs(chat.context_items) do
    local mark = api.nvim_buf_get_extmark_by_id(chat.bufnr, context.ns, id, { details = true })
    if not mark[1] or mark[3].invalid then
      gone[#gone + 1], removed[item.id] = item.id, true
      chat.context_items[id] = nil
    end
  end
  for _, item in ipairs(before) do
    if not removed[item.id] then
      left[#left + 1] = item
    end
  end
  local drawn = api.nvim_buf_get_lines(chat.bufnr, 0, (anchors.position(chat, "top")), false)
  if not vim.deep_equal(drawn, context.lines_of(left)) then
    context.set(chat, left)
    if #gone == 0 then
      say.hint("The context block was restored; dd removes an item from the next request")
    end
  end
  chat.context_shown = left
  if #gone > 0 then
    detach(chat, gone, before)
  end
end

---Restore the attachment removed last; the host may not have removed it yet.
---@param chat CodeCompanion.Chat
function M.attach_again(chat)
  if chat.undo_kind ~= "detached" then
    chat.undo_soon = true
    return
  end
  chat.just_detached, chat.undo_soon = nil, nil
  history.undo(chat, chat.next_undo)
end

---Store the id of the change that can be undone; restore the attachment if the user asked before that was possible.
---@param chat CodeCompanion.Chat
---@param next_undo string
function M.undo_changed(chat, next_undo)
  chat.next_undo = next_undo ~= "" and next_undo or nil
  if chat.undo_kind ~= "detached" then
    chat.just_detached, chat.undo_soon = nil, nil
  elseif chat.undo_soon then
    M.attach_again(chat)
  end
end

return M
