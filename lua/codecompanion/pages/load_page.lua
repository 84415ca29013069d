---Requests the content of a page from the host. While the host starts or its packages are installed, a float with the
---page title shows the progress.

local api = vim.api
local float = require("codecompanion.screen.float")
local host = require("codecompanion.host")
local say = require("codecompanion.say")
local scratch = require("codecompanion.screen.scratch_buffer")
local severity = require("codecompanion.severity")

local M = {}

---Return the text of a waiting page: the progress of an installation and its reason, or a note that the host is
---starting.
---@return string[]
local function waiting()
  local install = require("codecompanion.install")
  if not install.progress then
    return { "Loading: the Python process is starting…" }
  end
  return vim.list_extend({ install.describe() }, install.reasons())
end

---@param title string
---@param verb string
---@param payload table
---@param done fun(now: any) Not called if the user has closed the float meanwhile
function M.ask(title, verb, payload, done)
  if host.status() == "ready" then
    return host.ask(verb, payload, done)
  end
  local bufnr, win = float.open({ title = title, lines = waiting(), footer = "q close" })
  local unwatch = require("codecompanion.install").watch(function()
    if api.nvim_win_is_valid(win) then
      scratch.write(bufnr, waiting())
      api.nvim_win_set_height(win, api.nvim_win_text_height(win, {}).all)
    end
  end)
  host.request(verb, payload, function(err, now)
    unwatch()
    local waits = api.nvim_win_is_valid(win)
    scratch.close(win)
    if err then
      say.line(err, severity.ERROR)
    elseif waits then
      done(now)
    end
  end)
end

return M
