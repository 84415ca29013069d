---Lists the file names of the project for completion and `/file`: the host lists them, and the result is cached and
---refreshed on later requests. Nothing here blocks.

local api = vim.api
local matching = require("codecompanion.project_files.matching")

local uv = vim.uv or vim.loop

local M = {}

local FRESH_MS = 5000
---Limits of listing without git: total files, entries per step, depth.
local MAX_WALKED, STEP, MAX_DEPTH = 20000, 300, 12
local SKIPPED = { [".git"] = true, node_modules = true, [".venv"] = true, __pycache__ = true, target = true }
---Extensions of files without text; images and PDFs are not among them, because a model can read them.
local BINARY = " 7z a bin bz2 class db dll dylib exe gz ico jar lib mo mov mp3 mp4 o obj otf pyc pyo so sqlite tar ttf"
  .. " wasm woff woff2 xz zip zst "

---@class CodeCompanion.ProjectFiles
---@field text? string Names relative to the folder, each between NULs; nil if not listed yet
---@field lower? string `text` in lower case
---@field at number Time of the listing
---@field waiting? fun()[] Called when the listing is complete

---@type table<string, CodeCompanion.ProjectFiles> By folder
local known = {}

---Return the folder that names in a message are relative to, as in the host.
---@return string
function M.folder()
  local root = vim.tbl_get(require("codecompanion.config").options, "workspace", "root")
  return vim.fs.normalize(type(root) == "string" and root ~= "" and root or vim.fn.getcwd())
end

---List files below a folder without git, in small steps.
---@param folder string
---@param done fun(text: string)
local function walk(folder, done)
  local found = { "" }
  local next_entry = vim.fs.dir(folder, {
    depth = MAX_DEPTH,
    skip = function(name)
      return not SKIPPED[vim.fs.basename(name)]
    end,
  })
  local function step()
    for _ = 1, STEP do
      local name, kind = next_entry()
      if not name or #found > MAX_WALKED then
        return done(table.concat(found, "\0") .. "\0")
      elseif kind == "file" then
        found[#found + 1] = name
      end
    end
    vim.schedule(step)
  end
  vim.schedule(step)
end

---List the names that git knows, through the host, which runs nothing from the folder; without a host, list all files.
---@param folder string
---@param done fun(text: string)
local function list(folder, done)
  local host = require("codecompanion.host")
  if host.status() == "failed" then
    return walk(folder, done)
  end
  host.request("list_names", { cwd = folder }, function(problem, names)
    if problem or type(names) ~= "string" or names == "" then
      return walk(folder, done)
    end
    done(names .. "\0")
  end)
end

---List the files of a folder, unless it was listed recently.
---@param folder string
---@param done? fun() Called once the files are known, possibly immediately
function M.look(folder, done)
  local entry = known[folder] or { at = 0 }
  known[folder] = entry
  if entry.text and done then
    done()
    done = nil
  end
  if entry.waiting then
    entry.waiting[#entry.waiting + 1] = done
  elseif not entry.text or uv.now() - entry.at > FRESH_MS then
    entry.waiting = { done }
    list(folder, function(text)
      local waiting = entry.waiting or {}
      entry.text, entry.lower, entry.at, entry.waiting = text, text:lower(), uv.now(), nil
      for _, tell in ipairs(waiting) do
        tell()
      end
    end)
  end
end

---Return whether the files of a folder are known; the list may be outdated.
---@param folder string
---@return boolean
function M.is_known(folder)
  return known[folder] ~= nil and known[folder].text ~= nil
end

---@param name string
---@return boolean
local function is_binary(name)
  local extension = name:match("%.(%w+)$")
  return extension ~= nil and BINARY:find(" " .. extension:lower() .. " ", 1, true) ~= nil
end

---Pass all current files of the working folder to a callback, except binary ones.
---@param callback fun(paths: string[])
function M.all(callback)
  list(vim.fn.getcwd(), function(text)
    callback(vim.tbl_filter(function(name)
      return not is_binary(name)
    end, vim.split(text, "\0", { plain = true, trimempty = true })))
  end)
end

---Return open files below a folder, most recently used first.
---@param folder string
---@return string[]
local function open_names(folder)
  local found = {}
  for _, one in ipairs(vim.fn.getbufinfo({ buflisted = 1 })) do
    if one.name ~= "" and vim.bo[one.bufnr].buftype == "" and vim.startswith(one.name, folder .. "/") then
      found[#found + 1] = { name = one.name:sub(#folder + 2), used = one.lastused }
    end
  end
  table.sort(found, function(a, b)
    return a.used > b.used
  end)
  return vim.tbl_map(function(one)
    return one.name
  end, found)
end

---@param folder string
---@param name string
---@return boolean
local function is_there(folder, name)
  return name:find("%c") == nil and uv.fs_stat(folder .. "/" .. name) ~= nil
end

---Return names of files, and folders with a trailing `/`, that match the typed text, in this order: open files, names
---that continue the text, names with a component that begins with the text, and other names that contain it. Binary
---files and files ignored by git follow, once their path is typed: at least a letter of the name, or an ignored folder.
---@param lead string
---@param max integer
---@param folder? string Defaults to the working folder
---@return string[]
function M.fitting(lead, max, folder)
  folder = folder or vim.fs.normalize(vim.fn.getcwd())
  local found, has = {}, {}
  local function take(names, is_checked)
    for _, name in ipairs(names) do
      if #found < max and not has[name] and (is_checked or not is_binary(name) and is_there(folder, name)) then
        has[name], found[#found + 1] = true, name
      end
    end
  end
  if not lead:find("^[~/]") and not lead:find("^%.%.?/") then
    M.look(folder)
    take(matching.among(open_names(folder), lead, max))
    local entry = known[folder]
    if entry.text then
      local listed = matching.find(entry.text, entry.lower, lead, max)
      take(listed)
      if #listed > 0 and lead:match("[^/]*$"):find("^%.?$") then
        return found
      end
    end
  end
  local typed = require("codecompanion.system.literal_paths").beginning_with(lead, folder)
  take(
    vim.tbl_filter(function(name)
      return lead ~= "" or not SKIPPED[name:match("[^/]+") or ""]
    end, typed),
    true
  )
  return found
end

---Call `show` when the files are known, provided that the user is still in Insert mode and neither the cursor nor the
---line has changed.
---@param folder string
---@param show fun()
function M.when_known(folder, show)
  local bufnr, cursor = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)
  local line = api.nvim_get_current_line()
  M.look(folder, function()
    local same = api.nvim_get_current_buf() == bufnr and api.nvim_get_current_line() == line
    if same and vim.deep_equal(api.nvim_win_get_cursor(0), cursor) and api.nvim_get_mode().mode:find("^i") then
      show()
    end
  end)
end

return M
