---Keep Neovim's environment and memory from other programs of the user, those that the host starts included.
---
---Every program of the user may read `/proc/<nvim>/environ`, where the keys are. Linux closes it for a process that is
---not dumpable (man 2 prctl); such a process leaves no core dump, and no debugger of the user attaches to it. As in
---`python/codecompanion/engine/own_memory.py` for the host. With `sandbox = "off"` it is left as it is.

local M = {}

local PR_SET_DUMPABLE = 4

---@return boolean closed
function M.close()
  if (vim.uv or vim.loop).os_uname().sysname ~= "Linux" then
    return false
  end
  if not rawget(_G, "jit") then
    return false -- without LuaJIT `require` would look for an `ffi.lua`, also in the folder Neovim runs in
  end
  local ffi = require("ffi")
  pcall(ffi.cdef, "int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);")
  local called, result = pcall(function()
    return ffi.C.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
  end)
  return called and result == 0
end

return M
