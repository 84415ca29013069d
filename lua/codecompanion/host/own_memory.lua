---Protects Neovim's environment and memory from the user's other programs, including those that the host starts.
---
---Any program run by the user may read `/proc/<nvim>/environ`, which contains the keys. Linux denies this for a process
---that is not dumpable (man 2 prctl); such a process writes no core dump, and the user's debuggers cannot attach to it.
---The host does the same in `python/codecompanion/engine/own_memory.py`. With `sandbox = "off"` nothing changes.

local M = {}

local PR_SET_DUMPABLE = 4

---@return boolean closed
function M.close()
  if (vim.uv or vim.loop).os_uname().sysname ~= "Linux" then
    return false
  end
  if not rawget(_G, "jit") then
    return false -- without LuaJIT, `require` would search for an `ffi.lua`, even in the working folder
  end
  local ffi = require("ffi")
  pcall(ffi.cdef, "int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);")
  local called, result = pcall(function()
    return ffi.C.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
  end)
  return called and result == 0
end

return M
