---Lists all available prompts: built-in ones, those in the configuration, and files of the user and the project.
---
---The host reads the files (their front matter is YAML) when prompts are listed. Slash commands and completion, which
---cannot wait, use the last result.

local entry = require("codecompanion.prompt_library.prompt_entry")
local prompt_folders = require("codecompanion.prompt_library.prompt_folders")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

local PROJECT_FOLDER = ".codecompanion/prompts"
local FRESH_MS = 2000

---@class CodeCompanion.PromptFiles
---@field cwd string
---@field prompts CodeCompanion.Prompt[]
---@field problems string[]
---@field at integer Time of the last result, `vim.uv.now()`
local known = { cwd = "", prompts = {}, problems = {}, at = -FRESH_MS }
local waiting = {} ---@type fun()[] Called when the result has arrived
local told = {} ---@type table<string, boolean>

---@return table
local function options()
  return require("codecompanion.config").options.prompt_library
end

---Return whether a prompt folder exists; otherwise the host does not have to be asked.
---@return boolean
function M.has_files()
  local places = vim.list_extend({ prompt_folders.own() }, prompt_folders.configured())
  return #places > 0 and vim.iter(places):any(function(folder)
    return vim.uv.fs_stat(folder) ~= nil
  end) or #vim.fs.find(PROJECT_FOLDER, { upward = true, type = "directory", path = vim.fn.getcwd() }) > 0
end

---@param answer table
local function take(answer, cwd)
  for _, prompt in ipairs(answer.prompts) do
    vim.list_extend(prompt.notes, entry.unknown(prompt, prompt.label))
  end
  known = { cwd = cwd, prompts = answer.prompts, problems = answer.problems, at = vim.uv.now() }
  for _, problem in ipairs(known.problems) do
    if not told[problem] then
      told[problem] = true
      local text = "A prompt is left out: "
      say.line({ text .. problem, text .. problem:gsub("^%S*/", "") }, severity.WARN)
    end
  end
end

---Reload the prompt files through the host.
---@param done? fun() Called once the result or a failure is known
function M.refresh(done)
  waiting[#waiting + 1] = done or function() end
  if #waiting > 1 then
    return
  end
  local cwd = vim.fn.getcwd()
  local request = { cwd = cwd, own_folder = prompt_folders.own(), folders = prompt_folders.configured() }
  require("codecompanion.host").request("list_prompts", request, function(err, answer)
    if err then
      say.line("Prompt files could not be read: " .. err, severity.WARN)
    else
      take(answer, cwd)
    end
    local called = waiting
    waiting = {}
    for _, callback in ipairs(called) do
      callback()
    end
  end)
end

---Reload the prompt files, unless there are none or the last result is recent.
---@param done? fun()
function M.refresh_if_stale(done)
  done = done or function() end
  if not M.has_files() then
    known = { cwd = vim.fn.getcwd(), prompts = {}, problems = {}, at = vim.uv.now() }
    return done()
  elseif known.cwd == vim.fn.getcwd() and vim.uv.now() - known.at < FRESH_MS then
    return done()
  end
  M.refresh(done)
end

---@return CodeCompanion.Prompt[]
local function configured()
  local own, found = options(), {}
  local builtin = require("codecompanion.prompt_library.builtin_prompts")
  for key, given in pairs(own) do
    if key ~= "markdown" and given then
      found[#found + 1] = entry.prompt(key, given, "configuration")
    end
  end
  for key, given in pairs(builtin) do
    if own[key] == nil then
      found[#found + 1] = entry.prompt(key, given, "built-in")
    end
  end
  return found
end

local ORDER = { configuration = 1, user = 2, ["built-in"] = 3, project = 4 }

---Return every known prompt: the user's, then built-in ones, then the project's, each group sorted by name. If two
---prompts have the same alias, the first keeps it.
---@return CodeCompanion.Prompt[]
function M.list()
  local found = configured()
  if known.cwd == vim.fn.getcwd() then
    vim.list_extend(found, vim.deepcopy(known.prompts))
  end
  table.sort(found, function(a, b)
    if ORDER[a.origin] ~= ORDER[b.origin] then
      return ORDER[a.origin] < ORDER[b.origin]
    end
    return a.name:lower() < b.name:lower()
  end)
  local taken = {}
  for _, prompt in ipairs(found) do
    if taken[prompt.alias] then
      prompt.alias = ""
    elseif prompt.alias ~= "" then
      taken[prompt.alias] = true
    end
  end
  return found
end

---Return problems with prompts: skipped files, and unused parts of a file.
---@return string[]
function M.problems()
  local found = vim.list_extend({}, known.cwd == vim.fn.getcwd() and known.problems or {})
  for _, prompt in ipairs(M.list()) do
    vim.list_extend(found, prompt.notes)
  end
  return found
end

---Reload the prompt files, and pass the problems to a callback.
---@param done fun(problems: string[])
function M.read_problems(done)
  M.refresh_if_stale(function()
    done(M.problems())
  end)
end

---Find a prompt by its alias or name.
---@param name string
---@return CodeCompanion.Prompt?
function M.find(name)
  for _, field in ipairs({ "alias", "name" }) do
    for _, prompt in ipairs(M.list()) do
      if prompt[field] == name then
        return prompt
      end
    end
  end
end

---@param path string
---@return CodeCompanion.Prompt?
function M.find_file(path)
  for _, prompt in ipairs(M.list()) do
    if prompt.path == path then
      return prompt
    end
  end
end

---Return whether a prompt applies in this context.
---@param prompt CodeCompanion.Prompt
---@param context CodeCompanion.PromptContext
---@return boolean
function M.fits(prompt, context)
  local mode = context.is_visual and "v" or "n"
  if #prompt.modes > 0 and not vim.list_contains(prompt.modes, mode) then
    return false
  elseif #prompt.filetypes > 0 and not vim.list_contains(prompt.filetypes, context.filetype) then
    return false
  elseif prompt.condition then
    local ok, wanted = pcall(prompt.condition, context)
    if not ok then
      local why = ("The condition of the prompt %s failed: %s"):format(prompt.name, wanted)
      require("codecompanion.config").failed(why)
      say.once(why, severity.WARN)
    end
    return ok and wanted and true or false
  end
  return true
end

return M
