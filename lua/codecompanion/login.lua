---`:CodeCompanion login`: shows the code that the user types into a page of the provider's, until the host has a login.

local api = vim.api
local float = require("codecompanion.screen.float")
local host = require("codecompanion.host")
local numbers = require("codecompanion.screen.numbers")
local say = require("codecompanion.say")
local scratch = require("codecompanion.screen.scratch")
local severity = require("codecompanion.severity")

local M = {}

local DEFAULT = "copilot"

---@class CodeCompanion.LoginShown
---@field win integer
---@field is_over boolean

---@type CodeCompanion.LoginShown?
local shown

---Close the window without stopping the login.
local function close()
  if shown then
    shown.is_over = true
    scratch.close(shown.win)
    shown = nil
  end
end

---@param event { adapter: string, code: string, url: string, expires_s: integer }
---@return string[]
local function lines_of(event)
  local minutes = math.max(1, math.floor(event.expires_s / 60))
  return {
    "Open this page, sign in, and enter the code:",
    "",
    "    " .. event.url,
    "",
    "    " .. event.code,
    "",
    ("Waiting for you to enter it; it is good for %s."):format(numbers.counted(minutes, "minute")),
  }
end

---@param event { adapter: string, code: string, url: string, expires_s: integer }
local function show(event)
  close()
  local bufnr, win = float.open({
    title = ("Log in to %s"):format(event.adapter),
    lines = lines_of(event),
    wrap = true,
    footer = { "y copy the code", "o open the page", "q stop" },
  })
  local this = { win = win, is_over = false }
  shown = this
  scratch.map(bufnr, "y", "Copy the code", function()
    vim.fn.setreg('"', event.code)
    pcall(vim.fn.setreg, "+", event.code)
    say.hint("Copied " .. event.code)
  end)
  scratch.map(bufnr, "o", "Open the page in a browser", function()
    local _, problem = vim.ui.open(event.url)
    if problem then
      say.line({ "The page could not be opened here; it is " .. event.url, event.url }, severity.WARN)
    end
  end)
  scratch.map(bufnr, { "q", "<Esc>", "<C-c>" }, "Stop the login", function()
    scratch.close(win)
  end)
  api.nvim_create_autocmd("BufWipeout", {
    buffer = bufnr,
    once = true,
    callback = function()
      if not this.is_over then
        this.is_over = true
        shown = shown ~= this and shown or nil
        host.notify("login", { adapter = event.adapter, action = "stop" })
      end
    end,
  })
end

---@param adapter string
---@param result { user: string, models: integer, problem: string }
local function tell(adapter, result)
  local who = result.user ~= "" and (" as " .. result.user) or ""
  if result.problem ~= "" then
    local text = "Logged in to %s%s, but it cannot be used. %s"
    return say.line(text:format(adapter, who, result.problem), severity.WARN)
  end
  local head = ("Logged in to %s%s"):format(adapter, who)
  say.line({ ("%s: %s; ga in a chat chooses one"):format(head, numbers.counted(result.models, "model")), head })
end

---Log in, and say how it went.
---@param adapter? string
---@param done? fun(ok: boolean)
function M.start(adapter, done)
  adapter = adapter or DEFAULT
  local unsubscribe = host.subscribe(function(event)
    if event.type == "login_code" and event.adapter == adapter then
      show(event)
    elseif event.type == "host_exit" then
      close()
    end
  end)
  host.request("login", { adapter = adapter }, function(err, result)
    unsubscribe()
    close()
    if err then
      say.line(err, severity.WARN)
    else
      tell(adapter, result)
    end
    if done then
      done(not err and result.problem == "")
    end
  end)
end

---@param adapter? string
function M.forget(adapter)
  adapter = adapter or DEFAULT
  host.request("login", { adapter = adapter, action = "forget" }, function(err, result)
    if err then
      return say.line(err, severity.ERROR)
    end
    local gone = "The login for %s is forgotten; those of other plugins stay"
    say.line((result.forgotten and gone or "There was no login of this plugin's for %s"):format(adapter))
  end)
end

return M
