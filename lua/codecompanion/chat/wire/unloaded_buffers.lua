---Handles events of a chat whose buffer is unloaded or waits for a redraw: only its state is updated. The content is
---drawn from the log when the buffer is shown again.

local activity = require("codecompanion.chat.draw.activity")
local approval = require("codecompanion.chat.question.approval")
local attention = require("codecompanion.chat.question.attention")
local autocmds = require("codecompanion.chat.state.autocmds")
local draft = require("codecompanion.chat.wire.draft")
local notices = require("codecompanion.chat.draw.notices")
local outgoing = require("codecompanion.chat.wire.outgoing")
local redraw = require("codecompanion.chat.wire.redraw_chat")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local severity = require("codecompanion.severity")

---@type table<string, fun(chat: CodeCompanion.Chat, event: table)>
local M = {}

---@param chat CodeCompanion.Chat
---@param text string
local function give_back(chat, text)
  if vim.api.nvim_buf_is_loaded(chat.bufnr) then
    return draft.prepend(chat, text)
  end
  local kept = chat.draft.kept or ""
  chat.draft.kept = kept == "" and text or (text .. draft.BETWEEN .. kept)
  draft.save(chat)
end

---@param chat CodeCompanion.Chat
local function recall_all(chat)
  local text = outgoing.withdraw(chat)
  if text then
    give_back(chat, text)
  end
end

function M.chat_opened(chat, event)
  local known = chat.known
  local has_draft = known and not chat.read_only
  chat.attached, chat.known = "yes", true
  chat.adapter, chat.model, chat.window = event.adapter, event.model, event.window
  chat.other_model = nil
  chat.title, chat.read_only = event.title, event.read_only
  notices.owner_is_asked(chat)
  local stored = draft.take_stored(chat, event, has_draft)
  if stored ~= "" then
    give_back(chat, stored)
  end
  local sent, text = outgoing.settle(chat, event.stored or {})
  for _, pair in ipairs(sent) do
    outgoing.drop(chat, pair.outgoing.submit_id) -- it will be drawn from the log
  end
  if text then
    give_back(chat, text)
  end
  if not known then
    autocmds.fire(chat, "ChatOpened", event)
  end
  session.send_secrets(chat)
  session.send_overrides(chat)
end

function M.model_changed(chat, event)
  chat.adapter, chat.model, chat.window = event.adapter, event.model, event.window
  chat.other_model = nil
  session.send_overrides(chat)
end

function M.policy_changed(chat, event)
  chat.policy = event.policy
end

---@param chat CodeCompanion.Chat
---@param submit_id integer
---@param mark string Text for the reason why the message waits
local function keep(chat, submit_id, mark)
  for _, message in ipairs(chat.outgoing) do
    message.queued = message.submit_id == submit_id and mark or message.queued
  end
  draft.save(chat)
end

function M.queued(chat, event)
  keep(chat, event.submit_id, "queued")
end

function M.gathering(chat, event)
  keep(chat, event.submit_id, event.what)
end

function M.file_updated() end

function M.code_gathered(chat, event)
  autocmds.fire(chat, "CodeGathered", event)
end

function M.message_sent(chat, event)
  notices.question_changed(chat)
  outgoing.drop(chat, event.submit_id)
  draft.save(chat) -- the draft is no longer needed
  autocmds.fire(chat, "ChatSubmitted", event)
end

function M.submit_failed(chat, event)
  outgoing.drop(chat, event.submit_id)
  give_back(chat, event.text)
  say.line(event.error, severity.WARN)
end

function M.reply_started(chat)
  notices.happened(chat, "reply")
  notices.happened(chat, "answer")
end

function M.tool_started(chat, event)
  autocmds.fire(chat, "ToolStarted", event)
end

function M.tool_finished(chat, event)
  autocmds.fire(chat, "ToolFinished", event)
end

function M.context_edited(chat, event)
  autocmds.fire(chat, "ChatEdited", event)
end

function M.compaction_started(chat, event)
  chat.compaction = event
  autocmds.fire(chat, "ChatCompacting", event)
end

function M.compacted(chat, event)
  chat.compaction, chat.warning_level = nil, nil
  notices.happened(chat, "compaction")
  autocmds.fire(chat, "ChatCompacted", event)
end

function M.compaction_failed(chat, event)
  chat.compaction = nil
  autocmds.fire(chat, "ChatCompactFailed", event)
end

function M.turn_finished(chat, event)
  activity.stop_retry(chat)
  approval.close_all(chat)
  chat.state, chat.label, chat.header, chat.cut = "idle", "", false, false
  attention.finished(chat, event)
end

M.approval_requested = approval.requested_away

function M.approval_closed(chat, event)
  approval.closed(chat, event.call_id)
  autocmds.fire(chat, "ApprovalAnswered", event)
end

function M.request_failed(chat, event)
  if event.gone then
    return -- `host_exit` has reported it
  end
  local loaded = vim.api.nvim_buf_is_loaded(chat.bufnr)
  if event.verb == "redraw_chat" or event.verb == "open_chat" then
    chat.attached, chat.awaiting = "no", nil
  end
  if event.verb == "redraw_chat" and loaded then
    return redraw.redraw(chat) -- a host that has lost the chat opens it again
  end
  if event.verb == "open_chat" or event.verb == "submit" then
    recall_all(chat)
  end
  if loaded and not chat.awaiting then
    return say.chat(chat, event.error, severity.ERROR)
  end
  say.line(event.error, severity.ERROR)
end

function M.trust_waits(chat, event)
  notices.happened(chat, "trust")
  local text = notices.waiting_files(event)
  if text then
    notices.remember_away(chat, text, severity.WARN, { is_aside = true })
    notices.holds_until(chat, text, "trust")
  end
end

function M.notice(chat, event)
  if event.level == "ERROR" or event.level == "WARN" then
    local level = severity[event.level]
    notices.remember_away(chat, event.text, level, { while_paused = event.while_paused })
    notices.holds_until_told(chat, event)
    say.line(event.text, level)
  end
end

function M.host_exit(chat, event)
  chat.attached, chat.awaiting = "no", nil
  chat.state, chat.label, chat.header, chat.compaction = "idle", "", false, nil
  activity.stop_retry(chat)
  approval.close_all(chat)
  if event.never_ready then
    recall_all(chat)
  end
  outgoing.host_gone(chat)
end

---Events whose handlers do not draw.
local ALWAYS = { state = true, meter = true, policy_event = true, retrying = true, title_changed = true }
---Events that are followed by the whole chat.
local BEGINS = { redrawn = true, chat_opened = true }

---Handle an event of a chat, whether it is drawn or not.
---@param chat CodeCompanion.Chat
---@param event table
---@return (fun(chat: CodeCompanion.Chat, event: table))?
return function(chat, event)
  local loaded = vim.api.nvim_buf_is_loaded(chat.bufnr)
  local drawn = loaded and not chat.awaiting
  if drawn or ALWAYS[event.type] or (loaded and BEGINS[event.type] and chat.awaiting == event.type) then
    return require("codecompanion.chat.wire.events")[event.type]
  end
  return M[event.type]
end
