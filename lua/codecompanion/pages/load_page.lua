---Requests the content of a page from the host; while the host starts, a float with the page's title says so.

local api = vim.api
local float = require("codecompanion.screen.float")
local host = require("codecompanion.host")
local say = require("codecompanion.say")
local scratch = require("codecompanion.screen.scratch_buffer")
local severity = require("codecompanion.severity")

local M = {}

---@param title string
---@param verb string
---@param payload table
---@param done fun(now: any) Not called if the user has closed the float meanwhile
function M.ask(title, verb, payload, done)
  if host.status() == "ready" then
    return host.ask(verb, payload, done)
  end
  local _, win = float.open({ title = title, lines = { "Loading: the host is starting…" }, footer = "q close" })
  host.request(verb, payload, function(err, now)
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
