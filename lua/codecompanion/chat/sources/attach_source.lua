---Implements slash commands that attach sources other than files: a page, an outline, a diff, a terminal, a help entry,
---the time.

local attaching = require("codecompanion.chat.sources.attach_to_chat")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")
local terminals = require("codecompanion.editor_context.terminals")

local M = {}

local MAX_TERMINAL_LINES = 5000
local TERMINAL_LINES = 200

---@param chat CodeCompanion.Chat
---@param kind string
---@param path string Label in the context block
---@param text string
---@param refuse fun(reason: string)
local function attach(chat, kind, path, text, refuse)
  attaching.attach(chat, { kind = kind, path = path, text = text }, refuse)
end

---`/fetch [--again] <address>`: attach a page that the host fetches; a message sent meanwhile waits for it.
---@param chat CodeCompanion.Chat
---@param argument string
---@param refuse fun(reason: string)
function M.page(chat, argument, refuse)
  local again, url = argument:match("^(%-%-again)%s+(.*)$")
  url = vim.trim(url or argument)
  if url == "" or url:find("%s") then
    return refuse("/fetch takes one address, such as https://example.org/page.")
  end
  if not url:find("^%a[%w+.-]*://") then
    url = "https://" .. url
  end
  chat.fetching = (chat.fetching or 0) + 1
  local stop = require("codecompanion.chat.state.configured_keys").keys("stop", "n")[1]
  say.hint(("Fetching %s%s"):format(url, stop and (" · %s stops it"):format(stop) or ""))
  session.request(chat, "fetch_page", { url = url, again = again ~= nil }, function(sentence)
    chat.fetching = chat.fetching - 1
    say.hint(sentence)
  end, function(reason)
    chat.fetching = chat.fetching - 1
    say.nothing()
    refuse(reason)
  end)
end

---Stop the running fetch of a chat.
---@param chat CodeCompanion.Chat
---@return boolean stopped Whether a fetch was running
function M.stop(chat)
  if (chat.fetching or 0) == 0 then
    return false
  end
  session.notify(chat, "cancel_fetch")
  return true
end

---Return the file the user is working in.
---@return string? path
local function work_file()
  local current = require("codecompanion.editor_context.snapshot").snapshot().current
  return current ~= "" and current or nil
end

---`/symbols [path]`: attach the outline of a file, by default the one the user is working in.
---@param chat CodeCompanion.Chat
---@param argument string
---@param refuse fun(reason: string)
function M.symbols(chat, argument, refuse)
  local path = argument ~= "" and require("codecompanion.system.literal_paths").absolute(argument) or work_file()
  if not path then
    return refuse("No file is open; name one, as in /symbols src/main.py.")
  end
  attach(chat, "symbols", path, "", refuse)
end

---`/diff [staged|unstaged|branch|<commit>]`: attach a diff.
---@param chat CodeCompanion.Chat
---@param argument string
---@param refuse fun(reason: string)
function M.diff(chat, argument, refuse)
  attach(chat, "diff", argument, "", refuse)
end

---`/terminal [lines] [program]`: attach the end of a terminal's output, by default that of the most recently used
---terminal.
---@param chat CodeCompanion.Chat
---@param argument string
---@param refuse fun(reason: string)
function M.terminal(chat, argument, refuse)
  local count, name = argument:match("^(%d*)%s*(.*)$")
  count = tonumber(count) or TERMINAL_LINES
  if count > MAX_TERMINAL_LINES then
    return refuse(("/terminal attaches up to %d lines."):format(MAX_TERMINAL_LINES))
  end
  local found = vim.tbl_filter(function(bufnr)
    return name == "" or terminals.program(bufnr):find(name, 1, true) ~= nil
  end, terminals.list())
  if #found == 0 then
    return refuse(name == "" and "No terminal is open." or ("No terminal runs %s."):format(name))
  end
  local lines = count > 0 and terminals.last_lines(found[1], count) or {}
  if #lines == 0 then
    return refuse("The terminal has no output.")
  end
  local buffers = require("codecompanion.files.loaded_files")
  local label = ("%s (%d lines)"):format(terminals.program(found[1]), #lines)
  attach(chat, "terminal", label, table.concat(vim.tbl_map(buffers.shown, lines), "\n") .. "\n", refuse)
end

---@param lead string
---@return string[]
function M.complete_terminals(lead)
  return vim.tbl_filter(function(name)
    return name:find(lead, 1, true) ~= nil
  end, vim.tbl_map(terminals.program, terminals.list()))
end

---`/now`: attach the date, time and time zone.
---@param chat CodeCompanion.Chat
---@param _ string
---@param refuse fun(reason: string)
function M.now(chat, _, refuse)
  local shown = os.date("%Y-%m-%d %H:%M %z") --[[@as string]]
  attach(chat, "now", shown, tostring(os.date("%A, %d %B %Y, %H:%M:%S (UTC%z)")), refuse)
end

---`/help <tag>`: attach an entry of Neovim's help.
---@param chat CodeCompanion.Chat
---@param tag string
---@param refuse fun(reason: string)
function M.help(chat, tag, refuse)
  local text, why = require("codecompanion.chat.sources.help_tags").text(tag)
  if not text then
    return refuse(why or "")
  end
  attach(chat, "help", ":help " .. tag, text, refuse)
end

return M
