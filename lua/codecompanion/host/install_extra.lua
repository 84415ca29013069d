---Packages that only some need (`environment.EXTRAS`), installed while Neovim runs: the host starts again with them.

local M = {}

---Start the host again, with the packages that have just been installed.
---@param problem string? Why they were not
function M.restart_host(problem)
  local host = require("codecompanion.host")
  if not problem and host.status() ~= "stopped" then
    host.restart_when_idle("The packages are installed; the Python host starts again with them.")
  end
end

---Install the packages of an extra because what was chosen needs them, unless they are wanted already or the user
---installs packages.
---@param extra string Of `environment.EXTRAS`
function M.need(extra)
  local install = require("codecompanion.install")
  if not require("codecompanion.system.python_environment").wants(extra) and install.by_hand(extra) == nil then
    install.add(extra, M.restart_host)
  end
end

return M
