---Detects another plugin of the same name: two plugins cannot share `lua/codecompanion`. The conflict is reported once,
---and nothing starts.

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

---@return string root Plugin folder of this file
local function our_root()
  return normalise(vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h:h:h:h"))
end

---Return another plugin's folder that contains modules of the same name.
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

---Report that the commands already exist, as found at startup.
function M.report_commands()
  local other = M.other_root()
  local owner = other and short(other) or "another plugin"
  say_once((":CodeCompanion belongs to %s, so %s is disabled. %s."):format(owner, short(our_root()), ADVICE))
end

---Report another plugin that shares our modules.
---@return boolean found If true, nothing may be started
function M.check()
  local other = M.other_root()
  if other then
    said = false -- report it again when the user acts
    say_once(("%s has the same name as %s. %s."):format(short(other), short(our_root()), ADVICE))
  end
  return other ~= nil
end

return M
