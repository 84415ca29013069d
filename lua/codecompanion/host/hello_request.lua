---Builds the first request to a host: configuration, keys and paths.

local M = {}

---Return the payload of `hello`; raise configuration errors.
---@return table payload
---@return table<string, string> open Environment variables of the host's process
function M.prepare()
  local config = require("codecompanion.config")
  local version = vim.version()
  local settings = config.for_host()
  local adapters = config.adapters()
  local open, hidden = require("codecompanion.host.secret_environment").divide(settings, adapters)
  local payload = {
    settings = settings,
    mistakes = config.for_chats(),
    wrong_options = config.wrong_options(),
    adapters = adapters.entries,
    proxy = adapters.proxy,
    environment = hidden,
    secrets = (config.secrets()), -- the configuration reports an error; the adapter reports the missing key
    data_dir = vim.fn.stdpath("data") .. "/codecompanion",
    cache_dir = vim.fn.stdpath("cache") .. "/codecompanion",
    state_dir = vim.fn.stdpath("state") .. "/codecompanion",
    config_dir = vim.fn.stdpath("config") .. "/codecompanion",
    log_path = require("codecompanion.system.log").path(),
    shell = vim.o.shell,
    language = config.language(),
    nvim = ("%d.%d.%d"):format(version.major, version.minor, version.patch),
  }
  return payload, open
end

return M
