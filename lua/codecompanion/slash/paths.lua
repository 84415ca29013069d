---Paths for `/file` and `/image`: completion, and a list to choose from.

local M = {}

local MAX_FILES = 5000
local MAX_DEPTH = 12
local SKIPPED = { [".git"] = true, node_modules = true, [".venv"] = true, __pycache__ = true, target = true }

---Paths that go on from `lead`.
---@param lead string
---@return string[]
function M.complete(lead)
  return vim.fn.getcompletion(lead, "file")
end

---Files below the working folder, what git ignores left out.
---@param callback fun(paths: string[])
function M.list(callback)
  local function walk()
    local found = {}
    local options = {
      depth = MAX_DEPTH,
      skip = function(name)
        return not SKIPPED[vim.fs.basename(name)]
      end,
    }
    for name, kind in vim.fs.dir(vim.fn.getcwd(), options) do
      if kind == "file" then
        found[#found + 1] = name
        if #found == MAX_FILES then
          break
        end
      end
    end
    return found
  end
  local command = { "git", "ls-files", "--cached", "--others", "--exclude-standard", "-z" }
  local started = pcall(vim.system, command, { cwd = vim.fn.getcwd(), timeout = 5000 }, function(result)
    vim.schedule(function()
      local paths = result.code == 0 and vim.split(result.stdout, "\0", { plain = true, trimempty = true }) or {}
      callback(#paths > 0 and paths or walk())
    end)
  end)
  if not started then
    callback(walk())
  end
end

---Attach a path, after looking whether it can be read.
---@param chat CodeCompanion.Chat
---@param kind "file"|"image"
---@param path string
function M.attach(chat, kind, path)
  local full = vim.fn.fnamemodify(vim.fs.normalize(path), ":p")
  if vim.fn.filereadable(full) == 0 then
    require("codecompanion.slash").say(chat, ("There is no readable file %s."):format(path))
    return
  end
  require("codecompanion.chat.session").notify(chat, "attach", { kind = kind, path = full })
end

---Let the user choose among files for which `accept` holds.
---@param chat CodeCompanion.Chat
---@param kind "file"|"image"
---@param accept fun(path: string): boolean
function M.pick(chat, kind, accept)
  M.list(function(paths)
    local choices = vim.tbl_filter(accept, paths)
    if #choices == 0 then
      require("codecompanion.slash").say(chat, ("No %s was found below %s."):format(kind, vim.fn.getcwd()))
      return
    end
    vim.ui.select(choices, { prompt = "Attach a " .. kind, kind = "codecompanion." .. kind }, function(path)
      if path then
        M.attach(chat, kind, path)
      end
    end)
  end)
end

return M
