---Answers questions of the host's tools: about open files, changes to them, and calls of user-defined tools. They
---arrive as the `ask` event and are answered with the verb `answer`.
---
---Nothing here blocks on the host, and the host has a time limit: an expired question must not be started.

local M = {}

local RETRY_MS = 100

---@type table<string, fun(fields: table): table>
local HANDLERS = {
  look = function(fields)
    return { files = require("codecompanion.files.reload_buffers").look(fields.paths) }
  end,
  change = function(fields)
    return require("codecompanion.files.edit_buffer").change(fields)
  end,
  diagnostics = function()
    return { diagnostics = require("codecompanion.editor_context.snapshot").diagnostics() }
  end,
  reload = function(fields)
    require("codecompanion.files.reload_buffers").all(fields.deleted)
    return {}
  end,
  stop_tool = function(fields)
    require("codecompanion.host.run_own_tools").stop(fields.ask_id)
    return {}
  end,
}

---Questions answered later, by `done(ok, result)`.
---@type table<string, fun(ask_id: integer, fields: table, done: fun(ok: boolean, result: any))>
local SLOW = {
  run_tool = function(ask_id, fields, done)
    require("codecompanion.host.run_own_tools").run(ask_id, fields, done)
  end,
}

---@return integer milliseconds since the epoch
local function now()
  local seconds, micros = (vim.uv or vim.loop).gettimeofday()
  return seconds * 1000 + math.floor(micros / 1000)
end

---@alias CodeCompanion.Reply fun(answer: { ask_id: integer, ok: boolean, result?: any, error?: string })

---@param ask table
---@param reply CodeCompanion.Reply
---@param ok boolean
---@param result any
local function finish(ask, reply, ok, result)
  if ask.ask_id ~= 0 then
    reply({ ask_id = ask.ask_id, ok = ok, result = ok and result or nil, error = not ok and result or nil })
  end
end

---Return whether buffers may be changed now: not in the command-line window or while text is locked.
---@return boolean
local function is_free()
  return vim.fn.getcmdwintype() == "" and not vim.in_fast_event()
end

---@param ask table
---@param reply CodeCompanion.Reply
local function carry_out(ask, reply)
  if ask.until_ms > 0 and now() > ask.until_ms then
    return -- the host has given up
  end
  if not is_free() then
    return vim.defer_fn(function()
      carry_out(ask, reply)
    end, RETRY_MS)
  end
  local handler, slow = HANDLERS[ask.what], SLOW[ask.what]
  if slow then
    return slow(ask.ask_id, ask.fields or {}, function(ok, result)
      finish(ask, reply, ok, result)
    end)
  end
  if not handler then
    return finish(ask, reply, false, ("the editor does not know %q"):format(ask.what))
  end
  local ok, result = pcall(handler, ask.fields or {})
  if not ok then
    result = tostring(result):match("^[^\n]*"):gsub("^.-%.lua:%d+: ", "")
  end
  finish(ask, reply, ok, result)
end

---Answer an `ask` event. The answer is scheduled separately from its batch of events, because the user's autocommands
---may be slow.
---@param ask table
---@param reply CodeCompanion.Reply Sends the answer, once
function M.answer(ask, reply)
  vim.schedule(function()
    carry_out(ask, reply)
  end)
end

return M
