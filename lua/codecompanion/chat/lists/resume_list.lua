---Stored chats: the list of `:CodeCompanionChat Resume`, and their names for completion.
---
---With Neovim's own `vim.ui.select` the chats are shown in a float with keys of its own; with a picker of the user's
---they go through that.

local api = vim.api
local choose = require("codecompanion.screen.choose")
local fit = require("codecompanion.screen.fit")
local host = require("codecompanion.host")
local numbers = require("codecompanion.screen.numbers")
local registry = require("codecompanion.chat.state.registry")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")
local stored = require("codecompanion.chat.lists.stored")
local scratch = require("codecompanion.screen.scratch")

local M = {}

local MAX, NEWEST = 200, 20 -- the newest ones may be drafts that are open here
local FRESH_MS, AGAIN_MS = 60000, 500
local MINUTE, HOUR, DAY = 60, 3600, 86400

---@class CodeCompanion.StoredChat
---@field id string
---@field title string
---@field updated number Seconds since the epoch
---@field messages integer
---@field cwd string
---@field owned boolean Open in another Neovim
---@field first_question? string
---@field last_question? string
---@field here? boolean Of this project
---@field current? boolean The one the list is asked for in

---What the host answered last; completion must not wait.
---@type CodeCompanion.StoredChat[]
local known = {}

---@param count integer
---@param unit string
---@return string
local function ago(count, unit)
  return ("%d %s ago"):format(count, unit)
end

---How long ago something was, in two or three words.
---@param seconds number Since the epoch
---@param now? number
---@return string
function M.age(seconds, now)
  local age = math.max(0, (now or os.time()) - seconds)
  if age < MINUTE then
    return "just now"
  elseif age < HOUR then
    return ago(math.floor(age / MINUTE), "min")
  elseif age < DAY then
    return ago(math.floor(age / HOUR), "h")
  elseif age < 60 * DAY then
    local days = math.floor(age / DAY)
    return ago(days, days == 1 and "day" or "days")
  end
  return tostring(os.date("%Y-%m-%d", math.floor(seconds)))
end

---@param inner string
---@param outer string
---@return boolean
local function is_within(inner, outer)
  return inner == outer or vim.startswith(inner, outer .. "/")
end

---Chats of this project first, the newest first in both parts.
---@param items CodeCompanion.StoredChat[]
---@return CodeCompanion.StoredChat[]
local function sorted(items)
  local cwd = vim.fs.normalize(vim.fn.getcwd())
  local root = vim.fs.root(cwd, ".git") or cwd
  local here, others = {}, {}
  local current = registry.by_buffer()
  for _, item in ipairs(items) do
    item.current = current ~= nil and current.id == item.id
    local folder = vim.fs.normalize(item.cwd)
    item.here = is_within(folder, root)
    table.insert(item.here and here or others, item)
  end
  return vim.list_extend(here, others)
end

---Without the empty chats that are open here: there is nothing to come back to in them.
---@param items CodeCompanion.StoredChat[]
---@return CodeCompanion.StoredChat[]
local function worth_resuming(items)
  local open = {}
  for _, chat in ipairs(registry.list()) do
    open[chat.id] = true
  end
  return vim.tbl_filter(function(item)
    return item.messages > 0 or not open[item.id]
  end, items)
end

---Ask the host for the stored chats.
---@param callback fun(items: CodeCompanion.StoredChat[])
---@param limit? integer
---@param on_error? fun() Called when they cannot be had, beside saying why
function M.list(callback, limit, on_error)
  host.request("list_sessions", { cwd = "", limit = limit or MAX }, function(err, items)
    if err then
      if on_error then
        on_error()
      end
      return say.line(err, severity.ERROR)
    end
    if not limit then
      known = items
    end
    callback(items)
  end)
end

---@param item CodeCompanion.StoredChat
---@return string
local function title_of(item)
  return item.title ~= "" and (item.title:gsub("%s+", " ")) or "(untitled)"
end

---@param count integer
---@return string
local function messages(count)
  return numbers.counted(count, "message")
end

---What was asked, unless the title says it.
---@param item CodeCompanion.StoredChat
---@return string
local function preview(item)
  local found, title = {}, title_of(item):lower()
  for _, text in ipairs({ item.first_question or "", item.last_question or "" }) do
    text = vim.trim((text:gsub("%s+", " ")))
    local said = text == "" or text == found[1] or vim.startswith(title, text:lower())
    if not said and not vim.startswith(text:lower(), (title:gsub("…$", ""))) then
      found[#found + 1] = text
    end
  end
  return table.concat(found, " … ")
end

---The facts of a chat besides its title.
---@param item CodeCompanion.StoredChat
---@return string
local function facts(item)
  local parts = { item.messages > 0 and messages(item.messages) or "draft" }
  if item.current then
    parts[#parts + 1] = "this chat"
  end
  if not item.here then
    parts[#parts + 1] = vim.fn.fnamemodify(item.cwd, ":~")
  end
  if item.owned then
    parts[#parts + 1] = "open elsewhere"
  end
  return table.concat(parts, " · ")
end

---One line for pickers: the age, the title, the rest.
---@param item CodeCompanion.StoredChat
---@return string
function M.line(item)
  local shown = preview(item)
  local line = ("%-11s  %s · %s"):format(M.age(item.updated), title_of(item), facts(item))
  return shown == "" and line or (line .. " · " .. shown)
end

local asked

---Ask for the names of completion; that they cannot be had is no news while a command is typed.
---@param after_ms integer Not when they were asked for so lately
local function refresh(after_ms)
  local now = vim.uv.now()
  if asked and now - asked < after_ms then
    return
  end
  asked = now
  host.request("list_sessions", { cwd = "", limit = MAX }, function(err, items)
    if not err then
      known = items
    end
  end)
end

---Have the names at hand when a command line is begun: the first <Tab> finds them there.
function M.prefetch()
  if host.status() == "ready" then
    refresh(FRESH_MS)
  end
end

---Names that bring a chat back: its title, or its id where two have the same one.
---@param lead string
---@return string[]
function M.names(lead)
  if host.status() == "ready" or require("codecompanion.install").can_start() then
    refresh(AGAIN_MS) -- for the next time: completion must not wait
  end
  local count, found = {}, {}
  for _, item in ipairs(known) do
    count[item.title] = (count[item.title] or 0) + 1
  end
  local wanted = lead:gsub("\\ ", " "):lower()
  for _, item in ipairs(sorted(worth_resuming(known))) do
    local name = item.title ~= "" and count[item.title] == 1 and item.title:gsub("%s+", " ") or item.id
    if vim.startswith(name:lower(), wanted) then
      found[#found + 1] = name
    end
  end
  return found
end

---The chat that an id or a title names; nil when there is none.
---@param name string
---@param callback fun(id?: string)
function M.find(name, callback)
  M.list(function(items)
    local begins
    for _, item in ipairs(items) do
      local title = item.title:gsub("%s+", " "):lower()
      if item.id == name or title == name:lower() then
        return callback(item.id)
      end
      begins = begins or (vim.startswith(title, name:lower()) and item.id) or nil
    end
    callback(begins)
  end)
end

---The chat that has an id, however old it is, or that is called so; nil when there is none.
---@param id string
---@param callback fun(id?: string)
---@param on_error fun() Called when the host cannot say
function M.find_id(id, callback, on_error)
  host.request("list_sessions", { chat = id, limit = 1 }, function(err, items)
    if err then
      return on_error()
    elseif items[1] and items[1].id == id then
      return callback(id)
    end
    M.find(id, callback)
  end)
end

---@param item CodeCompanion.StoredChat
---@param done fun()
local function rename(item, done)
  stored.rename(item.id, nil, { present = item.title, done = done })
end

local RULE = "other projects"
local AGE, WIDEST, MIN_TITLE = 13, 110, 20

---The lines of the float, and the chat of each line.
---@param items CodeCompanion.StoredChat[]
---@return string[] lines
---@return table<integer, CodeCompanion.StoredChat> at
local function float_lines(items)
  local lines, at = {}, {}
  local room = math.min(WIDEST, vim.o.columns - 2) - AGE
  local function add(line, item)
    lines[#lines + 1] = line
    at[#lines] = item
  end
  for index, item in ipairs(items) do
    if not item.here and (index == 1 or items[index - 1].here) then
      add(("── %s ──"):format(RULE), nil)
    end
    local known_of = " · " .. facts(item)
    local left = room - api.nvim_strwidth(known_of)
    if left >= MIN_TITLE then
      add(("%-11s  %s%s"):format(M.age(item.updated), fit.cut(title_of(item), left), known_of), item)
    else
      add(("%-11s  %s"):format(M.age(item.updated), fit.cut(title_of(item), room)), item)
      add((" "):rep(AGE) .. fit.cut(facts(item), room), item)
    end
    local shown = preview(item)
    if shown ~= "" then
      add((" "):rep(AGE) .. fit.cut(shown, room), item)
    end
  end
  return lines, at
end

---@param bufnr integer
local function colour(bufnr)
  scratch.colour(bufnr, "codecompanion.chat.stored", function(line)
    if line:find("^── ") or line:find("^ ") then
      return "CodeCompanionHint"
    end
    return "CodeCompanionTokens", 0, #(line:match("^.-  ") or "")
  end)
end

---@param items CodeCompanion.StoredChat[]
---@param callback fun(id: string)
local function show_float(items, callback)
  local lines, at = float_lines(items)
  local function then_again(change_it)
    return function(item, close)
      change_it(item, function()
        close(nil)
        M.pick(callback)
      end)
    end
  end
  local bufnr = choose.list(lines, function(line)
    return at[line]
  end, {
    title = "Resume a chat",
    width = WIDEST,
    keys = {
      { key = "r", label = "rename", action = then_again(rename) },
      { key = "d", label = "delete", action = then_again(stored.delete) },
    },
  }, function(chosen)
    if chosen then
      callback(chosen[1].id)
    end
  end)
  vim.bo[bufnr].filetype = "codecompanion_resume"
  colour(bufnr)
  if not at[1] then
    api.nvim_win_set_cursor(0, { math.min(2, #lines), 0 })
  end
end

local MANAGE = { manage = true }

---@param items CodeCompanion.StoredChat[]
---@param prompt string
---@param extra table[] Items that are no chats
---@param on_choice fun(item: table)
local function select(items, prompt, extra, on_choice)
  local options = {
    prompt = prompt,
    kind = "codecompanion.session",
    format_item = function(item)
      return item.manage and "Rename or delete a chat…" or M.line(item)
    end,
  }
  local all = vim.list_extend(vim.list_slice(items), extra)
  choose.select(all, options, function(item)
    if item then
      on_choice(item)
    end
  end)
end

---@param items CodeCompanion.StoredChat[]
---@param callback fun(id: string)
local function manage(items, callback)
  select(items, "Rename or delete which chat?", {}, function(item)
    local options = { prompt = title_of(item), kind = "codecompanion.session_action" }
    choose.select({ "Rename", "Delete" }, options, function(action)
      local change_it = action == "Rename" and rename or action == "Delete" and stored.delete
      if change_it then
        change_it(item, function()
          M.pick(callback)
        end)
      end
    end)
  end)
end

---Let the user choose a stored chat.
---@param callback fun(id: string)
function M.pick(callback)
  require("codecompanion.chat.lists.loading").list({ what = "stored chats" }, function(done)
    M.list(done, nil, done)
  end, function(items)
    items = sorted(worth_resuming(items))
    if #items == 0 then
      return say.line("No stored chats yet", severity.WARN)
    end
    if choose.is_builtin_select() then
      return choose.in_normal_mode(function()
        show_float(items, callback)
      end)
    end
    select(items, "Resume a chat", { MANAGE }, function(item)
      if item.manage then
        manage(items, callback)
      else
        callback(item.id)
      end
    end)
  end)
end

---The newest stored chat.
---@param callback fun(id: string)
function M.newest(callback)
  M.list(function(items)
    items = worth_resuming(items)
    if #items == 0 then
      return say.line("No stored chats yet", severity.WARN)
    end
    callback(items[1].id)
  end, NEWEST)
end

return M
