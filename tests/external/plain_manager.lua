---A plugin manager of our own for machines that have none: the steps of lazy.nvim in their documented order.
---
---Install: clone, `:helptags doc`, `build.lua` in a coroutine whose yields are progress; the first error stops the
---rest. Update: fetch, checkout, `:helptags`, build. Load: 'runtimepath', `plugin/`, `setup(opts)`. Reload: modules and
---`g:loaded_…` forgotten, then load. Written from lazy.nvim's documentation (https://lazy.folke.io/developers) and
---checked against it by test_lazy_nvim.py, which has the same tests.

local M = { log = {}, ready = false }

---@param step string
---@param run fun()
local function step(step, run)
  local ok, err = pcall(run)
  table.insert(M.log, step .. (ok and "" or ": " .. tostring(err)))
  if not ok then
    error(step .. " failed: " .. tostring(err), 0)
  end
end

---@param command string[]
local function git(command)
  local done = vim.system(vim.list_extend({ "git" }, command), { text = true }):wait()
  if done.code ~= 0 then
    error(done.stderr, 0)
  end
end

local function helptags()
  vim.cmd.helptags(vim.fn.fnameescape(M.dir .. "/doc"))
end

---Run build.lua until it ends, without standing still: as a task of a manager with a window would.
local function build()
  local thread = coroutine.create(assert(loadfile(M.dir .. "/build.lua")))
  M.progress = {}
  local failure
  vim.wait(60000, function()
    local ok, message = coroutine.resume(thread)
    failure = not ok and message or nil
    if ok and message then
      table.insert(M.progress, message)
    end
    return coroutine.status(thread) == "dead"
  end, 10)
  if failure then
    error(failure, 0)
  end
end

local function load()
  if not vim.list_contains(vim.opt.runtimepath:get(), M.dir) then
    vim.opt.runtimepath:prepend(M.dir)
  end
  for _, path in ipairs(vim.fn.glob(M.dir .. "/plugin/**/*.lua", true, true)) do
    vim.cmd.source(vim.fn.fnameescape(path))
  end
  require("codecompanion").setup(M.opts)
end

---@param url string
---@param dir string
---@param opts table
function M.setup(url, dir, opts)
  M.url, M.dir, M.opts = url, dir, opts
  if not vim.uv.fs_stat(dir) then
    step("clone", function()
      git({ "clone", "--quiet", "--filter=blob:none", url, dir })
    end)
    step("docs", helptags)
    step("build", build)
  end
  step("load", load)
  M.ready = true
end

function M.update()
  step("fetch", function()
    git({ "-C", M.dir, "fetch", "--quiet" })
    git({ "-C", M.dir, "checkout", "--quiet", "origin/HEAD" })
  end)
  step("docs", helptags)
  step("build", build)
end

function M.reload()
  require("codecompanion").deactivate()
  for name in pairs(package.loaded) do
    if name == "codecompanion" or name:find("^codecompanion%.") then
      package.loaded[name] = nil
    end
  end
  vim.g.loaded_codecompanion = nil
  step("reload", load)
end

return M
