---A chat without a window: requests whose answer goes somewhere else than into a chat buffer, such as a command line or
---a commit message. It is a chat like any other: logged, counted, paid from the same budgets, on the same engine. What
---is different is said by its `purpose` (`requests.OpenChat`): a system prompt of its own, no tools, and no place in
---the list of chats. Its log can be opened as a chat by its id.

local host = require("codecompanion.host")

local M = {}

---@alias CodeCompanion.Purpose "command_line"|"commit_message"

---@class CodeCompanion.HeadlessOptions
---@field purpose CodeCompanion.Purpose
---@field what string What is being done, for the user: `a command line`
---@field adapter? string|{ name: string, model?: string } The chat's adapter when nil
---@field timeout_ms integer After this long a turn is stopped
---@field on_event? fun(event: table) Every event of the chat: `text` is a piece of the reply
---@field on_done fun(answer: CodeCompanion.HeadlessAnswer) Called once for every submit

---@class CodeCompanion.HeadlessAnswer
---@field text string The reply, "" when there is none
---@field error? string One sentence: why there is none, or only a part of it
---@field stopped? boolean The user has stopped it

---@class CodeCompanion.HeadlessChat
---@field id string
---@field options CodeCompanion.HeadlessOptions
---@field waits boolean A submit has not been answered
---@field text string What has arrived of the reply
---@field submit_id integer
---@field said? string What the host had to say about it: an error
---@field stopped? boolean
---@field late? boolean Its time is up
---@field cut? boolean The reply ended before its end
---@field nonce string What makes the keys of its submits unique
---@field closed? boolean
---@field unsubscribe fun()
---@field timer? uv.uv_timer_t
---@field compose? fun(opened: table): string Makes the message once the chat is open
local Chat = {}
Chat.__index = Chat

---@type table<string, CodeCompanion.HeadlessChat>
local open = {}

---@return string
local function new_id()
  return (vim.uv.random(12):gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end))
end

---@param reference? string|{ name: string, model?: string }
---@return string? adapter
---@return string? model
local function named(reference)
  if type(reference) == "table" then
    return reference.name, reference.model
  end
  return reference, nil
end

function Chat:_stop_timer()
  if self.timer then
    self.timer:stop()
    self.timer:close()
    self.timer = nil
  end
end

---@param problem? string
function Chat:_finish(problem)
  if not self.waits then
    return
  end
  self.waits = false
  self:_stop_timer()
  if self.late then
    local seconds = self.options.timeout_ms / 1000
    problem = ("The model did not answer in %g s; nothing was changed."):format(seconds)
  elseif self.stopped then
    problem = "Stopped; nothing was changed."
  end
  self.options.on_done({ text = self.text, error = problem, stopped = self.stopped and not self.late or nil })
end

---@param event table
function Chat:_take(event)
  if event.type == "host_exit" then
    return self:_finish(event.text)
  elseif event.chat ~= self.id then
    return
  end
  if self.options.on_event then
    self.options.on_event(event)
  end
  if event.type == "chat_opened" and self.compose then
    local compose = self.compose
    self.compose = nil
    self:submit(compose(event))
  elseif event.type == "reply_started" then
    self.text = ""
  elseif event.type == "text" then
    self.text = self.text .. event.text
  elseif event.type == "reply_finished" then
    self.cut = self.cut or event.stop ~= "stop" and event.stop ~= "tool_calls"
  elseif event.type == "notice" and event.level == "ERROR" then
    self.said = event.text
  elseif event.type == "submit_failed" or event.type == "request_failed" then
    self:_finish(event.error)
  elseif event.type == "approval_requested" then -- nobody sees the question
    host.notify("approve", { chat = self.id, call_id = event.call_id, decision = "cancel" })
  elseif event.type == "turn_finished" then
    local problem = event.error ~= "" and event.error or self.said
    if event.reason == "done" then
      problem = self.cut and "The reply was cut off before its end; nothing was changed." or nil
    elseif event.reason == "stopped" and not problem then
      problem = "Stopped; nothing was changed."
    end
    self:_finish(problem or (event.reason ~= "done" and "The turn ended early.") or nil)
  end
end

---Open a chat; nothing is sent yet.
---@param options CodeCompanion.HeadlessOptions
---@return CodeCompanion.HeadlessChat
function M.open(options)
  local chat = setmetatable({ id = new_id(), options = options, waits = false, text = "", submit_id = 0 }, Chat)
  chat.nonce = new_id()
  chat.unsubscribe = host.subscribe(function(event)
    chat:_take(event)
  end)
  open[chat.id] = chat
  local adapter, model = named(options.adapter)
  local payload = { chat = chat.id, snapshot = require("codecompanion.editor").snapshot(), purpose = options.purpose }
  if adapter then
    payload.adapter, payload.model = adapter, model
    local secrets = require("codecompanion.config").secrets(adapter)
    if next(secrets) ~= nil then
      host.notify("give_secrets", { secrets = secrets })
    end
  end
  host.notify("open_chat", payload)
  return chat
end

---An answer is waited for, so long and no longer.
function Chat:_wait()
  self:_stop_timer()
  self.waits, self.text, self.said, self.stopped, self.late, self.cut = true, "", nil, nil, nil, nil
  self.timer = vim.uv.new_timer()
  self.timer:start(
    self.options.timeout_ms,
    0,
    vim.schedule_wrap(function()
      if self.waits then
        self.late = true
        self:cancel()
      end
    end)
  )
end

---Send a message; `on_done` gets the answer.
---@param text string
function Chat:submit(text)
  self:_wait()
  self.submit_id = self.submit_id + 1
  host.notify("submit", {
    chat = self.id,
    submit_id = self.submit_id,
    key = self.nonce .. ":" .. self.submit_id,
    text = text,
    snapshot = require("codecompanion.editor").snapshot(),
  })
end

---Stop what runs, at once: what still arrives is not taken.
function Chat:cancel()
  if not self.waits then
    return
  end
  self.stopped = true
  host.notify("cancel", { chat = self.id })
  self:_finish()
end

---Give the chat back; its log stays.
function Chat:close()
  if self.closed then
    return
  end
  self:cancel()
  self.closed = true
  open[self.id] = nil
  self.unsubscribe()
  host.notify("close_chat", { chat = self.id })
end

---Stop everything that runs without a window (`:CodeCompanion cancel`).
---@return string[] stopped What was
function M.cancel_all()
  local stopped = {}
  for _, chat in pairs(open) do
    if chat.waits then
      stopped[#stopped + 1] = chat.options.what
      chat:cancel()
    end
  end
  table.sort(stopped)
  return stopped
end

---Ask once, and give the chat back.
---@param options CodeCompanion.HeadlessOptions
---@param text string|fun(opened: table): string A function is told of the model first (`chat_opened`)
---@return CodeCompanion.HeadlessChat
function M.ask(options, text)
  local chat
  local on_done = options.on_done
  chat = M.open(vim.tbl_extend("force", options, {
    on_done = function(answer)
      vim.schedule(function()
        chat:close()
      end)
      on_done(answer)
    end,
  }))
  if type(text) == "function" then
    chat.compose = text
    chat:_wait()
  else
    chat:submit(text)
  end
  return chat
end

return M
