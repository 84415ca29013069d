---Reports whether a chat waits for the installation of the Python environment, and its progress.

local M = {}

---@return CodeCompanion.InstallProgress? progress Progress of the running installation; never loads the installer
function M.progress()
  local install = package.loaded["codecompanion.install"]
  return install and install.progress
end

---Return whether the chat waits for an installation.
---@param chat CodeCompanion.Chat
---@return boolean
function M.waits(chat)
  return chat.attached == "opening" and M.progress() ~= nil
end

---Return `Installing Python packages: 12 of 37 downloaded · 14 s`.
---@param brief? boolean Return `Installing packages: 12 of 37 downloaded · 14 s`
---@return string
function M.text(brief)
  local now = M.progress()
  if not now then
    return ""
  end
  local seconds = math.floor((vim.uv.now() - now.began) / 1000)
  local what = require("codecompanion.install").describe()
  return ("%s · %d s"):format(brief and what:gsub("Python packages", "packages", 1) or what, seconds)
end

return M
