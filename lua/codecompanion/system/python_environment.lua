---Finds the plugin's private Python environments and chooses the valid one.
---
---A virtual environment cannot be moved, so each installation gets its own folder below
---`stdpath("data")/codecompanion/venv` and becomes valid only with its last step, the stamp. A failed installation
---therefore never affects the environment in use. The stamp contains the hash of the lock file and the interpreter.

local uv = vim.uv or vim.loop

local M = {}

local STAMP = "codecompanion-stamp.json"
local BINARY = vim.fn.has("win32") == 1 and "/Scripts/python.exe" or "/bin/python"

---@class CodeCompanion.Stamp
---@field lock string sha256 of the lock file
---@field python string Version, for example 3.11.7
---@field interpreter string Real path of the environment's python
---@field tool string uv or pip

---@class CodeCompanion.Environment
---@field dir string
---@field python string
---@field stamp CodeCompanion.Stamp
---@field fresh boolean Whether it was built from the current lock file

---@return string root The plugin's folder
function M.root()
  local source = debug.getinfo(1, "S").source:sub(2)
  return vim.fs.normalize(vim.fn.fnamemodify(source, ":p:h:h:h:h"))
end

---@return string
function M.data_dir()
  return vim.fn.stdpath("data") .. "/codecompanion"
end

---Extras: optional packages, in the order of the lock files' names.
---@type table<string, string> Extra → packages that the user's own Python needs for it
M.EXTRAS = {
  semantic = "onnxruntime tokenizers numpy",
  mcp = "mcp",
  sdk = "openai 'anthropic[bedrock,vertex]' azure-identity",
}
local ORDER = { "semantic", "mcp", "sdk" }

---@param extra string
---@return string path File that marks the extra as enabled
local function mark(extra)
  return M.data_dir() .. "/with-" .. extra
end

---@param extra string
---@return boolean
function M.wants(extra)
  return uv.fs_stat(mark(extra)) ~= nil
end

---Enable or disable the packages of an extra, for this installation and later ones.
---@param extra string
---@param wanted boolean
---@return boolean done
function M.want(extra, wanted)
  if not wanted then
    return uv.fs_unlink(mark(extra)) == true
  end
  pcall(vim.fn.mkdir, M.data_dir(), "p", 448) -- 0700
  local file = io.open(mark(extra), "w")
  return file ~= nil and file:close() == true
end

---@return string path Path of the packages and their hashes
function M.lock_path()
  local name = "requirements"
  for _, extra in ipairs(ORDER) do
    name = name .. (M.wants(extra) and "-" .. extra or "")
  end
  return ("%s/%s.lock"):format(M.root(), name)
end

---@param path string
---@return string? text
function M.read(path)
  local file = io.open(path, "rb")
  if not file then
    return nil
  end
  local text = file:read("*a")
  file:close()
  return text
end

---@return string sha256 "" if there is no lock file
function M.lock_hash()
  local text = M.read(M.lock_path())
  return text and vim.fn.sha256(text) or ""
end

---@param dir string
---@return string
function M.python_of(dir)
  return dir .. BINARY
end

---@return string dir For the next installation; does not exist yet
function M.new_dir()
  local seconds, microseconds = uv.gettimeofday()
  return ("%s/venv/%d%06d-%d"):format(M.data_dir(), seconds, microseconds, uv.os_getpid())
end

---@param dir string
---@param stamp CodeCompanion.Stamp
---@return boolean ok
function M.write_stamp(dir, stamp)
  local partial = dir .. "/" .. STAMP .. ".new"
  local file = io.open(partial, "wb")
  if not file then
    return false
  end
  local written = file:write(vim.json.encode(stamp))
  return file:close() and written ~= nil and uv.fs_rename(partial, dir .. "/" .. STAMP) == true
end

---Stop using this environment, which turned out to be damaged.
---@param python string
---@return boolean done False if it is not a private environment, or cannot be changed
function M.discard(python)
  for _, dir in ipairs(M.all_dirs()) do
    if M.python_of(dir) == python then
      return uv.fs_unlink(dir .. "/" .. STAMP) == true
    end
  end
  return false
end

---@param dir string
---@return boolean finished Whether the installation there was completed
function M.has_stamp(dir)
  return uv.fs_stat(dir .. "/" .. STAMP) ~= nil
end

---@param dir string
---@param lock string
---@return CodeCompanion.Environment?
local function look_at(dir, lock)
  local ok, stamp = pcall(vim.json.decode, M.read(dir .. "/" .. STAMP) or "")
  if not ok or type(stamp) ~= "table" or type(stamp.lock) ~= "string" then
    return nil
  end
  local python = M.python_of(dir)
  -- The system's Python may have been replaced by another version, which no longer finds the packages.
  if uv.fs_realpath(python) ~= stamp.interpreter then
    return nil
  end
  return { dir = dir, python = python, stamp = stamp, fresh = stamp.lock == lock }
end

---@return string[] dirs All folders that look like an installation, newest first
function M.all_dirs()
  local dirs = {}
  local parent = M.data_dir() .. "/venv"
  for name, kind in vim.fs.dir(parent) do
    if kind == "directory" and name:match("^%d+%-%d+$") then
      table.insert(dirs, parent .. "/" .. name)
    end
  end
  local function age(dir)
    return tonumber(dir:match("(%d+)%-%d+$"))
  end
  table.sort(dirs, function(a, b)
    return age(a) > age(b)
  end)
  return dirs
end

---Store the host's Python for `bin/codecompanion`, because only Neovim knows how it was chosen.
---@param python string
function M.remember(python)
  local path = M.data_dir() .. "/python"
  if M.read(path) == python .. "\n" then
    return
  end
  pcall(vim.fn.mkdir, M.data_dir(), "p", 448) -- 0700
  local file = uv.fs_open(path, "w", 384) -- 0600
  if file then
    uv.fs_write(file, python .. "\n")
    uv.fs_close(file)
  end
end

---@return CodeCompanion.Environment? environment The newest that matches the lock file, otherwise the newest that works
function M.find()
  local lock = M.lock_hash()
  local usable
  for _, dir in ipairs(M.all_dirs()) do
    local environment = look_at(dir, lock)
    if environment and environment.fresh then
      return environment
    end
    usable = usable or environment
  end
  return usable
end

return M
