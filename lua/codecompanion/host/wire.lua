---Sends requests to the host and receives its events, over a channel that `init.lua` opens and closes.
---
---Requests use `rpcnotify`, answers arrive as `reply` events. Subscribers interpret the events.

local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local uv = vim.uv or vim.loop

local M = {}

---@alias CodeCompanion.HostCallback fun(err: string?, result: any)

---@class CodeCompanion.HostRequest
---@field verb string
---@field payload table
---@field callback CodeCompanion.HostCallback?
---@field id integer? Set once a request with a callback has been sent

local SILENT_MS = 3000

---Verbs that trigger an event at once, whatever the model and the tools are doing.
local ANSWERED_AT_ONCE = { submit = true, compact = true, regenerate = true, go_on = true }

local state = {
  channel = nil, ---@type integer? Channel of our process or of the classic host
  on_lost = nil, ---@type fun(): string? Called when the channel is found closed; returns why
  queue = {}, ---@type CodeCompanion.HostRequest[] Requested before the host was ready
  pending = {}, ---@type table<integer, CodeCompanion.HostRequest> Sent, but not answered
  next_id = 0,
  batches = 0, ---Number of received batches of events
  silent_since = nil, ---@type integer? Batch after which silence was reported
}

---Subscribers in the order they subscribed; each change replaces the list, because the old one may be in iteration.
---@type fun(event: table)[]
local subscribers = {}
---@type table<fun(event: table), true>
local is_subscribed = {}
---@type table<string, true>
local said = {}

---Call `receive`; an error is reported once and does not affect other receivers.
---@param what string Format string for the name: `the answer to %s`
---@param name string
---@param receive function
---@param ... any
local function guarded(what, name, receive, ...)
  local ok, err = xpcall(receive, debug.traceback, ...)
  if not ok and not said[err] then
    said[err] = true
    say.line(("Could not show %s: %s"):format(what:format(name), err:match("^[^\n]*")), severity.ERROR)
  end
end

---Pass an event to all subscribers.
---@param event table
function M.dispatch(event)
  for _, subscriber in ipairs(subscribers) do
    if is_subscribed[subscriber] then
      guarded("a %s event", event.type, subscriber, event)
    end
  end
end

---Call `subscriber` with every event except replies.
---@param subscriber fun(event: table)
---@return fun() unsubscribe
function M.subscribe(subscriber)
  if not is_subscribed[subscriber] then
    is_subscribed[subscriber] = true
    subscribers = vim.list_extend(vim.list_slice(subscribers), { subscriber })
  end
  return function()
    is_subscribed[subscriber] = nil
    subscribers = vim.tbl_filter(function(other)
      return other ~= subscriber
    end, subscribers)
  end
end

---@param request CodeCompanion.HostRequest
---@param err string
local function fail(request, err)
  if request.callback then
    request.callback(err, nil)
    return
  end
  local chat = request.payload.chat or ""
  -- `gone`: the request never reached a host; the chat reports the reason on `host_exit`.
  M.dispatch({ type = "request_failed", chat = chat, verb = request.verb, error = err, gone = true })
end

---Fail all waiting requests with `err`.
---@param err string
function M.fail_all(err)
  local queue, pending = state.queue, state.pending
  state.queue, state.pending = {}, {}
  for _, id in ipairs(vim.fn.sort(vim.tbl_keys(pending), "n")) do
    fail(pending[id], err)
  end
  for _, request in ipairs(queue) do
    fail(request, err)
  end
end

---Warn if nothing arrives from a host that should have answered: it is suspended, or busy for too long.
local function watch()
  local channel, batches = state.channel, state.batches
  vim.defer_fn(function()
    if state.channel == channel and state.batches == batches and state.silent_since ~= batches then
      state.silent_since = batches
      say.line("The Python process does not answer; wait, or :CodeCompanion restart", severity.WARN)
    end
  end, SILENT_MS)
end

---Send requests to `channel` from now on.
---@param channel integer
---@param on_lost fun(): string Called when the channel is found closed; fails all waiting requests and returns why
function M.open(channel, on_lost)
  state.channel, state.on_lost = channel, on_lost
end

---Stop sending requests; those already sent may still be answered.
function M.close()
  state.channel = nil
end

---@return integer? channel
function M.channel()
  return state.channel
end

---@return integer pending Number of unanswered requests
---@return integer queued Number of requests that wait for the host
function M.counts()
  return vim.tbl_count(state.pending), #state.queue
end

---Send a request on the open channel.
---@param request CodeCompanion.HostRequest
function M.send(request)
  local needs_keys = request.verb ~= "hello" and request.verb ~= "save_draft"
  local changes = needs_keys and require("codecompanion.host.secret_environment").changes()
  if changes then
    pcall(vim.rpcnotify, state.channel, "codecompanion", "give_environment", vim.json.encode(changes))
  end
  local files = request.payload.snapshot and require("codecompanion.editor_context.open_files").changes(state.channel)
  if files then
    pcall(vim.rpcnotify, state.channel, "codecompanion", "give_open_files", vim.json.encode(files))
  end
  local payload = request.payload
  if request.callback then
    state.next_id = state.next_id + 1
    request.id = state.next_id
    payload = vim.tbl_extend("force", payload, { id = request.id })
    state.pending[state.next_id] = request
  end
  local text = next(payload) == nil and "{}" or vim.json.encode(payload)
  if pcall(vim.rpcnotify, state.channel, "codecompanion", request.verb, text) then
    if ANSWERED_AT_ONCE[request.verb] then
      watch()
    end
    return
  end
  local why = state.on_lost()
  if not request.callback then
    fail(request, why)
  end
end

---Queue a request until the host is ready.
---@param request CodeCompanion.HostRequest
function M.keep(request)
  table.insert(state.queue, request)
end

---Send queued requests in order.
function M.send_kept()
  local queue = state.queue
  state.queue = {}
  for _, request in ipairs(queue) do
    M.send(request)
  end
end

---Drop sent requests, which will not be answered and will be sent again.
function M.forget_sent()
  state.pending = {}
end

---@param event CodeCompanion.Event.Reply
local function take_reply(event)
  local request = state.pending[event.id]
  state.pending[event.id] = nil
  if request and request.callback then
    guarded("the answer to %s", request.verb, request.callback, not event.ok and event.error or nil, event.result)
  end
end

---Answer a question of the host on its own channel, because another host reuses the question numbers.
---@param event CodeCompanion.Event.Ask
local function take_question(event)
  local channel = state.channel
  require("codecompanion.host.editor_questions").answer(event, function(payload)
    if channel and state.channel == channel then
      M.send({ verb = "answer", payload = payload })
    end
  end)
end

---Handle a batch of events.
---@param json string A JSON array of events
---@return number cost_ms Duration of handling them
function M.take(json)
  local began = uv.hrtime()
  state.batches = state.batches + 1
  for _, event in ipairs(vim.json.decode(json, { luanil = { object = true, array = true } })) do
    if event.type == "reply" then
      take_reply(event)
    elseif event.type == "ask" then
      take_question(event)
    else
      M.dispatch(event)
    end
  end
  return (uv.hrtime() - began) / 1e6
end

return M
