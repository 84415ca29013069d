---Another plugin of the same name: two cannot share `lua/codecompanion`, so it is said once, and nothing is started.

local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

local ADVICE = "Keep one of the two"
local said = false

---@param path string
---@return string
local function normalise(path)
  return vim.fs.normalize((vim.uv or vim.loop).fs_realpath(path) or path)
end

---@return string root Where this very file is
local function our_root()
  return normalise(vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h:h:h:h"))
end

---Another plugin's folder that has modules of our name.
---@return string? root
function M.other_root()
  local ours = our_root()
  for _, path in ipairs(vim.api.nvim_get_runtime_file("lua/codecompanion/init.lua", true)) do
    local root = normalise(vim.fn.fnamemodify(path, ":h:h:h"))
    if root ~= ours then
      return root
    end
  end
end

---@param path string
---@return string
local function short(path)
  return vim.fn.fnamemodify(path, ":~")
end

---@param text string
local function say_once(text)
  if not said then
    said = true
    say.line(text, severity.ERROR)
  end
end

---The commands are taken already (found while starting up).
function M.report_commands()
  local other = M.other_root()
  local owner = other and short(other) or "another plugin"
  say_once((":CodeCompanion belongs to %s, so %s stays off. %s."):format(owner, short(our_root()), ADVICE))
end

---Say so when another plugin shares our modules.
---@return boolean found Nothing may be started then
function M.check()
  local other = M.other_root()
  if other then
    said = false -- an action of the user deserves its answer
    say_once(("%s has the same name as %s. %s."):format(short(other), short(our_root()), ADVICE))
  end
  return other ~= nil
end

return M
