---Runs a chat without a window, for requests whose reply is not shown in a chat buffer, such as an edit in place, a
---command line or a commit message. Otherwise it is a normal chat: logged, counted, subject to the same budgets and on
---the same engine. It appears in the list of chats once the user has opened it. For `purpose` see `requests.OpenChat`.

local choice = require("codecompanion.adapters.default_adapter")
local host = require("codecompanion.host")
local new_id = require("codecompanion.values.new_id")

local M = {}

---@class CodeCompanion.HeadlessOptions
---@field purpose CodeCompanion.Purpose
---@field adapter? string|{ name: string, model?: string } Defaults to the chat's adapter
---@field on_event fun(event: table) Receives every event of the chat, and the exit of the host

---@alias CodeCompanion.Purpose "command_line"|"commit_message"|"edit_in_place"

---@class CodeCompanion.HeadlessChat
---@field id string
---@field options CodeCompanion.HeadlessOptions
---@field is_open boolean Whether the host has opened the chat
---@field submits integer Number of messages sent
---@field key string Makes the keys of its messages unique
---@field unsubscribe? fun() nil while not subscribed
local Chat = {}
Chat.__index = Chat

---@param chat CodeCompanion.HeadlessChat
local function listen(chat)
  chat.unsubscribe = chat.unsubscribe
    or host.subscribe(function(event)
      if event.type == "host_exit" then
        chat.is_open = false
        chat.options.on_event(event)
      elseif event.chat == chat.id then
        chat.options.on_event(event)
      end
    end)
end

---@return table
local function snapshot()
  return require("codecompanion.editor_context.snapshot").snapshot()
end

---Open a chat without sending anything.
---@param options CodeCompanion.HeadlessOptions
---@return CodeCompanion.HeadlessChat
function M.open(options)
  local id = new_id()
  local chat = setmetatable({ id = id, options = options, is_open = true, submits = 0, key = new_id() }, Chat)
  listen(chat)
  local adapter = type(options.adapter) == "table" and options.adapter or { name = options.adapter }
  if not adapter.name then
    local all = require("codecompanion.config").options
    choice.tell(all)
    adapter.name, adapter.model = choice.for_new_chat(all)
  end
  local secrets = adapter.name and require("codecompanion.config").secrets(adapter.name) or {}
  if next(secrets) ~= nil then
    host.notify("give_secrets", { secrets = secrets })
  end
  local payload = { chat = id, snapshot = snapshot(), adapter = adapter.name, model = adapter.model }
  payload.purpose = options.purpose
  host.notify("open_chat", payload)
  return chat
end

---Return whether the chat now has its own buffer.
---@return boolean
function Chat:has_window()
  return vim.iter(vim.api.nvim_list_bufs()):any(function(bufnr)
    local shown = vim.api.nvim_buf_is_loaded(bufnr) and vim.b[bufnr].codecompanion_chat
    return shown and shown.id == self.id or false
  end)
end

---Send a message. A chat that was closed, or whose host has exited, is reopened from its log.
---@param text string
---@param edit? table Target of an edit in place, as in `requests.EditTarget`
function Chat:submit(text, edit)
  local now = snapshot()
  if not self.is_open and not self:has_window() then
    host.notify("open_chat", { chat = self.id, snapshot = now, resume = self.id, purpose = self.options.purpose })
  end
  self.is_open = true
  listen(self)
  self.submits = self.submits + 1
  local key = ("%s:%d"):format(self.key, self.submits)
  local payload = { chat = self.id, submit_id = self.submits, key = key, text = text, snapshot = now }
  payload.edit = edit
  host.notify("submit", payload)
end

---Stop the running request.
function Chat:cancel()
  host.notify("cancel", { chat = self.id })
end

---Release the chat in the host so that a buffer can open it, unless it already has one.
function Chat:give_back()
  if self.is_open and not self:has_window() then
    host.notify("close_chat", { chat = self.id })
  end
  self.is_open = false
end

---Stop listening and release the chat, which stays in the log.
function Chat:close()
  if self.unsubscribe then
    self.unsubscribe()
    self.unsubscribe = nil
  end
  self:give_back()
end

return M
