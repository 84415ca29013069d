---What the chat asks of the host. Nothing here waits: every answer comes as an event.

local api = vim.api
local buffer = require("codecompanion.chat.buffer.text")
local draft = require("codecompanion.chat.wire.draft")
local outgoing = require("codecompanion.chat.wire.outgoing")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

M.READ_ONLY = "This chat is open in another Neovim and can only be read here. Close it there to go on with it here."

---@return table
local function host()
  return require("codecompanion.host")
end

---Open the chat in the host: a new one, or the stored one it belongs to (also after the host has been restarted).
---@param chat CodeCompanion.Chat
---@param opts? { adapter?: string, model?: string }
function M.attach(chat, opts)
  if chat.attached ~= "no" or chat.closed then
    return -- a chat that was closed before its turn came would keep others from it
  end
  chat.attached = "opening"
  local unsure = outgoing.unsure(chat)
  host().notify("open_chat", {
    chat = chat.id,
    snapshot = require("codecompanion.editor").snapshot(),
    adapter = opts and opts.adapter or nil,
    model = opts and opts.model or nil,
    resume = (chat.known or chat.stored) and chat.id or nil,
    unconfirmed = #unsure > 0 and vim.tbl_map(function(entry)
      return entry.key
    end, unsure) or nil,
  })
  vim.schedule(function()
    require("codecompanion.chat.wire.events") -- loaded while the host is starting, not before the first paint
  end)
end

---Send a verb for the chat; a chat that a restarted host does not know yet is opened again first. A chat that another
---Neovim has open takes none.
---@param chat CodeCompanion.Chat
---@param verb string
---@param payload? table
function M.notify(chat, verb, payload)
  if chat.read_only then
    chat.said = nil -- each action of the user gets its answer
    say.chat(chat, M.READ_ONLY, severity.ERROR)
    return
  end
  M.attach(chat)
  host().notify(verb, vim.tbl_extend("force", { chat = chat.id }, payload or {}))
end

---The same with an answer.
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

---Send what stands in the input region, or carry out the slash command that stands there.
---@param chat CodeCompanion.Chat
function M.submit(chat)
  buffer.ensure_input(chat)
  local text = buffer.input_text(chat)
  if text:find("^%s*$") then
    return
  end
  if require("codecompanion.slash").execute(chat, text) then
    return
  end
  if chat.read_only then
    chat.said = nil -- each action of the user gets its answer
    say.chat(chat, M.READ_ONLY, severity.ERROR)
    return
  end
  local edit = draft.editing(chat)
  if edit then
    return require("codecompanion.chat.ui.fork").send(chat, edit, text)
  end
  draft.save(chat) -- exactly these words: storing them as a message takes them out of the drafts
  local sent ---@type CodeCompanion.Outgoing
  buffer.edit(chat, function() -- one edit: what an edit costs beside its lines is most of what is felt
    draft.take(chat)
    sent = outgoing.add(chat, text)
  end)
  if api.nvim_get_current_buf() == chat.bufnr then
    outgoing.cursor_to_input(chat)
  end
  M.notify(chat, "submit", {
    submit_id = sent.submit_id,
    key = sent.key,
    text = text,
    snapshot = require("codecompanion.editor").snapshot(),
  })
  chat.draft.saved = ""
end

---Stop whatever runs.
---@param chat CodeCompanion.Chat
function M.cancel(chat)
  M.notify(chat, "cancel")
end

---Summarise the conversation; asks first, unless told otherwise.
---@param chat CodeCompanion.Chat
---@param instructions string
---@param force? boolean Do not ask
---@param refuse? fun(reason: string) Told when the answer is No: the words stay in the input
function M.compact(chat, instructions, force, refuse)
  local function go(go_on)
    M.notify(chat, "compact", { instructions = instructions, go_on = go_on })
  end
  if force or chat.read_only then
    return go(false)
  end
  require("codecompanion.chat.lists.compact_question").ask(chat, function(go_on)
    go(go_on)
  end, function()
    if refuse and instructions ~= "" then
      refuse("Not compacted; your words are back in the input.")
    end
  end, function(why)
    if refuse and instructions ~= "" and chat.state == "idle" then
      return refuse(("Nothing to compact: %s. Your words are back in the input."):format(why))
    end
    go(false) -- the host says so; or it is queued, and there may be something by then
  end)
end

---Empty what the model sees; the history keeps everything, and an undo brings it back.
---@param chat CodeCompanion.Chat
function M.clear(chat)
  chat.clearing = true
  M.notify(chat, "clear")
end

---Answer the last message again.
---@param chat CodeCompanion.Chat
function M.regenerate(chat)
  M.notify(chat, "regenerate", { snapshot = require("codecompanion.editor").snapshot() })
end

---Carry out what the user has typed; `refuse` is told why it could not be.
---@param chat CodeCompanion.Chat
---@param verb string
---@param payload table
---@param refuse fun(reason: string)
function M.command(chat, verb, payload, refuse)
  if chat.read_only then
    chat.said = nil -- each action of the user gets its answer
    return refuse(M.READ_ONLY)
  end
  M.request(chat, verb, payload, function() end, refuse)
end

---Let the model go on with a reply that was cut off.
---@param chat CodeCompanion.Chat
---@param refuse fun(reason: string)
function M.go_on(chat, refuse)
  M.command(chat, "go_on", { snapshot = require("codecompanion.editor").snapshot() }, refuse)
end

---Switch approvals off or on.
---@param chat CodeCompanion.Chat
function M.toggle_yolo(chat)
  chat.yolo = not chat.yolo
  M.notify(chat, "set_yolo", { on = chat.yolo })
  local sentence = require("codecompanion.chat.state.yolo").sentence(chat.yolo)
  say.chat(chat, sentence, chat.yolo and severity.WARN or severity.INFO)
  require("codecompanion.chat.state.status").publish(chat)
  require("codecompanion.chat.draw.activity").draw(chat)
end

---Talk to another adapter or model.
---@param chat CodeCompanion.Chat
---@param adapter string
---@param model? string
function M.set_model(chat, adapter, model)
  local secrets, problem = require("codecompanion.config").secrets(adapter)
  if problem then
    say.chat(chat, problem, severity.ERROR)
  end
  M.notify(chat, "set_model", { adapter = adapter, model = model, secrets = secrets })
end

---Give the host the key of an adapter whose key is a function; `hello` brings only that of the configured one.
---@param chat CodeCompanion.Chat
function M.send_secrets(chat)
  local secrets, problem = require("codecompanion.config").secrets(chat.adapter)
  if problem then
    say.chat(chat, problem, severity.ERROR)
  elseif next(secrets) ~= nil then
    host().notify("give_secrets", { secrets = secrets })
  end
end

---Evaluate the functions of the config that depend on adapter and model, and tell the host.
---@param chat CodeCompanion.Chat
function M.send_overrides(chat)
  local overrides = require("codecompanion.config").evaluate_overrides({
    adapter = chat.adapter,
    model = chat.model,
    window = chat.window,
  })
  if next(overrides) ~= nil and not chat.read_only then
    host().notify("set_overrides", { chat = chat.id, context_management = overrides })
  end
end

return M
