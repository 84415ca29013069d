---Adapters that have a login in place of a key, by kind: whether there is one, as far as it can be told without asking,
---and what is needed when there is none. Nothing of a login is read here.

local environment = require("codecompanion.system.python_environment")

---@class CodeCompanion.LoginKind
---@field is_there fun(): boolean
---@field needs string In a few words

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

---Whether there is something that `python/codecompanion/adapters/copilot/stored_login.py` would look into.
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
      return is_kept("chatgpt.json") -- there as long as somebody is logged in
    end,
    needs = "log in with your ChatGPT plan",
  },
}
