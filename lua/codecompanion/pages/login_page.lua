---`:CodeCompanion login`: shows the sign-in page until the host has a login. The page either asks for a code or
---redirects to the host on this machine.

local api = vim.api
local choose = require("codecompanion.screen.choose")
local float = require("codecompanion.screen.float")
local host = require("codecompanion.host")
local numbers = require("codecompanion.text.numbers")
local say = require("codecompanion.say")
local scratch = require("codecompanion.screen.scratch_buffer")
local severity = require("codecompanion.severity")

local M = {}

local NEW = "new" -- an account that was not used here before
local ANOTHER = "Another account"

---@class CodeCompanion.LoginPage Progress reported by `login_code`
---@field adapter string
---@field code string "" if there is none
---@field url string
---@field expires_s integer
---@field redirects boolean
---@field account string
---@field accounts string[]

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

---Return whether the browser cannot be redirected to this machine, because the session is remote.
---@return boolean
local function is_remote()
  return (vim.env.SSH_CONNECTION or "") ~= "" or (vim.env.SSH_TTY or "") ~= ""
end

---@param page CodeCompanion.LoginPage
---@return string[]
local function lines_of(page)
  local minutes = numbers.counted(math.max(1, math.floor(page.expires_s / 60)), "minute")
  if not page.redirects then
    return {
      "Open this page, sign in, and enter the code:",
      "",
      "    " .. page.url,
      "",
      "    " .. page.code,
      "",
      ("Waiting for the code; it is valid for %s."):format(minutes),
    }
  end
  local lines = { "Sign in on this page, and allow the use of your plan." }
  if page.account ~= "" then
    table.insert(lines, 1, ("Continue as %s; a continues with another account."):format(page.account))
  end
  if is_remote() then
    lines[#lines + 1] = "Your browser is on another machine, so it will end on a page that does not load. Copy the"
      .. " address of that page and press p."
  end
  lines[#lines + 1] = ("Waiting for your browser, for up to %s."):format(minutes)
  return vim.list_extend(lines, { "", page.url }) -- the long address comes after the instructions
end

---@param page CodeCompanion.LoginPage
local function open_page(page)
  local ok, _, problem = pcall(vim.ui.open, page.url)
  if not ok or problem then
    local shorter = page.redirects and "Could not open the page; y copies its address" or page.url
    say.line({ "Could not open the page; its address is " .. page.url, shorter }, severity.WARN)
  end
end

---Ask for the URL that the browser was redirected to. Its code is useless to others, but is still kept out of the
---history.
---@param page CodeCompanion.LoginPage
local function ask_for_address(page)
  choose.input({ prompt = "Address the browser ended on: " }, function(address)
    if vim.fn.histget("@", -1) == address then
      vim.fn.histdel("@", -1)
    end
    if (address or "") == "" then
      return
    end
    host.request("login", { adapter = page.adapter, action = "answer", address = address }, function(err)
      if err then
        say.line(err, severity.WARN)
      end
    end)
  end)
end

---@param page CodeCompanion.LoginPage
---@param start fun(account: string)
local function ask_for_account(page, start)
  if #page.accounts == 0 then
    return start(NEW)
  end
  local names = vim.list_extend(vim.list_slice(page.accounts), { ANOTHER })
  choose.select(names, { prompt = "Continue as" }, function(name)
    if name then
      start(name == ANOTHER and NEW or name)
    end
  end)
end

---@param page CodeCompanion.LoginPage
---@return string[] Hints below the window
local function hints_of(page)
  if not page.redirects then
    return { "y copy the code", "o open the page", "q stop" }
  end
  local hints = { "y copy", "o open", "p paste address" }
  if page.account ~= "" or #page.accounts > 0 then
    hints[#hints + 1] = "a another account"
  end
  return vim.list_extend(hints, { "q stop" })
end

---@param bufnr integer
---@param page CodeCompanion.LoginPage
---@param restart fun(account: string)
local function set_keys(bufnr, page, restart)
  scratch.map(bufnr, "y", page.redirects and "Copy the address" or "Copy the code", function()
    local text = page.redirects and page.url or page.code
    vim.fn.setreg('"', text)
    pcall(vim.fn.setreg, "+", text)
    say.hint(page.redirects and "Copied the address" or "Copied " .. page.code)
  end)
  scratch.map(bufnr, "o", "Open the page in a browser", function()
    open_page(page)
  end)
  if page.redirects then
    scratch.map(bufnr, "p", "Paste the address the browser ended on", function()
      ask_for_address(page)
    end)
    scratch.map(bufnr, "a", "Continue with another account", function()
      ask_for_account(page, restart)
    end)
  end
end

---@param page CodeCompanion.LoginPage
---@param restart fun(account: string)
local function show(page, restart)
  close()
  local bufnr, win = float.open({
    title = page.redirects and "Continue with ChatGPT" or ("Log in to %s"):format(page.adapter),
    lines = lines_of(page),
    wrap = true,
    footer = hints_of(page),
  })
  local this = { win = win, is_over = false }
  shown = this
  set_keys(bufnr, page, restart)
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
        host.notify("login", { adapter = page.adapter, action = "stop" })
      end
    end,
  })
  if page.redirects and not is_remote() then
    open_page(page)
  end
end

---Show the notice of a first login, then continue.
---@param notice { title: string, text: string }
---@param done fun()
local function show_notice(notice, done)
  if notice.title == "" then
    return done()
  end
  local lines = { notice.text }
  local bufnr, win = float.open({ title = notice.title, lines = lines, wrap = true, footer = { "<CR> got it" } })
  scratch.map(bufnr, { "<CR>", "q", "<Esc>", "<C-c>" }, "Got it", function()
    scratch.close(win)
  end)
  api.nvim_create_autocmd("BufWipeout", { buffer = bufnr, once = true, callback = vim.schedule_wrap(done) })
end

---@param adapter string
---@param result { user: string, models: integer, problem: string }
local function tell(adapter, result)
  local who = result.user ~= "" and (" as " .. result.user) or ""
  if result.problem ~= "" then
    local text = "Logged in to %s%s, but it cannot be used. %s"
    local whole = text:format(adapter, who, result.problem)
    return say.line({ whole, result.problem, whole }, severity.WARN)
  end
  local head = ("Logged in to %s%s"):format(adapter, who)
  say.line({ ("%s: %s; ga in a chat chooses one"):format(head, numbers.counted(result.models, "model")), head })
end

---@param adapter string
---@param account string "" for the last used account
---@param done fun(ok: boolean)
local function start(adapter, account, done)
  local is_replaced = false
  local unsubscribe = host.subscribe(function(event)
    if event.type == "login_code" and event.adapter == adapter then
      show(event, function(other)
        is_replaced = true
        start(adapter, other, done)
      end)
    elseif event.type == "host_exit" then
      close()
    end
  end)
  host.request("login", { adapter = adapter, account = account }, function(err, result)
    unsubscribe()
    if is_replaced then
      return
    end
    close()
    if err then
      say.line(err, severity.WARN)
      return done(false)
    end
    tell(adapter, result)
    show_notice(result.notice, function()
      done(result.problem == "")
    end)
  end)
end

---@param adapter? string
---@param what string
---@param with fun(adapter: string)
local function with_adapter(adapter, what, with)
  if adapter then
    return with(adapter)
  end
  local kinds = vim.tbl_keys(require("codecompanion.adapters.logins"))
  table.sort(kinds)
  choose.select(kinds, { prompt = what }, function(chosen)
    if chosen then
      with(chosen)
    end
  end)
end

---Log in, and report the result.
---@param adapter? string
---@param done? fun(ok: boolean)
function M.start(adapter, done)
  with_adapter(adapter, "Log in to", function(chosen)
    start(chosen, "", done or function() end)
  end)
end

---@param adapter? string
function M.forget(adapter)
  with_adapter(adapter, "Log out of", function(chosen)
    host.request("login", { adapter = chosen, action = "forget" }, function(err, result)
      if err then
        return say.line(err, severity.ERROR)
      end
      local text = result.forgotten and "Logged out of %s" or "This plugin has no login for %s"
      local note = result.forgotten and result.note ~= "" and "; " .. result.note or ""
      say.line(text:format(chosen) .. note)
    end)
  end)
end

return M
