---User autocmds and their payloads. The table below is the documentation, from which the help file is generated.
---
---Every payload has `chat` (the chat id) and `bufnr`; the other fields are listed with their meaning.

local policies = require("codecompanion.chat.state.policy_autocmds")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

---@class CodeCompanion.Autocmd
---@field name string Pattern of the User autocmd
---@field description string When it fires
---@field data [string, string][] Fields of `args.data` besides `chat` and `bufnr`: name, then type and meaning

---@type CodeCompanion.Autocmd[]
M.list = {
  {
    name = "CodeCompanionChatOpened",
    description = "A chat was opened: its buffer exists and the host has loaded it.",
    data = {
      { "resumed", "boolean: restored from the history" },
      { "adapter", "string" },
      { "model", "string" },
    },
  },
  { name = "CodeCompanionChatClosed", description = "A chat was closed; its history is kept.", data = {} },
  {
    name = "CodeCompanionChatSubmitted",
    description = "Your message was stored and is being sent.",
    data = {
      { "submit_id", "integer: number of your message" },
      { "message_id", "string" },
      { "cycle", "integer: number of the cycle that the message starts" },
      { "tokens", "integer: size of the message, 0 if unknown" },
    },
  },
  {
    name = "CodeCompanionCodeGathered",
    description = "Code was gathered for the newest message.",
    data = {
      { "message_id", "string" },
      { "title", "string: number of snippets and files" },
      { "body", "string: one line per snippet, best first: `path:10-40` …" },
      { "tokens", "integer: size of the code" },
      { "duration_ms", "integer" },
    },
  },
  {
    name = "CodeCompanionChatDone",
    description = "A turn is complete and was not stopped.",
    data = {
      { "reason", 'string: "done", "failed" or "limit"' },
      { "error", "string: one sentence, empty on success" },
      { "duration_ms", "integer" },
      { "unseen", "boolean: the chat is not visible" },
    },
  },
  {
    name = "CodeCompanionChatStopped",
    description = "You stopped a turn.",
    data = { { "duration_ms", "integer" } },
  },
  {
    name = "CodeCompanionChatEdited",
    description = "Tool results were cleared from the context, or cut to fit.",
    data = {
      { "cleared", "integer: number of cleared results" },
      { "cut", "table<string, integer>: percentage still sent, by message id" },
      { "tokens_before", "integer: size of the request before clearing" },
      { "tokens_after", "integer" },
      { "call_ids", "string[]" },
    },
  },
  {
    name = "CodeCompanionChatCompacting",
    description = "A compaction began; exactly one Compacted or CompactFailed follows.",
    data = {
      { "compaction_id", "string: same id as in the event that follows" },
      { "trigger", 'string: "proactive", "reactive" or "manual"' },
      { "summariser", "string: author of the summary" },
    },
  },
  {
    name = "CodeCompanionChatCompacted",
    description = "A summary replaced the conversation in the next request.",
    data = {
      { "compaction_id", "string" },
      { "trigger", 'string: "proactive", "reactive" or "manual"' },
      { "summariser", "string" },
      { "messages", "integer: number of replaced messages" },
      { "tokens_before", "integer: size of the request before compaction" },
      { "tokens_after", "integer" },
      { "duration_ms", "integer" },
    },
  },
  {
    name = "CodeCompanionChatCompactFailed",
    description = "A compaction failed or was cancelled; nothing was changed.",
    data = {
      { "compaction_id", "string" },
      { "reason", "string: one sentence" },
      { "cancelled", "boolean: you stopped it" },
    },
  },
  {
    name = "CodeCompanionToolStarted",
    description = "A tool call began or is waiting for your approval.",
    data = { { "call_id", "string" }, { "name", "string" }, { "title", "string" } },
  },
  {
    name = "CodeCompanionApprovalWaiting",
    description = "A tool call is waiting for your approval.",
    data = {
      { "call_id", "string" },
      { "name", "string" },
      { "title", "string" },
      { "unseen", "boolean: the chat is not visible" },
    },
  },
  {
    name = "CodeCompanionApprovalAnswered",
    description = "A tool call is no longer waiting: you answered, or the turn was stopped.",
    data = { { "call_id", "string" }, { "decision", 'string: "once", "always", "reject" or "cancel"' } },
  },
  {
    name = "CodeCompanionToolFinished",
    description = "A tool call has its result.",
    data = {
      { "call_id", "string" },
      { "name", "string" },
      { "title", "string" },
      { "status", 'string: "ok", "error", "cancelled" or "rejected"' },
      { "tokens", "integer: size of the result" },
      { "duration_ms", "integer" },
      { "change", "table?: for a changed file its change_id, path, and the lines added and removed" },
    },
  },
}

vim.list_extend(M.list, policies.list)

local fields = {}
for _, autocmd in ipairs(M.list) do
  fields[autocmd.name] = autocmd.data
end

---@param chat CodeCompanion.Chat
---@param pattern string
---@param data table
local function exec(chat, pattern, data)
  data.chat, data.bufnr = chat.id, chat.bufnr
  local ok, problem = pcall(vim.api.nvim_exec_autocmds, "User", { pattern = pattern, data = data, modeline = false })
  if not ok then
    say.line(("An autocmd for User %s failed: %s"):format(pattern, problem), severity.ERROR)
  end
end

---Fire a User autocmd; the fields of the payload are copied from `event` according to the table above.
---@param chat CodeCompanion.Chat
---@param name string Without the prefix `CodeCompanion`
---@param event? table
function M.fire(chat, name, event)
  local pattern = "CodeCompanion" .. name
  local data = {}
  for _, field in ipairs(fields[pattern]) do
    data[field[1]] = event and event[field[1]]
  end
  exec(chat, pattern, data)
end

---Fire the User autocmd of a policy's named event, with all of its fields.
---@param chat CodeCompanion.Chat
---@param event CodeCompanion.Event.PolicyEvent
function M.fire_policy(chat, event)
  exec(
    chat,
    policies.pattern(event.name),
    vim.tbl_extend("force", event.fields, { compaction_id = event.compaction_id })
  )
end

return M
