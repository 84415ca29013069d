---Translates the output of uv and pip into progress and error messages.

local M = {}

---Patterns of tool output and their messages; the first match wins.
---@type { [1]: string, [2]: string }[]
local MEANINGS = {
  { "No space left on device", "the disk is full" },
  { "os error 28", "the disk is full" },
  { "Disk quota exceeded", "the disk quota is used up" },
  { "Read%-only file system", "the data folder is read-only" },
  { "Permission denied", "the data folder is not writable" },
  { "DO NOT MATCH THE HASHES", "a downloaded package does not match the lock file" },
  { "[Hh]ash mismatch", "a downloaded package does not match the lock file" },
  { "ensurepip", "this Python cannot create virtual environments" },
  { "No interpreter found", "no Python 3.11 or newer was found, and uv could not download one" },
  { "resolve host", "no network connection" },
  { "name resolution", "no network connection" },
  { "dns error", "no network connection" },
  { "Name or service not known", "no network connection" },
  { "getaddrinfo failed", "no network connection" },
  { "[Nn]etwork is unreachable", "no network connection" },
  { "No route to host", "no network connection" },
  { "[Cc]onnection refused", "the package index does not answer" },
  { "[Ff]ailed to establish a new connection", "no network connection" },
  { "timed out", "the package index does not answer" },
  { "error sending request", "the package index does not answer" },
  { "[Cc]ertificate", "the package index's certificate is not trusted" },
  { "[Nn]o matching distribution", "a package is not on the index, or not for this system" },
  { "[Nn]o solution found", "a package is not on the index, or not for this system" },
}

---Return why a tool failed, and the consequence; the reason comes first because the command line cuts off the end.
---@param output string
---@param consequence string "the Python packages were not installed"
---@return string sentence Without a period
function M.explain(output, consequence)
  for _, meaning in ipairs(MEANINGS) do
    if output:find(meaning[1]) then
      return ("%s%s: %s"):format(meaning[2]:sub(1, 1):upper(), meaning[2]:sub(2), consequence)
    end
  end
  local last = vim.trim(output):match("[^\n]*$")
  consequence = consequence:sub(1, 1):upper() .. consequence:sub(2)
  return ("%s: %s"):format(consequence, last ~= "" and last or "the installer printed nothing")
end

---Count the packages in a lock file; some may be for other systems only.
---@param lock string Contents of requirements.lock
---@return integer
function M.count(lock)
  local _, count = ("\n" .. lock):gsub("\n[%w][%w._-]*==", "")
  return count
end

---Return a function that follows the output of a tool that installs packages.
---@param total integer Number of packages in the lock file
---@param report fun(text: string) Called on progress: "12 of 37 downloaded"
---@return fun(chunk: string) take Call it with the output, in chunks of any size
function M.reader(total, report)
  local rest, taken = "", 0
  ---@param line string
  local function read(line)
    local resolved = line:match("^Resolved (%d+) package")
    local prepared = line:match("^Prepared (%d+) package")
    local installed = line:match("^Installed (%d+) package")
    if resolved then
      report(("downloading %s"):format(resolved))
    elseif prepared then
      report(("unpacking %s"):format(prepared))
    elseif installed then
      report(("compiling %s"):format(installed))
    elseif line:find("^Ignoring ") then
      total = total - 1
    elseif line:find("^Collecting ") or line:find("^Processing ") then
      taken = taken + 1
      report(("%d of %d downloaded"):format(taken, math.max(total, taken)))
    elseif line:find("^Installing collected packages") then
      report(("unpacking %d"):format(taken))
    end
  end
  return function(chunk)
    rest = rest .. chunk
    while true do
      local line, after = rest:match("^([^\n]*)\n(.*)$")
      if not line then
        return
      end
      rest = after
      read(line)
    end
  end
end

return M
