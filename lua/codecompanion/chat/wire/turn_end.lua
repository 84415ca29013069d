---Handles the end of a turn, by its last event or by the exit of the host.

local activity = require("codecompanion.chat.draw.activity")
local approval = require("codecompanion.chat.question.approval")
local attention = require("codecompanion.chat.question.attention")
local draw = require("codecompanion.chat.draw.put_blocks")
local marks = require("codecompanion.chat.buffer.row_marks")
local notices = require("codecompanion.chat.draw.notices")
local outgoing = require("codecompanion.chat.wire.outgoing")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")
local stream = require("codecompanion.chat.draw.stream")
local tools = require("codecompanion.chat.draw.tool_blocks")
local turn_line = require("codecompanion.chat.draw.turn_changes_line")

local M = {}

---Maximum number of consecutive host starts to ask whether messages were stored: a host may be killed while it starts.
local ASKED_AGAIN = 3

---Return the visible text of a streaming reply, or nil if it is not in one piece.
---@param chat CodeCompanion.Chat
---@return string?
local function shown_reply(chat)
  stream.finish(chat)
  local texts = vim.tbl_filter(function(part)
    return part.kind == "text"
  end, chat.parts or {})
  local first, last = marks.item_rows(chat, texts[1] or {})
  if #texts == 1 and first then
    return table.concat(vim.api.nvim_buf_get_lines(chat.bufnr, first, last, false), "\n")
  end
end

---End a reply that was streaming.
---@param chat CodeCompanion.Chat
local function end_reply(chat)
  activity.stop_retry(chat)
  stream.finish(chat)
  for _, part in ipairs(chat.parts or {}) do
    local first, last = marks.item_rows(chat, part)
    if first and part.kind == "text" then
      draw.cut_off(chat, last - 1)
    end
  end
  chat.parts = {}
end

---@param chat CodeCompanion.Chat
---@param event CodeCompanion.Event.TurnFinished
function M.turn_finished(chat, event)
  end_reply(chat)
  approval.close_all(chat)
  chat.state, chat.label, chat.header = "idle", "", false
  if chat.cut and event.reason ~= "stopped" and event.error == "" then
    say.chat(chat, "The reply was incomplete.", severity.WARN)
  end
  chat.cut = false
  turn_line.tell(chat)
  -- a message still being sent is not stored: it returns to the input, and there is nothing to regenerate
  local retry_hint = #chat.outgoing == 0 and notices.retry_hint() or nil
  if event.error ~= "" then
    local is_failure = event.reason == "failed" or event.unsent
    local hint = event.reason == "failed" and retry_hint or nil
    say.chat(chat, event.error, is_failure and severity.ERROR or severity.WARN, { hint = hint })
    notices.holds_until(chat, event.error, event.unsent and "reply" or "answer")
  elseif event.reason == "stopped" and not event.unsent then -- otherwise the returned message explains it
    say.chat(chat, "Stopped.", severity.INFO, { hint = retry_hint })
    notices.holds_until(chat, "Stopped.", "answer")
  end
  attention.finished(chat, event)
end

---Handle the exit of the host: the buffer stays, unstored text returns to the draft, and the next action restarts the
---host.
---@param chat CodeCompanion.Chat
---@param event table As dispatched by `codecompanion.host`
function M.host_exit(chat, event)
  if chat.attached == "no" then
    return
  end
  chat.attached = "no"
  chat.shown = shown_reply(chat) -- the host stored slightly less: send the next one the visible text
  end_reply(chat)
  approval.close_all(chat)
  local in_turn = chat.state ~= "idle" and not chat.compaction and #chat.outgoing == 0
  chat.state, chat.label, chat.header, chat.compaction = "idle", "", false, nil
  local text = event.text or "The Python process ended. The next action starts it again."
  local becomes, hint = nil, nil
  if event.never_ready and #chat.outgoing > #session.unsure(chat) then
    becomes = "Your message is back in the input."
    outgoing.recall_all(chat)
  elseif #chat.outgoing > 0 then
    becomes = "Checking whether your message was sent."
  elseif in_turn then
    becomes, hint = "The reply was interrupted.", notices.retry_hint()
    text = hint and text:gsub(" The next action starts it again%.$", "") or text
  end
  outgoing.host_gone(chat)
  if becomes then
    local count
    text, count = text:gsub("^(.-%.) ", "%1 " .. becomes .. " ", 1)
    text = count > 0 and text or ("%s. %s"):format((text:gsub("%.$", "")), becomes)
  end
  for _, item in pairs(chat.calls) do
    if item.status == "running" then
      tools.finished(chat, {
        call_id = item.call_id,
        name = item.name,
        title = item.title,
        summary = "interrupted",
        preview = "",
        status = "cancelled",
      })
    end
  end
  say.chat(chat, text, event.wanted and not becomes and severity.INFO or severity.WARN, { hint = hint })
  local asked = chat.asked_again or 0
  if #chat.outgoing > 0 and asked < ASKED_AGAIN and vim.v.exiting == vim.NIL then
    -- ask whether it was stored before the user changes and resends it
    chat.asked_again = asked + 1
    vim.schedule(function()
      session.attach(chat)
    end)
  end
end

return M
