---Questions of the host's tools about open files, and changes of them: the `ask` event, answered by the verb `answer`.
---
---Nothing here waits for the host, and the host does not wait for ever: what it has given up must not be begun.

local M = {}

local RETRY_MS = 100

---@type table<string, fun(fields: table): table>
local HANDLERS = {
  look = function(fields)
    return { files = require("codecompanion.files.buffers").look(fields.paths) }
  end,
  change = function(fields)
    return require("codecompanion.files.edit").change(fields)
  end,
  reload = function(fields)
    require("codecompanion.files.reload").all(fields.deleted)
    return {}
  end,
}

---@return integer milliseconds since the epoch
local function now()
  local seconds, micros = (vim.uv or vim.loop).gettimeofday()
  return seconds * 1000 + math.floor(micros / 1000)
end

---@param ask table
---@param ok boolean
---@param result any
local function reply(ask, ok, result)
  local host = require("codecompanion.host")
  if ask.ask_id == 0 or host.status() ~= "ready" then
    return -- a new host would not know what was asked
  end
  local payload = { ask_id = ask.ask_id, ok = ok, result = ok and result or nil, error = not ok and result or nil }
  host.notify("answer", payload)
end

---Whether buffers may be changed now: not in the command-line window, not while text is locked.
---@return boolean
local function is_free()
  return vim.fn.getcmdwintype() == "" and not vim.in_fast_event()
end

---@param ask table
local function carry_out(ask)
  if ask.until_ms > 0 and now() > ask.until_ms then
    return -- the host has gone on without us
  end
  if not is_free() then
    return vim.defer_fn(function()
      carry_out(ask)
    end, RETRY_MS)
  end
  local handler = HANDLERS[ask.what]
  if not handler then
    return reply(ask, false, ("the editor does not know %q"):format(ask.what))
  end
  local ok, result = pcall(handler, ask.fields or {})
  if not ok then
    result = tostring(result):match("^[^\n]*"):gsub("^.-%.lua:%d+: ", "")
  end
  reply(ask, ok, result)
end

---An `ask` event of the host. Carried out outside of the batch that brought it: autocommands of the user may take long.
---@param ask table
function M.answer(ask)
  vim.schedule(function()
    carry_out(ask)
  end)
end

return M
