---Asks the model a single question without a window; the answer is text, such as a command line. A question can be
---stopped and has a time limit; a failure is reported in one sentence and changes nothing.

local choice = require("codecompanion.adapters.default_adapter")
local headless_chat = require("codecompanion.headless.headless_chat")
local host = require("codecompanion.host")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

---@class CodeCompanion.HeadlessQuestion
---@field purpose CodeCompanion.Purpose
---@field what string The activity, for messages: `the command line`
---@field options { adapter?: string|table, timeout: integer } As configured; the question is stopped after `timeout` ms
---@field text string|fun(opened: table): string A function receives the model first (`chat_opened`)
---@field on_reply fun(text: string) Called once with the whole reply, if there is one
---@field on_begun? fun() Called when the request starts
---@field chat CodeCompanion.HeadlessChat
---@field reply string Text received so far
---@field said? string Error message of the host
---@field is_cut? boolean The reply was truncated
---@field timer uv.uv_timer_t
local Question = {}
Question.__index = Question

---Questions that wait for a reply.
---@type table<CodeCompanion.HeadlessQuestion, true>
local waiting = {}

---@return boolean was_waiting
function Question:_end()
  if not waiting[self] then
    return false
  end
  waiting[self] = nil
  self.timer:stop()
  self.timer:close()
  vim.schedule(function()
    self.chat:close()
  end)
  return true
end

---@param text string
---@param level CodeCompanion.Severity
function Question:_fail(text, level)
  if self:_end() then
    say.line(text, level)
  end
end

---@param event table turn_finished event
function Question:_finish(event)
  local problem = event.error ~= "" and event.error or self.said
  if event.reason == "done" and self.is_cut then
    problem = "The reply was incomplete; nothing was changed."
  elseif event.reason == "done" then
    if self:_end() then
      self.on_reply(self.reply)
    end
    return
  elseif event.reason == "stopped" and not problem then
    problem = "Stopped; nothing was changed."
  end
  self:_fail(problem or "The turn ended early.", severity.ERROR)
end

---Start the timeout once the host has opened the chat: the startup time of the host does not count.
function Question:_limit()
  local limit = self.options.timeout
  self.timer:start(
    limit,
    0,
    vim.schedule_wrap(function()
      local late = ("The model did not answer within %g s; nothing was changed."):format(limit / 1000)
      self:_stop(late, severity.ERROR)
    end)
  )
end

---Stop the question immediately and ignore later output.
---@param text string
---@param level CodeCompanion.Severity
function Question:_stop(text, level)
  if waiting[self] then
    self.chat:cancel()
    self:_fail(text, level)
  end
end

---@type table<string, fun(question: CodeCompanion.HeadlessQuestion, event: table)>
local TAKEN = {
  chat_opened = function(question, event)
    question:_limit()
    if type(question.text) == "function" and question.chat.submits == 0 then
      question.chat:submit(question.text(event))
    end
  end,
  reply_started = function(question)
    question.reply = ""
  end,
  text = function(question, event)
    question.reply = question.reply .. event.text
  end,
  reply_finished = function(question, event)
    question.is_cut = question.is_cut or event.stop ~= "stop" and event.stop ~= "tool_calls"
  end,
  notice = function(question, event)
    question.said = event.level == "ERROR" and event.text or question.said
  end,
  submit_failed = function(question, event)
    question:_fail(event.error, severity.ERROR)
  end,
  request_failed = function(question, event)
    question:_fail(event.error, severity.ERROR)
  end,
  host_exit = function(question, event)
    question:_fail(event.text, severity.ERROR)
  end,
  approval_requested = function(question, event) -- the approval question would be invisible
    host.notify("approve", { chat = question.chat.id, call_id = event.call_id, decision = "cancel" })
  end,
  turn_finished = Question._finish,
}

---@param question table
local function begin(question)
  local self = setmetatable(question, Question) --[[@as CodeCompanion.HeadlessQuestion]]
  self.reply, self.timer = "", vim.uv.new_timer()
  waiting[self] = true
  self.chat = headless_chat.open({
    purpose = self.purpose,
    adapter = self.options.adapter,
    on_event = function(event)
      local take = TAKEN[event.type]
      if take and waiting[self] then
        take(self, event)
      end
    end,
  })
  if type(self.text) == "string" then
    self.chat:submit(self.text --[[@as string]])
  end
  if self.on_begun then
    self.on_begun()
  end
end

---Ask the question. If no model can be chosen, nothing is sent, because the reply of the `offline` adapter is neither a
---command nor a commit message.
---@param question table `purpose`, `what`, `options`, `text`, `on_reply` and `on_begun` of a question
function M.ask(question)
  local options = require("codecompanion.config").options
  if question.options.adapter or not choice.is_automatic(options) then
    return begin(question)
  end
  choice.make(options, function(made)
    if made.is_usable then
      return begin(question)
    end
    say.line({
      ("No model is set up for %s: run :CodeCompanion adapter"):format(question.what),
      "No model is set up: run :CodeCompanion adapter",
    }, severity.WARN)
  end)
end

---Stop all waiting questions; the caller reports it (`:CodeCompanion cancel`).
---@return string[] stopped Their activities
function M.cancel_all()
  local stopped = {}
  for _, question in ipairs(vim.tbl_keys(waiting)) do
    stopped[#stopped + 1] = question.what
    question.chat:cancel()
    question:_end()
  end
  table.sort(stopped)
  return stopped
end

return M
