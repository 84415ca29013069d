---Checks arguments of the public API. Invalid ones raise an error at the caller's line before anything is done.
---`vim.validate` is not used, because no form of it works in 0.10 without being deprecated in 0.11.

local M = {}

---@class CodeCompanion.ChatOpts
---@field adapter? string
---@field model? string
---@field layout? "vertical"|"horizontal"|"float"|"tab"|"buffer"
---@field text? string Text of the draft
---@field hidden? boolean Do not show the chat

local CHAT = { adapter = "string", model = "string", layout = "string", text = "string", hidden = "boolean" }
local LAYOUTS = { "vertical", "horizontal", "float", "tab", "buffer" }

---Stack level of the caller's line, above `refuse`, a check, a function of this module and the public function.
local CALLER = 5

---@param text string
local function refuse(text)
  error("codecompanion: " .. text, CALLER)
end

---@param name string
---@param value any
---@param kind string
---@param is_optional? boolean
local function check(name, value, kind, is_optional)
  if type(value) ~= kind and not (is_optional and value == nil) then
    refuse(("%s: expected %s, got %s"):format(name, kind, type(value)))
  end
end

---@param name string
---@param value any
---@param known string[]
local function check_known(name, value, known)
  if not vim.list_contains(known, value) then
    refuse(("%s: expected one of %s, got %s"):format(name, table.concat(known, ", "), vim.inspect(value)))
  end
end

---Check an optional argument.
---@param name string
---@param value any
---@param kind type
function M.optional(name, value, kind)
  check(name, value, kind, true)
end

---Check a required text argument.
---@param name string
---@param value any
function M.text(name, value)
  check(name, value, "string")
end

---Check the argument of `chat()`.
---@param opts any
function M.chat(opts)
  check("opts", opts, "table", true)
  if opts and (opts.fargs or (opts.event and opts.match)) then
    return -- the function is used directly as a callback of a user command or an autocommand
  end
  local known = vim.tbl_keys(CHAT)
  table.sort(known)
  for key, value in pairs(opts or {}) do
    check_known("opts", key, known)
    check("opts." .. key, value, CHAT[key])
  end
  if opts and opts.layout then
    check_known("opts.layout", opts.layout, LAYOUTS)
  end
end

---Check the argument of `attach()`.
---@param paths any
function M.paths(paths)
  check("paths", paths, "table")
  for index, path in ipairs(paths) do
    check(("paths[%d]"):format(index), path, "string")
  end
end

return M
