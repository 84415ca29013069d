---The Python host as the editor sees it: starts it, sends it requests, hands its events on.
---
---Nothing here waits for Python: requests are `rpcnotify`, answers come as `reply` events. The host is started by the
---first request, never before. When it dies the next request starts a new one.
---
---Longer than other files because everything in it reads and changes one state: what runs, what waits for it.

local process = require("codecompanion.process")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local uv = vim.uv or vim.loop

local M = {}

---@alias CodeCompanion.HostStatus "stopped"|"starting"|"ready"|"failed"
---@alias CodeCompanion.HostCallback fun(err: string?, result: any)

---@class CodeCompanion.HostRequest
---@field verb string
---@field payload table
---@field callback CodeCompanion.HostCallback?
---@field id integer? Of a request with a callback, once it was sent

local SLOW_START_MS = 20000
local LEAVE_MS = 1500
local SILENT_MS = 3000
local CANNOT_RUN = 2 -- the exit status of `engine/__main__.py` under a Python that lacks something

---These are answered by an event at once, whatever the model and the tools are doing.
local ANSWERED_AT_ONCE = { submit = true, compact = true, regenerate = true, go_on = true }

local state = {
  status = "stopped", ---@type CodeCompanion.HostStatus
  text = "", ---Why it failed, in a sentence
  job = nil, ---@type integer? Our process
  python = nil, ---@type string? What it runs with
  channel = nil, ---@type integer? Where requests go: our process, or the classic host
  leaving = nil, ---@type integer? A process that was asked to go
  start_after_leaving = false,
  queue = {}, ---@type CodeCompanion.HostRequest[] Made before the host was ready
  pending = {}, ---@type table<integer, CodeCompanion.HostRequest> Sent, not answered
  next_id = 0,
  ready_ms = nil, ---@type number? From start to ready
  batches = 0, ---How many batches of events have come
  busy = {}, ---@type table<string, true> Chats in which something runs
  restart_text = nil, ---@type string? A restart that waits until nothing runs, as it will be said
  silent_since = nil, ---@type integer? The batch after which a silence was told
}

---@type table<fun(event: table), true>
local subscribers = {}
---@type table<string, true>
local said = {}

---What concerns no chat has no buffer to be shown in.
---@param event table
local function show_without_chat(event)
  if (event.chat or "") ~= "" then
    return
  elseif event.type == "notice" then
    say.line(event.text, severity[event.level])
  elseif event.type == "request_failed" and not event.gone then
    say.line(event.error, severity.ERROR)
  elseif event.type == "mcp_changed" then
    require("codecompanion.mcp.known").changed(M.request, function()
      return state.status == "ready"
    end)
  elseif event.type == "mcp_answered" then
    require("codecompanion.mcp.known").answered(event)
  elseif event.type == "packages_missing" then
    require("codecompanion.install").add(event.extra, function(problem)
      if not problem then
        M.restart_when_idle("The packages are installed; the Python host starts again with them.")
      end
    end)
  elseif event.type == "index_progress" then
    require("codecompanion.index_progress").show(event, M.notify, function()
      return state.status == "ready"
    end)
  end
end

---@param event table
local function dispatch(event)
  local tools = event.type == "host_exit" and package.loaded["codecompanion.own_tools"]
  if tools then
    tools.stop_all()
  end
  show_without_chat(event)
  for subscriber in pairs(subscribers) do
    local ok, err = xpcall(subscriber, debug.traceback, event)
    if not ok and not said[err] then
      said[err] = true
      say.line(("Could not show a %s event: %s"):format(event.type, err:match("^[^\n]*")), severity.ERROR)
    end
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
  -- `gone`: it never reached a host; what the chat has to say about that comes with `host_exit`.
  dispatch({ type = "request_failed", chat = chat, verb = request.verb, error = err, gone = true })
end

---Whether a chat is on the screen: it says itself what keeps the host from coming. The chat buffers have this name.
---@return boolean
function M.is_chat_shown()
  return vim.iter(vim.api.nvim_list_wins()):any(function(win)
    return vim.startswith(vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(win)), "codecompanion://")
  end)
end

---Answer everything that waits with `err`.
---@param err string
local function fail_all(err)
  local queue, pending = state.queue, state.pending
  state.queue, state.pending = {}, {}
  for _, id in ipairs(vim.fn.sort(vim.tbl_keys(pending), "n")) do
    fail(pending[id], err)
  end
  for _, request in ipairs(queue) do
    fail(request, err)
  end
end

---The host is gone or cannot come: tell everybody who waits.
---@param text string
---@param code integer
---@param stderr_tail string
local function on_gone(text, code, stderr_tail)
  local never_ready = state.status ~= "ready"
  state.status, state.text, state.channel, state.job = "failed", text, nil, nil
  state.busy, state.restart_text = {}, nil
  dispatch({ type = "host_exit", code = code, stderr_tail = stderr_tail, text = text, never_ready = never_ready })
  fail_all(text)
end

---The host cannot be started, or refuses the configuration. The remote plugin calls it too, when its Python cannot run
---the host.
---@param text string
function M.on_failure(text)
  M.stop()
  if not M.is_chat_shown() then
    say.line(text, severity.ERROR)
  end
  on_gone(text, -1, "")
end

---Say so when nothing comes from a host that should have answered: suspended, or busy for too long.
local function watch()
  local channel, batches = state.channel, state.batches
  vim.defer_fn(function()
    local silent = state.channel == channel and state.status == "ready" and state.batches == batches
    if silent and state.silent_since ~= batches then
      state.silent_since = batches
      say.line("The host does not answer; wait, or :CodeCompanion restart", severity.WARN)
    end
  end, SILENT_MS)
end

---@param request CodeCompanion.HostRequest
local function send(request)
  local needs_keys = request.verb ~= "hello" and request.verb ~= "save_draft"
  local changes = needs_keys and require("codecompanion.secret_environment").changes()
  if changes then
    pcall(vim.rpcnotify, state.channel, "codecompanion", "give_environment", vim.json.encode(changes))
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
  -- Only the classic host can be gone unnoticed: for our own process `on_exit` comes.
  on_gone('The classic Python host has ended. Restart Neovim, or use host = "private".', -1, "")
  if not request.callback then
    fail(request, state.text)
  end
end

---@return table payload What the host is told first
---@return table<string, string> open The environment its process may have
local function prepare_hello()
  local config = require("codecompanion.config")
  local version = vim.version()
  local settings = config.for_host()
  local adapters = config.adapters()
  local open, hidden = require("codecompanion.secret_environment").divide(settings, adapters)
  local mcp = package.loaded["codecompanion.mcp.known"]
  local payload = {
    settings = settings,
    mistakes = config.for_chats(),
    mcp_answers = mcp and mcp.answers(),
    adapters = adapters.entries,
    proxy = adapters.proxy,
    environment = hidden,
    secrets = (config.secrets()), -- an error is shown by the config; the adapter says that it has no key
    data_dir = vim.fn.stdpath("data") .. "/codecompanion",
    cache_dir = vim.fn.stdpath("cache") .. "/codecompanion",
    state_dir = vim.fn.stdpath("state") .. "/codecompanion",
    config_dir = vim.fn.stdpath("config") .. "/codecompanion",
    log_path = require("codecompanion.log").path(),
    nvim = ("%d.%d.%d"):format(version.major, version.minor, version.patch),
  }
  return payload, open
end

---Introduce ourselves on `state.channel`; the queue follows when the host has answered.
---@param payload table
local function greet(payload)
  local began = uv.hrtime()
  local channel = state.channel
  send({
    verb = "hello",
    payload = payload,
    callback = function(err)
      if state.channel ~= channel or state.status ~= "starting" then
        return
      end
      if err then
        return M.on_failure(err)
      end
      state.status, state.text = "ready", ""
      state.ready_ms = (uv.hrtime() - began) / 1e6
      dispatch({ type = "host_started" })
      local queue = state.queue
      state.queue = {}
      for _, request in ipairs(queue) do
        send(request)
      end
    end,
  })
  vim.defer_fn(function()
    if state.channel == channel and state.status == "starting" then
      say.line("The Python host has not answered for 20 s; see :CodeCompanion log", severity.WARN)
    end
  end, SLOW_START_MS)
end

---The private environment is damaged (packages were deleted): make it again, and keep what waits for the host.
---@param code integer
---@return boolean begun
local function repair(code)
  local damaged = state.status == "starting" and code == CANNOT_RUN and state.python ~= nil
  if not damaged or not require("codecompanion.install").discard(state.python) then
    return false
  end
  state.status, state.job, state.channel, state.pending = "stopped", nil, nil, {}
  M.start()
  return true
end

---@param job integer
---@param code integer
---@param stderr_tail string
local function on_exit(job, code, stderr_tail)
  if job == state.leaving then
    state.leaving = nil
    if state.start_after_leaving then
      state.start_after_leaving = false
      M.start()
    end
    return
  end
  if job ~= state.job or repair(code) then
    return
  end
  local text = stderr_tail:match("codecompanion: ([^\n]+)") -- what `engine/__main__.py` has to say
  if state.status == "starting" then
    text = text or ("The Python host did not start (status %d); see :CodeCompanion health"):format(code)
    if not M.is_chat_shown() then
      say.line(text, severity.ERROR)
    end
  end
  text = text or ("The Python host ended (status %d). The next action starts it again."):format(code)
  on_gone(text, code, stderr_tail)
end

---Start what is wanted and introduce ourselves.
---@param launch fun(open: table<string, string>): string? Starts it; returns the problem
local function start_with(launch)
  local ok, payload, open = pcall(prepare_hello)
  if not ok then
    return M.on_failure("Could not send the configuration to the host: " .. tostring(payload))
  end
  local problem = launch(open)
  if problem then
    return M.on_failure(problem)
  end
  greet(payload)
end

---Find what is to run and start it.
local function launch()
  if state.status ~= "starting" or state.channel then
    return -- stopped meanwhile, or started by the one before
  end
  if require("codecompanion.config").options.host == "python3" then
    return start_with(function()
      local problem
      state.channel, problem = process.connect_classic()
      return problem
    end)
  end
  require("codecompanion.install").resolve(function(err, python)
    if state.status ~= "starting" or state.job then
      return
    end
    if not python then
      return M.on_failure(err or "No Python was found; run :CodeCompanion install")
    end
    state.python = python
    start_with(function(open)
      local problem
      state.job, problem = process.launch(python, open, on_exit)
      state.channel = state.job
      return problem
    end)
  end, M.is_chat_shown)
end

---Start the host unless it runs. Returns at once; the work begins when what wants the host has been drawn.
function M.start()
  if state.status == "starting" or state.status == "ready" then
    return
  end
  state.status, state.text = "starting", ""
  if state.leaving then -- two hosts would argue about who owns a chat
    state.start_after_leaving, state.status = true, "stopped"
    return
  end
  vim.schedule(launch)
end

---Send a request and forget it; failures come as `request_failed` events.
---@param verb string
---@param payload table? As in `requests.py`, without `id`
function M.notify(verb, payload)
  M.request(verb, payload, nil)
end

---Send a request; `callback` gets its answer, once, on the main loop.
---@param verb string
---@param payload table?
---@param callback CodeCompanion.HostCallback?
---@return CodeCompanion.HostRequest request
function M.request(verb, payload, callback)
  local request = { verb = verb, payload = payload or {}, callback = callback }
  if state.status == "ready" then
    send(request)
  else
    table.insert(state.queue, request)
    M.start()
  end
  return request
end

---Answer what the host has asked; a new one would not know what was asked.
---@param payload table
local function answer(payload)
  if state.status == "ready" then
    M.notify("answer", payload)
  end
end

---Do what `M.restart_when_idle` has put off, unless something runs.
local function restart_if_idle()
  local text = state.restart_text
  if text and next(state.busy) == nil then
    state.restart_text = nil
    M.restart(text)
  end
end

---Take a batch of events; called by Python.
---@param json string A JSON array of events
---@return number cost_ms What handling them cost; Python paces itself by it
function M.on_events(json)
  local began = uv.hrtime()
  state.batches = state.batches + 1
  for _, event in ipairs(vim.json.decode(json, { luanil = { object = true, array = true } })) do
    if event.type == "reply" then
      local request = state.pending[event.id]
      state.pending[event.id] = nil
      if request and request.callback then
        local ok, err = xpcall(request.callback, debug.traceback, not event.ok and event.error or nil, event.result)
        if not ok and not said[err] then
          said[err] = true
          say.line(("Could not show the answer to %s: %s"):format(request.verb, err:match("^[^\n]*")), severity.ERROR)
        end
      end
    elseif event.type == "ask" then
      local channel = state.channel
      require("codecompanion.files").answer(event, function(payload)
        if state.channel == channel then -- another host asks other questions by the same numbers
          answer(payload)
        end
      end)
    else
      if event.type == "host_ready" then
        require("codecompanion.config").take_from_host(event.mistakes or {})
      elseif event.type == "mistakes" then
        require("codecompanion.config").take_from_host(event.mistakes, event.failures)
      end
      dispatch(event)
      if event.type == "state" then
        state.busy[event.chat] = event.state ~= "idle" or nil
      end
    end
  end
  if state.restart_text then
    vim.schedule(restart_if_idle) -- not while the host waits for this answer
  end
  return (uv.hrtime() - began) / 1e6
end

---Call `subscriber` with every event but replies, and with the host's own: `host_started` (ready, before queued
---requests are sent: the place to open chats again), `host_exit` `{code, stderr_tail, text, never_ready}`.
---@param subscriber fun(event: table)
---@return fun() unsubscribe
function M.subscribe(subscriber)
  subscribers[subscriber] = true
  return function()
    subscribers[subscriber] = nil
  end
end

---@return CodeCompanion.HostStatus status
---@return string text Why, when it failed
function M.status()
  return state.status, state.text
end

---What runs, for `:checkhealth`.
---@return { job: integer?, channel: integer?, pid: integer?, ready_ms: number?, pending: integer, queued: integer }
function M.inspect()
  local ok, pid = pcall(vim.fn.jobpid, state.job or -1)
  return {
    job = state.job,
    channel = state.channel,
    pid = ok and pid or nil,
    ready_ms = state.ready_ms,
    pending = vim.tbl_count(state.pending),
    queued = #state.queue,
  }
end

---Stop the host: it takes what was sent, writes what it has to, and goes.
---@param wait_ms integer? Wait that long for it (when Neovim itself leaves)
function M.stop(wait_ms)
  local job = state.job
  state.status, state.text, state.job, state.channel = "stopped", "", nil, nil
  state.busy, state.restart_text = {}, nil
  state.start_after_leaving = false
  if not job then
    return
  end
  state.leaving = job
  pcall(vim.fn.chanclose, job, "rpc")
  if wait_ms then
    vim.fn.jobwait({ job }, wait_ms)
    return
  end
  vim.defer_fn(function()
    if state.leaving == job then
      vim.fn.jobstop(job)
    end
  end, LEAVE_MS)
end

---Restart the host as soon as no chat is in a turn, which would be lost.
---@param text string What the chats say then
function M.restart_when_idle(text)
  state.restart_text = text
  vim.schedule(restart_if_idle)
end

---Stop the host and start a new one.
---@param text? string What the chats say
function M.restart(text)
  if state.channel and not state.job then
    return say.line('host = "python3" is shared with other plugins; restart Neovim', severity.WARN)
  end
  M.stop()
  dispatch({ type = "host_exit", code = 0, stderr_tail = "", text = text or "The Python host is being restarted." })
  fail_all("The Python host was restarted.")
  M.start()
end

-- Not VimLeavePre: there the chats save their drafts.
vim.api.nvim_create_autocmd("VimLeave", {
  group = vim.api.nvim_create_augroup("codecompanion_host", {}),
  desc = "Let the Python host finish writing",
  callback = function()
    M.stop(LEAVE_MS)
  end,
})

return M
