---Runs user-defined tools. The host requests a tool by name and receives its result as the model reads it.
---
---The function of a tool runs in the editor with the user's permissions; a slow function must be asynchronous, or it
---blocks the editor. Its result is text, or values that JSON supports.

local plain = require("codecompanion.values.plain")

local M = {}

---The context passed to a tool.
---@class CodeCompanion.ToolContext
---@field root string Folder that tools work in
---@field cwd string Working folder of the editor
---@field chat string Chat id
---@field is_cancelled fun(): boolean Whether the call was stopped and its result will be ignored
---@field on_cancel fun(callback: fun()) Registers a function that is called when the call is stopped

---@class CodeCompanion.ToolRun
---@field name string
---@field cancelled boolean
---@field finished boolean
---@field on_cancel fun()[]

local MAX_BYTES = 20000000
local EXPECTED =
  'expected a string, { status = "success" or "error", data = … }, or nothing and a call of done(result)'

---@type table<integer, CodeCompanion.ToolRun> By number of the host's question
local runs = {}

---@param name string
---@param text string
local function note(name, text)
  require("codecompanion.system.log").append(("tool %s: %s"):format(name, text))
end

---Record a failure, and list it in `:CodeCompanion problems`.
---@param name string
---@param text string
local function failed(name, text)
  note(name, text)
  require("codecompanion.config").failed(("interactions.chat.tools.%s: %s"):format(name, text))
end

---Replace invalid UTF-8 in a run of bytes.
---@param run string Non-ASCII bytes
---@return string
local function repaired(run)
  local out, at = {}, 1
  while at <= #run do
    local char = run:match("^[\194-\223][\128-\191]", at)
      or run:match("^[\224-\239][\128-\191][\128-\191]", at)
      or run:match("^[\240-\244][\128-\191][\128-\191][\128-\191]", at)
    char = char and plain.is_utf8(char) and char or nil
    out[#out + 1] = char or "\239\191\189"
    at = at + (char and #char or 1)
  end
  return table.concat(out)
end

---@param data any
---@return string? text
---@return string? problem
local function text_of(data)
  if type(data) == "table" then
    local ok, encoded = pcall(vim.json.encode, data)
    if not ok then
      return nil, "it returned a table that is not JSON: " .. tostring(encoded)
    end
    data = encoded
  elseif type(data) == "number" or type(data) == "boolean" then
    data = tostring(data)
  elseif type(data) ~= "string" then
    return nil, ("it returned %s; %s"):format(type(data), EXPECTED)
  end
  if #data > MAX_BYTES then
    return nil, ("its result is %.1f MB, over the limit of %d MB"):format(#data / 1e6, MAX_BYTES / 1e6)
  end
  return plain.is_utf8(data) and data or (data:gsub("[\128-\255]+", repaired))
end

---@param result any Returned by the function, or passed to `done`
---@return { text: string, is_error: boolean }
local function outcome(name, result)
  local data, is_error = result, false
  if type(result) == "table" and (result.status == "success" or result.status == "error") then
    data, is_error = result.data, result.status == "error"
    data = data == nil and (is_error and "It failed without giving a reason." or "") or data
  end
  local text, problem = text_of(data)
  if problem then
    failed(name, problem)
    return { text = ("The tool %s failed: %s."):format(name, problem), is_error = true }
  end
  return { text = text, is_error = is_error }
end

---Return the functions of a tool, each with the signature of a user-defined function: arguments, context, done.
---@param callback function|table
---@return (fun(arguments: table, context: table, done: fun(result: any)): any)[]
---@return boolean can_wait Whether the last function may call `done` later
local function steps_of(callback)
  if type(callback) == "function" then
    local known = debug.getinfo(callback, "u")
    return { callback }, known.isvararg or known.nparams >= 3
  end
  return vim.tbl_map(function(cmd)
    return function(arguments, context, done) -- codecompanion.nvim: itself, arguments, { input, output_cb }, output_cb
      return cmd(callback, arguments, { input = context.input, output_cb = done }, done)
    end
  end, callback.cmds),
    true
end

---@param run CodeCompanion.ToolRun
---@param fields { name: string, arguments: table, root: string, chat: string }
---@return CodeCompanion.ToolContext
local function context_of(run, fields)
  return {
    root = fields.root,
    cwd = vim.fn.getcwd(),
    chat = fields.chat,
    is_cancelled = function()
      return run.cancelled
    end,
    on_cancel = function(callback)
      run.on_cancel[#run.on_cancel + 1] = callback
    end,
  }
end

---@param err any
---@return string
local function first_line(err)
  return (tostring(err):match("^[^\n]*"))
end

---Run a tool; `done` is called once, with the result. Later results, and results of a stopped call, are dropped.
---@param number integer Number of the host's question
---@param fields { name: string, arguments: table, root: string, chat: string }
---@param done fun(ok: boolean, result: any)
function M.run(number, fields, done)
  local tool = require("codecompanion.config").options.interactions.chat.tools[fields.name]
  local callback = type(tool) == "table" and tool.callback
  if not callback then
    return done(false, ("the configuration no longer has a tool %s"):format(fields.name))
  end
  local run = { name = fields.name, cancelled = false, finished = false, on_cancel = {} }
  runs[number] = run
  local steps, can_wait = steps_of(callback)
  local context = context_of(run, fields)
  local function finish(result)
    if run.finished or run.cancelled then
      return note(run.name, run.finished and "it answered twice; the first answer counts" or "it answered too late")
    end
    run.finished, runs[number] = true, nil
    done(true, outcome(run.name, result))
  end
  local function step(at, input)
    context.input = input
    local answered = false
    local function take(result)
      local is_last = at == #steps or type(result) == "table" and result.status == "error"
      if is_last or run.cancelled or run.finished then
        return finish(result)
      elseif answered then
        return note(run.name, "one of its functions answered twice; the first answer counts")
      end
      answered = true
      step(at + 1, type(result) == "table" and result.data or result)
    end
    local ok, result = xpcall(steps[at], first_line, fields.arguments or {}, context, function(result)
      vim.schedule(function()
        take(result)
      end)
    end)
    if not ok then
      failed(run.name, result)
      take({ status = "error", data = ("The tool %s failed: %s"):format(run.name, result) })
    elseif result ~= nil then
      take(result)
    elseif not can_wait then
      failed(run.name, "it returned nothing; " .. EXPECTED)
      take({ status = "error", data = ("The tool %s returned nothing; %s."):format(run.name, EXPECTED) })
    end
  end
  step(1)
end

---Stop a call whose result is no longer needed, and notify the tool if it registered a callback.
---@param number integer Number of the host's question
function M.stop(number)
  local run = runs[number]
  if not run then
    return
  end
  runs[number], run.cancelled = nil, true
  for _, callback in ipairs(run.on_cancel) do
    local ok, err = pcall(callback)
    if not ok then
      failed(run.name, "on_cancel failed: " .. first_line(err))
    end
  end
end

---Stop all calls, because the host that requested them has exited.
function M.stop_all()
  for _, number in ipairs(vim.tbl_keys(runs)) do
    M.stop(number)
  end
end

return M
