---Installs optional packages (`environment.EXTRAS`) at run time and restarts the host to use them.

local M = {}

---Restart the host with the newly installed packages.
---@param problem string? Why the installation failed
function M.restart_host(problem)
  local host = require("codecompanion.host")
  if not problem and host.status() ~= "stopped" then
    host.restart_when_idle("Packages installed; the Python process restarts with them.")
  end
end

---Install the packages of an extra that the user's choice requires, unless the extra is already enabled or the user
---manages packages.
---@param extra string A key of `environment.EXTRAS`
function M.need(extra)
  local install = require("codecompanion.install")
  local is_wanted = require("codecompanion.system.python_environment").wants(extra)
  if not is_wanted and install.manual_instruction(extra) == nil then
    install.add(extra, M.restart_host)
  end
end

return M
