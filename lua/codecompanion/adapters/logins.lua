---Adapters that use a login instead of a key, by kind. Checks whether a login exists, without reading it or asking the
---user, and names the remedy if there is none.

local environment = require("codecompanion.system.python_environment")

---@class CodeCompanion.LoginKind
---@field is_there fun(): boolean
---@field needs string Remedy, in a few words

---@param path string
---@return boolean
local function exists(path)
  return vim.uv.fs_stat(path) ~= nil
end

---@param name string
---@return boolean
local function is_kept(name)
  return exists(environment.data_dir() .. "/" .. name)
end

---Return whether a file exists that `python/codecompanion/adapters/copilot/stored_login.py` would read.
---@return boolean
local function is_in_copilot()
  local env = vim.env
  if (env.COPILOT_GITHUB_TOKEN or "") ~= "" or (env.CODESPACES and (env.GITHUB_TOKEN or "") ~= "") then
    return true
  end
  if is_kept("logins.json") then
    return true
  end
  local home = env.HOME or env.USERPROFILE or ""
  local bases = { home .. "/.config", home .. "/AppData/Local", env.XDG_CONFIG_HOME, env.LOCALAPPDATA }
  for _, base in pairs(bases) do
    for _, name in ipairs({ "apps.json", "hosts.json", "auth.db" }) do
      if exists(("%s/github-copilot/%s"):format(base, name)) then
        return true
      end
    end
  end
  return false
end

---@type table<string, CodeCompanion.LoginKind>
return {
  copilot = { is_there = is_in_copilot, needs = "log in to GitHub" },
  chatgpt = {
    is_there = function()
      return is_kept("chatgpt.json") -- the file exists as long as someone is logged in
    end,
    needs = "log in with your ChatGPT plan",
  },
}
