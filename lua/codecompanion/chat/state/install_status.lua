---Whether a chat waits because the Python environment is being installed, and how far that is.

local M = {}

---@return CodeCompanion.InstallProgress? progress Of the installation that runs; never loads the installer
function M.progress()
  local install = package.loaded["codecompanion.install"]
  return install and install.progress
end

---Whether the chat waits for an installation.
---@param chat CodeCompanion.Chat
---@return boolean
function M.waits(chat)
  return chat.attached == "opening" and M.progress() ~= nil
end

---`Installing Python packages: 12 of 37 downloaded · 14 s`
---@param brief? boolean `Installing: 12 of 37 downloaded · 14 s`
---@return string
function M.text(brief)
  local now = M.progress()
  if not now then
    return ""
  end
  local seconds = math.floor((vim.uv.now() - now.began) / 1000)
  local what = require("codecompanion.install").describe()
  return ("%s · %d s"):format(brief and what:gsub(" Python packages", "", 1) or what, seconds)
end

return M
