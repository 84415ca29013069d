---Allows one installation at a time on this machine: a lock file names the installing editor and its current step.
---
---The owner rewrites the file every few seconds. A file is ignored if its owner was killed or has not written for a
---while (it is suspended, or its process id was reused). Each installation has its own folder, so at worst two
---concurrent installations do the work twice.

local uv = vim.uv or vim.loop

local M = {}

local BEAT_MS = 2000
local STALE_S = 20

---@class CodeCompanion.InstallHolder
---@field pid integer
---@field text string Its current step

---@param path string
---@param text string
local function write(path, text)
  local partial = ("%s.%d"):format(path, uv.os_getpid())
  local descriptor = uv.fs_open(partial, "w", 384) -- 0600
  if descriptor then
    uv.fs_write(descriptor, ("%d\n%s"):format(uv.os_getpid(), text))
    uv.fs_close(descriptor)
    uv.fs_rename(partial, path)
  end
end

---Return the current owner of the lock, as far as can be determined.
---@param path string
---@return CodeCompanion.InstallHolder? holder nil if there is none
function M.holder(path)
  local stat = uv.fs_stat(path)
  local descriptor = stat and uv.fs_open(path, "r", 0)
  if not descriptor then
    return nil
  end
  local content = uv.fs_read(descriptor, 4096, 0) or ""
  uv.fs_close(descriptor)
  local pid, text = content:match("^(%d+)\n?(.*)$")
  if not pid or uv.kill(tonumber(pid), 0) ~= 0 or math.abs(os.time() - stat.mtime.sec) > STALE_S then
    return nil
  end
  return { pid = tonumber(pid), text = text }
end

---@class CodeCompanion.InstallClaim
---@field tell fun(text: string) Updates the current step
---@field release fun()

---Acquire the lock unless it is taken. If the folder is not writable, the lock is granted without a file, because the
---tools report that error better.
---@param path string
---@return CodeCompanion.InstallClaim? claim
function M.take(path)
  pcall(vim.fn.mkdir, vim.fs.dirname(path), "p", 448) -- 0700
  if M.holder(path) then
    return nil
  end
  uv.fs_unlink(path)
  local descriptor, _, code = uv.fs_open(path, "wx", 384)
  if not descriptor and code == "EEXIST" then
    return nil -- another process was faster
  end
  local timer, last = nil, ""
  if descriptor then
    uv.fs_close(descriptor)
    write(path, "")
    timer = assert(uv.new_timer())
    timer:start(BEAT_MS, BEAT_MS, function()
      write(path, last)
    end)
  end
  return {
    tell = function(text)
      last = text
      if timer then
        write(path, text)
      end
    end,
    release = function()
      if timer then
        timer:stop()
        timer:close()
        timer = nil
        local holder = M.holder(path)
        if holder and holder.pid == uv.os_getpid() then
          uv.fs_unlink(path)
        end
      end
    end,
  }
end

return M
