---Sends the chat's requests to the host. Nothing here blocks: every answer arrives as an event.

local api = vim.api
local choice = require("codecompanion.adapters.default_adapter")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

M.READ_ONLY = "This chat is open in another Neovim; close it there to continue here."

---The message about a read-only chat and its short forms, for command lines narrower than 80 columns.
M.READ_ONLY_LINES = { M.READ_ONLY, "Open in another Neovim: close it there", "Open in another Neovim" }

---@return table
local function host()
  return require("codecompanion.host")
end

---Return the messages that a host may have stored before it exited.
---@param chat CodeCompanion.Chat
---@return CodeCompanion.Outgoing[]
function M.unsure(chat)
  return vim.tbl_filter(function(outgoing)
    return outgoing.unsure == true
  end, chat.outgoing)
end

---Open the chat in the host as a new or stored chat, even after a restart of the host.
---@param chat CodeCompanion.Chat
---A read-only chat is requested again, because its owner may have closed it.
---@param opts? { adapter?: string, model?: string }
function M.attach(chat, opts)
  if chat.read_only and chat.attached == "yes" then
    chat.attached = "no"
  end
  if chat.attached ~= "no" or chat.closed then
    return -- a chat that was closed while this waited would block other owners
  end
  chat.attached = "opening"
  local unsure, is_stored = M.unsure(chat), chat.known or chat.stored
  local adapter, model = opts and opts.adapter, opts and opts.model
  chat.is_adapter_chosen = chat.is_adapter_chosen or adapter ~= nil or chat.stored == true
  if not adapter and not is_stored then
    local chosen, its_model = choice.for_new_chat(require("codecompanion.config").options)
    adapter, model = chosen, model or its_model
  end
  host().notify("open_chat", {
    chat = chat.id,
    snapshot = require("codecompanion.editor_context.snapshot").snapshot(),
    adapter = adapter or nil,
    model = model or nil,
    resume = is_stored and chat.id or nil,
    unconfirmed = #unsure > 0 and vim.tbl_map(function(entry)
      return entry.key
    end, unsure) or nil,
    copy = chat.nonce,
    shown = chat.shown,
  })
end

---Send a verb for the chat; a chat unknown to a restarted host is reopened first.
---@param chat CodeCompanion.Chat
---@param verb string
---@param payload? table
function M.notify(chat, verb, payload)
  M.attach(chat)
  host().notify(verb, vim.tbl_extend("force", { chat = chat.id }, payload or {}))
end

---Send a request for the chat and handle its answer.
---@param chat CodeCompanion.Chat
---@param verb string
---@param payload table
---@param callback fun(result: any) Called on success
---@param on_error? fun(reason: string) Called on failure, which is otherwise shown in the buffer
function M.request(chat, verb, payload, callback, on_error)
  M.attach(chat)
  host().request(verb, vim.tbl_extend("force", { chat = chat.id }, payload), function(err, result)
    if not api.nvim_buf_is_loaded(chat.bufnr) then
      return
    end
    if err and on_error then
      on_error(chat.read_only and M.READ_ONLY or err)
    elseif err then
      say.chat(chat, chat.read_only and M.READ_ONLY or err, severity.ERROR)
    else
      callback(result)
    end
  end)
end

---Stop all running work.
---@param chat CodeCompanion.Chat
function M.cancel(chat)
  M.notify(chat, "cancel")
end

---Remove all messages from the view; the history keeps everything, and undo restores them.
---@param chat CodeCompanion.Chat
function M.clear(chat)
  chat.clearing = true
  M.notify(chat, "clear")
end

---Regenerate the answer to the last message.
---@param chat CodeCompanion.Chat
function M.regenerate(chat)
  M.notify(chat, "regenerate", { snapshot = require("codecompanion.editor_context.snapshot").snapshot() })
end

---Send a user's command to the host; `refuse` is called with the reason for a failure.
---@param chat CodeCompanion.Chat
---@param verb string
---@param payload table
---@param refuse fun(reason: string)
function M.command(chat, verb, payload, refuse)
  M.request(chat, verb, payload, function() end, refuse)
end

---Let the model continue a truncated reply.
---@param chat CodeCompanion.Chat
---@param refuse fun(reason: string)
function M.continue_reply(chat, refuse)
  M.command(chat, "go_on", { snapshot = require("codecompanion.editor_context.snapshot").snapshot() }, refuse)
end

---Switch to another adapter or model.
---@param chat CodeCompanion.Chat
---@param adapter string
---@param model? string
---@param done? fun() Called once the chat uses it
function M.set_model(chat, adapter, model, done)
  local secrets, problem = require("codecompanion.config").secrets(adapter)
  if problem then
    say.chat(chat, problem, severity.ERROR)
  end
  local payload = { adapter = adapter, model = model, secrets = secrets }
  chat.is_adapter_chosen = true
  if done then
    M.request(chat, "set_model", payload, done)
  else
    M.notify(chat, "set_model", payload)
  end
end

---Send the host the key of an adapter whose key is a function; `hello` includes only the key of the configured adapter.
---@param chat CodeCompanion.Chat
function M.send_secrets(chat)
  local secrets, problem = require("codecompanion.config").secrets(chat.adapter)
  if problem then
    say.chat(chat, problem, severity.ERROR)
  elseif next(secrets) ~= nil then
    host().notify("give_secrets", { secrets = secrets })
  end
end

---Evaluate the configured functions that depend on adapter and model, and send the results to the host.
---@param chat CodeCompanion.Chat
function M.send_overrides(chat)
  local overrides, wrong = require("codecompanion.config").evaluate_overrides({
    chat = chat.id,
    adapter = chat.adapter,
    model = chat.model,
    window = chat.window,
  })
  if (next(overrides) ~= nil or #wrong > 0) and not chat.read_only then
    host().notify("set_overrides", { chat = chat.id, context_management = overrides, wrong = wrong })
  end
end

return M
