---Manages the Python host process: starts it, stops it and handles its exit.
---
---Nothing here waits for Python. The first request starts the host; if the host dies, the next request starts a new
---one.
---`host/wire.lua` transports requests and events; `host/events_without_chat.lua` handles events that belong to no chat.
---
---The file is longer than others because all of it reads and changes one state: the running process.

local say = require("codecompanion.say")
local severity = require("codecompanion.severity")
local wire = require("codecompanion.host.wire")

local uv = vim.uv or vim.loop

local M = {}

---@alias CodeCompanion.HostStatus "stopped"|"starting"|"ready"|"failed"

local SLOW_START_MS = 20000
local LEAVE_MS = 1500
local CANNOT_RUN = 2 -- exit status of `engine/__main__.py` if its Python lacks a package

local state = {
  status = "stopped", ---@type CodeCompanion.HostStatus
  text = "", ---Error message, one sentence
  job = nil, ---@type integer? Our process
  python = nil, ---@type string? Its interpreter
  leaving = nil, ---@type integer? A process that is stopping
  start_after_leaving = false,
  retired = false, ---Reloaded modules have replaced these
  ready_ms = nil, ---@type number? Time from start to ready
}

wire.subscribe(function(event)
  if event.type == "state" then
    require("codecompanion.host.restart_when_idle").note(event)
  elseif (event.chat or "") == "" then
    require("codecompanion.host.events_without_chat").show(event, M)
  end
end)

---Return whether a chat is visible (a buffer named `codecompanion://…`); a visible chat reports host problems itself.
---@return boolean
local function is_chat_shown()
  return vim.iter(vim.api.nvim_list_wins()):any(function(win)
    return vim.startswith(vim.api.nvim_buf_get_name(vim.api.nvim_win_get_buf(win)), "codecompanion://")
  end)
end

---@param problem string
local function say_unless_chat_does(problem)
  if not is_chat_shown() then
    say.line(problem, severity.ERROR)
  end
end

---Forget the process.
---@param status CodeCompanion.HostStatus
---@param text string
local function let_go(status, text)
  state.status, state.text, state.job = status, text, nil
  wire.close()
  local idle = package.loaded["codecompanion.host.restart_when_idle"]
  if idle then
    idle.forget()
  end
end

---Notify all waiting requests that the host has exited or cannot start.
---@param text string
---@param code integer
---@param stderr_tail string
local function on_gone(text, code, stderr_tail)
  local never_ready = state.status ~= "ready"
  let_go("failed", text)
  wire.dispatch({ type = "host_exit", code = code, stderr_tail = stderr_tail, text = text, never_ready = never_ready })
  wire.fail_all(text)
end

---Handle a host that cannot be started or rejects the configuration. The remote plugin also calls this if its Python
---cannot run the host.
---@param text string
function M.on_failure(text)
  M.stop()
  say_unless_chat_does(text)
  on_gone(text, -1, "")
end

---Handle a lost channel: the classic host exits unnoticed, and our own process may be used before `on_exit` is called.
---@return string why
local function on_lost()
  local why = 'Neovim\'s Python provider has ended. Restart Neovim, or set host = "private".'
  if state.job then
    why = "The Python process ended. The next action starts it again."
  end
  on_gone(why, -1, "")
  return why
end

---Send `hello` on `channel`; queued requests follow once it is answered.
---@param channel integer
---@param payload table
local function greet(channel, payload)
  local began = uv.hrtime()
  local function is_starting()
    return wire.channel() == channel and state.status == "starting"
  end
  wire.open(channel, on_lost)
  wire.send({
    verb = "hello",
    payload = payload,
    callback = function(err)
      if not is_starting() then
        return
      end
      if err then
        return M.on_failure(err)
      end
      state.status, state.text = "ready", ""
      state.ready_ms = (uv.hrtime() - began) / 1e6
      if state.python then
        require("codecompanion.system.python_environment").remember(state.python)
      end
      wire.dispatch({ type = "host_started" })
      wire.send_kept()
    end,
  })
  vim.defer_fn(function()
    if is_starting() then
      say.line("The Python process has not answered for 20 s; see :CodeCompanion log", severity.WARN)
    end
  end, SLOW_START_MS)
end

---Reinstall a damaged private environment (for example, after packages were deleted), and keep queued requests.
---@param code integer
---@return boolean begun
local function repair(code)
  local damaged = state.status == "starting" and code == CANNOT_RUN and state.python ~= nil
  if not damaged or not require("codecompanion.install").discard(state.python) then
    return false
  end
  let_go("stopped", "")
  wire.forget_sent()
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
  local text = stderr_tail:match("codecompanion: ([^\n]+)") -- the error message of `engine/__main__.py`
  if state.status == "starting" then
    text = text or ("Python did not start (status %d); see :CodeCompanion health"):format(code)
    say_unless_chat_does(text)
  end
  text = text or ("The Python process ended (status %d). The next action starts it again."):format(code)
  on_gone(text, code, stderr_tail)
end

---Start the host with a function and send `hello`.
---@param begin fun(open: table<string, string>): integer?, string? Starts the host; returns the channel or the problem
local function start_with(begin)
  local ok, payload, open = pcall(require("codecompanion.host.hello_request").prepare)
  if not ok then
    return M.on_failure("Could not send the configuration to the Python process: " .. tostring(payload))
  end
  local channel, problem = begin(open)
  if not channel then
    return M.on_failure(problem or "The Python process cannot be started")
  end
  greet(channel, payload)
end

---Call a function once the adapter for new chats, which `hello` includes, has been chosen, unless the host has been
---stopped meanwhile.
---@param go_on fun()
local function with_adapter(go_on)
  require("codecompanion.adapters.default_adapter").when_known(require("codecompanion.config").options, function()
    if state.status == "starting" and not state.job and not wire.channel() then
      go_on()
    end
  end)
end

---Find the Python to use and start the host.
local function launch()
  if state.status ~= "starting" or wire.channel() then
    return -- stopped meanwhile, or started by the previous call
  end
  local process, options = require("codecompanion.host.process"), require("codecompanion.config").options
  local sandbox = options.sandbox
  if (type(sandbox) == "table" and sandbox.mode or sandbox) ~= "off" then
    require("codecompanion.host.own_memory").close()
  end
  if options.host == "python3" then
    return with_adapter(function()
      start_with(process.connect_classic)
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
    with_adapter(function()
      start_with(function(open)
        local problem
        state.job, problem = process.launch(python, open, on_exit)
        return state.job, problem
      end)
    end)
  end, is_chat_shown)
end

---Start the host unless it is running. Returns immediately; the work begins after the next redraw.
function M.start()
  if state.retired or state.status == "starting" or state.status == "ready" then
    return
  end
  state.status, state.text = "starting", ""
  if state.leaving then -- two hosts would compete for the ownership of chats
    state.start_after_leaving, state.status = true, "stopped"
    return
  end
  vim.schedule(launch)
end

---Send a request without a callback; failures arrive as `request_failed` events.
---@param verb string
---@param payload table? As in `requests.py`, without `id`
function M.notify(verb, payload)
  M.request(verb, payload, nil)
end

---Send a request; `callback` is called once with the answer, on the main loop.
---@param verb string
---@param payload table?
---@param callback CodeCompanion.HostCallback?
---@return CodeCompanion.HostRequest request
function M.request(verb, payload, callback)
  local request = { verb = verb, payload = payload or {}, callback = callback }
  if state.retired then
    vim.schedule(function()
      if callback then
        callback("The plugin was reloaded.")
      end
    end)
    return request
  end
  if state.status == "ready" then
    wire.send(request)
  else
    wire.keep(request)
    M.start()
  end
  return request
end

---Send a request and show a failure in one line; `done` receives the result on success.
---@param verb string
---@param payload table
---@param done fun(result: any)
function M.ask(verb, payload, done)
  M.request(verb, payload, function(err, result)
    if err then
      return say.line(err, severity.ERROR)
    end
    done(result)
  end)
end

---Handle a batch of events. Called by Python, which adapts its pace to the returned duration.
M.on_events = wire.take

---Call a function for every event, including those about the host itself: `host_started` (ready, but queued requests
---are not yet sent: the time to reopen chats) and `host_exit` `{code, stderr_tail, text, never_ready, wanted}`.
M.subscribe = wire.subscribe

---@return CodeCompanion.HostStatus status
---@return string text Error message, if it failed
function M.status()
  return state.status, state.text
end

---Return details of the running process, for `:checkhealth`.
---@return { job: integer?, channel: integer?, pid: integer?, ready_ms: number?, pending: integer, queued: integer }
function M.inspect()
  local ok, pid = pcall(vim.fn.jobpid, state.job or -1)
  local pending, queued = wire.counts()
  return {
    job = state.job,
    channel = wire.channel(),
    pid = ok and pid or nil,
    ready_ms = state.ready_ms,
    pending = pending,
    queued = queued,
  }
end

---Stop the host: it processes the requests sent so far, saves its state and exits.
---@param wait_ms integer? Maximum time to wait, used when Neovim exits
function M.stop(wait_ms)
  local job = state.job
  let_go("stopped", "")
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

---Stop the host permanently: these modules will be replaced, and the new ones start their own host.
---@param wait_ms integer
function M.retire(wait_ms)
  M.stop(wait_ms)
  state.retired = true
end

---Restart the host once no chat is in a turn, because a running turn would be lost.
---@param text string Message shown in the chats
function M.restart_when_idle(text)
  require("codecompanion.host.restart_when_idle").restart(function()
    M.restart(text)
  end)
end

---Stop the host and start a new one.
---@param text? string Message shown in the chats
function M.restart(text)
  if wire.channel() and not state.job then
    return say.line('host = "python3" is shared with other plugins; restart Neovim', severity.WARN)
  end
  M.stop()
  text = text or "The Python process is being restarted."
  wire.dispatch({ type = "host_exit", code = 0, stderr_tail = "", text = text, wanted = true })
  wire.fail_all("The Python process was restarted.")
  M.start()
end

-- Not VimLeavePre: the chats save their drafts there.
vim.api.nvim_create_autocmd("VimLeave", {
  group = vim.api.nvim_create_augroup("codecompanion_host", {}),
  desc = "Let the Python process finish writing",
  callback = function()
    M.stop(LEAVE_MS)
  end,
})

return M
