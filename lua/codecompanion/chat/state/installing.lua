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
---@return string
function M.text()
  local now = M.progress()
  local seconds = now and math.floor((vim.uv.now() - now.began) / 1000)
  return now and ("%s · %d s"):format(require("codecompanion.install").describe(), seconds) or ""
end

return M
