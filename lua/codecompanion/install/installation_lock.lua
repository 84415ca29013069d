---One installation at a time on this machine: a file that says which editor installs and what it is doing.
---
---Its owner writes it again every few seconds. A file whose owner was killed, or has not written for a while (it is
---suspended, or its process id was given to somebody else), counts for nothing: each installation has a folder of its
---own, so the worst that two at once do is work twice.

local uv = vim.uv or vim.loop

local M = {}

local BEAT_MS = 2000
local STALE_S = 20

---@class CodeCompanion.InstallHolder
---@field pid integer
---@field text string What it is doing

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

---Who installs right now, as far as can be told.
---@param path string
---@return CodeCompanion.InstallHolder? holder nil when nobody does
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
---@field tell fun(text: string) Say what is being done
---@field release fun()

---Take the claim unless somebody has it. A folder that cannot be written is better explained by the tools, so the claim
---is given without a file there.
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
    return nil -- somebody was faster
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
