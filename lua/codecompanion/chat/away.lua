---What a chat takes in while its buffer is unloaded, or waits to be drawn anew: its state, and nothing that is drawn.
---What is drawn comes from the log when the buffer is shown again.

local autocmds = require("codecompanion.chat.autocmds")
local severity = require("codecompanion.severity")

---@type table<string, fun(chat: CodeCompanion.Chat, event: table)>
local M = {}

---@param chat CodeCompanion.Chat
---@param submit_id integer
---@return table?
local function take(chat, submit_id)
  for index, outgoing in ipairs(chat.outgoing) do
    if outgoing.submit_id == submit_id then
      return table.remove(chat.outgoing, index)
    end
  end
end

---@param chat CodeCompanion.Chat
---@param text string
local function give_back(chat, text)
  local draft = require("codecompanion.chat.draft")
  if vim.api.nvim_buf_is_loaded(chat.bufnr) then
    return draft.prepend(chat, text)
  end
  local kept = chat.draft.kept or ""
  chat.draft.kept = kept == "" and text or (text .. "\n" .. kept)
  draft.save(chat)
end

function M.chat_opened(chat, event)
  local known = chat.known
  chat.attached, chat.known = "yes", true
  chat.adapter, chat.model, chat.window = event.adapter, event.model, event.window
  chat.title, chat.read_only = event.title, event.read_only
  if not known and (event.draft or "") ~= "" then
    give_back(chat, event.draft)
  end
  if not known then
    autocmds.fire(chat, "ChatOpened", event)
  end
  require("codecompanion.chat.session").send_secrets(chat)
  require("codecompanion.chat.session").send_overrides(chat)
end

function M.model_changed(chat, event)
  chat.adapter, chat.model, chat.window = event.adapter, event.model, event.window
  require("codecompanion.chat.session").send_overrides(chat)
end

function M.policy_changed(chat, event)
  chat.policy = event.policy
end

function M.queued(chat, event)
  for _, outgoing in ipairs(chat.outgoing) do
    outgoing.queued = outgoing.queued or outgoing.submit_id == event.submit_id
  end
end

function M.message_sent(chat, event)
  take(chat, event.submit_id)
  autocmds.fire(chat, "ChatSubmitted", event)
end

function M.submit_failed(chat, event)
  take(chat, event.submit_id)
  give_back(chat, event.text)
  require("codecompanion.say").line(event.error, severity.WARN)
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
  autocmds.fire(chat, "ChatCompacted", event)
end

function M.compaction_failed(chat, event)
  chat.compaction = nil
  autocmds.fire(chat, "ChatCompactFailed", event)
end

function M.turn_finished(chat, event)
  require("codecompanion.chat.activity").stop_retry(chat)
  chat.state, chat.label, chat.header, chat.cut = "idle", "", false, false
  autocmds.fire(chat, event.reason == "stopped" and "ChatStopped" or "ChatDone", event)
end

function M.request_failed(chat, event)
  if event.gone then
    return -- `host_exit` has said it
  end
  if event.verb == "redraw_chat" or event.verb == "open_chat" then
    chat.attached = "no"
  end
  require("codecompanion.say").line(event.error, severity.ERROR)
end

function M.notice(_, event)
  if event.level == "ERROR" or event.level == "WARN" then
    require("codecompanion.say").line(event.text, severity[event.level])
  end
end

function M.host_exit(chat, event)
  chat.attached, chat.awaiting = "no", nil
  chat.state, chat.label, chat.header, chat.compaction = "idle", "", false, nil
  require("codecompanion.chat.activity").stop_retry(chat)
  local texts = {}
  for _, outgoing in ipairs(chat.outgoing) do
    texts[#texts + 1] = outgoing.text
    if not event.never_ready then
      chat.unconfirmed[#chat.unconfirmed + 1] = { key = outgoing.key, text = outgoing.text }
    end
  end
  chat.outgoing = {}
  if #texts > 0 then
    give_back(chat, table.concat(texts, "\n"))
  end
end

---These draw nothing themselves.
local ALWAYS = { state = true, meter = true, policy_event = true, retrying = true }
---The whole chat follows these.
local BEGINS = { redrawn = true, chat_opened = true }

---The handler of an event, for a chat that may be drawn or not.
---@param chat CodeCompanion.Chat
---@param event table
---@return (fun(chat: CodeCompanion.Chat, event: table))?
return function(chat, event)
  local loaded = vim.api.nvim_buf_is_loaded(chat.bufnr)
  local drawn = loaded and not chat.awaiting
  if drawn or ALWAYS[event.type] or (loaded and BEGINS[event.type] and chat.awaiting == event.type) then
    return require("codecompanion.chat.events")[event.type]
  end
  return M[event.type]
end
