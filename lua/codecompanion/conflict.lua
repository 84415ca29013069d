---Another plugin of the same name: two cannot share `lua/codecompanion`, so it is said once, and nothing is started.

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
  return normalise(vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h:h:h"))
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

---Who owns `:CodeCompanion` when it is not us.
---@return string
local function command_owner()
  local definition = vim.api.nvim_get_commands({})["CodeCompanion"]
  local callback = definition and definition.callback
  local source = type(callback) == "function" and debug.getinfo(callback, "S").source:sub(2) or ""
  return source ~= "" and source or "another plugin"
end

---@param text string
local function say_once(text)
  if not said then
    said = true
    vim.schedule(function()
      require("codecompanion.say")(text, vim.log.levels.ERROR)
    end)
  end
end

---The commands are taken already (said while starting up).
---@param source string Our plugin file
function M.report_commands(source)
  local text = ("%s already owns :CodeCompanion, this plugin (%s) stays off. %s."):format(
    command_owner(),
    vim.fn.fnamemodify(source:sub(2), ":h:h"),
    ADVICE
  )
  say_once(text)
end

---Say so when another plugin shares our modules.
---@return boolean found Nothing may be started then
function M.check()
  local other = M.other_root()
  if other then
    said = false -- an action of the user deserves its answer
    say_once(("two plugins are named codecompanion: %s and %s. %s."):format(our_root(), other, ADVICE))
  end
  return other ~= nil
end

return M
