---Paths for `/file` and `/image`: completion, and a list to choose from.

local M = {}

local MAX_FILES = 5000
local MAX_DEPTH = 12
local SKIPPED = { [".git"] = true, node_modules = true, [".venv"] = true, __pycache__ = true, target = true }

---Paths that go on from `lead`; spaces are written `\ `.
---@param lead string
---@return string[]
function M.complete(lead)
  return vim.tbl_map(function(path)
    return (path:gsub(" ", "\\ "))
  end, vim.fn.getcompletion(lead:gsub("\\ ", " "), "file"))
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

---@param path string
---@return string
local function absolute(path)
  return vim.fn.fnamemodify(vim.fs.normalize(path), ":p")
end

---@param path string
---@return boolean
local function is_readable(path)
  return vim.fn.filereadable(absolute(path)) == 1
end

---The paths of an argument: one with spaces in it, or several words, each may be a pattern such as `src/*.lua`.
---@param argument string
---@return string[] paths
---@return string[] missing
function M.parse(argument)
  if is_readable(argument) then
    return { argument }, {}
  end
  local found, missing = {}, {}
  for _, word in ipairs(require("codecompanion.slash").words(argument)) do
    if is_readable(word) then
      found[#found + 1] = word
    else
      local matches = word:find("[*?%[]") and vim.tbl_filter(is_readable, vim.fn.glob(word, false, true)) or {}
      vim.list_extend(found, matches)
      missing[#missing + 1] = #matches == 0 and word or nil
    end
  end
  return found, missing
end

---@param chat CodeCompanion.Chat
---@param kind "file"|"image"
---@param path string
function M.attach(chat, kind, path)
  require("codecompanion.chat.state.session").notify(chat, "attach", { kind = kind, path = absolute(path) })
end

---Attach what an argument names; if anything of it cannot be read, nothing is attached.
---@param chat CodeCompanion.Chat
---@param kind "file"|"image"
---@param argument string
---@param refuse fun(reason: string)
---@param accept? fun(path: string): boolean
---@param wanted? string What it accepts
function M.attach_all(chat, kind, argument, refuse, accept, wanted)
  local found, missing = M.parse(argument)
  local wrong = vim.tbl_filter(function(path)
    return accept ~= nil and not accept(path)
  end, found)
  if #missing > 0 then
    return refuse(("Nothing was attached: no readable file %s."):format(table.concat(missing, ", ")))
  end
  if #wrong > 0 then
    return refuse(("Nothing was attached: %s is not %s."):format(table.concat(wrong, ", "), wanted))
  end
  for _, path in ipairs(found) do
    M.attach(chat, kind, path)
  end
end

---Attach files to the chat in use, or to a new one.
---@param paths string[]
function M.attach_to_current(paths)
  local life = require("codecompanion.chat.ui.life")
  local chat, missing = require("codecompanion.chat.state.registry").current(), {}
  if chat then
    life.show(chat)
  else
    chat = life.open()
  end
  for _, path in ipairs(paths) do
    if is_readable(path) then
      M.attach(chat, "file", path)
    else
      missing[#missing + 1] = path
    end
  end
  if #missing > 0 then
    require("codecompanion.slash").say(chat, ("Not attached: no readable file %s."):format(table.concat(missing, ", ")))
  end
end

---Let the user choose among files for which `accept` holds.
---@param chat CodeCompanion.Chat
---@param kind "file"|"image"
---@param accept fun(path: string): boolean
function M.pick(chat, kind, accept)
  M.list(function(paths)
    local choices = vim.tbl_filter(accept, paths)
    if #choices == 0 then
      require("codecompanion.slash").say(chat, ("No %s found below %s."):format(kind, vim.fn.getcwd()))
      return
    end
    local prompt = kind == "file" and "Attach files" or "Attach images"
    local options = { prompt = prompt, kind = "codecompanion." .. kind }
    require("codecompanion.screen.choose").select_many(choices, options, function(chosen)
      for _, path in ipairs(chosen or {}) do
        M.attach(chat, kind, path)
      end
    end)
  end)
end

return M
