---Lists stored chats for `:CodeCompanionChat Resume`, and their names for completion.
---
---With Neovim's own `vim.ui.select` the chats are shown in a float with its own keys; otherwise the user's picker is
---used.

local api = vim.api
local choose = require("codecompanion.screen.choose")
local host = require("codecompanion.host")
local lines = require("codecompanion.chat.lists.stored_lines")
local notices = require("codecompanion.chat.draw.notices")
local registry = require("codecompanion.chat.state.open_chats")
local say = require("codecompanion.say")
local scratch = require("codecompanion.screen.scratch_buffer")
local severity = require("codecompanion.severity")
local stored = require("codecompanion.chat.lists.stored_chats")

local M = {}

local MAX, NEWEST = 200, 20 -- the newest ones may be drafts that are open here
local FRESH_MS, AGAIN_MS = 60000, 500
local SIDE = 20 -- in cells

---The host's last result, cached because completion must not wait.
---@type CodeCompanion.StoredChat[]
local known = {}

---@param inner string
---@param outer string
---@return boolean
local function is_within(inner, outer)
  return inner == outer or vim.startswith(inner, outer .. "/")
end

---Sort chats: those of this project first, each group newest first.
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

---Remove empty chats that are open here: they have nothing to resume.
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

---Request the stored chats from the host.
---@param callback fun(items: CodeCompanion.StoredChat[])
---@param limit? integer
---@param on_error? fun() Called after a failure, which is also reported
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

local asked

---Refresh the names for completion; a failure is not reported while the user types a command.
---@param after_ms integer Minimum time since the last request
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

---Load the names when the user starts a command line, so that the first <Tab> finds them.
function M.prefetch()
  if host.status() == "ready" then
    refresh(FRESH_MS)
  end
end

---Return names that resume a chat: its title, or its id if the title is ambiguous.
---@param lead string
---@return string[]
function M.names(lead)
  if host.status() == "ready" or require("codecompanion.install").can_start() then
    refresh(AGAIN_MS) -- for the next completion, which must not wait
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

---Find a chat by id or title, and pass it to `callback`, or nil.
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

---Find the chat with this id, however old, or with this title, and pass it to `callback`, or nil.
---@param id string
---@param callback fun(id?: string)
---@param on_error fun() Called if the host cannot answer
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

---Request the chats that have checkpoints but are missing from the database.
---@param callback fun(missing: string) "" if there are none
local function with_missing(callback)
  host.request("list_missing", vim.empty_dict(), function(err, missing)
    local text = err or type(missing) == "table" and missing.text or ""
    if text == "" then -- another request has already restored them
      for _, chat in ipairs(registry.list()) do
        notices.happened(chat, "restored")
      end
    end
    callback(text)
  end)
end

---Restore the chats that are missing from the database.
---@param callback fun(id: string)
local function bring_back(callback)
  host.request(
    "bring_back",
    vim.empty_dict(),
    say.answer(function()
      M.pick(callback)
    end)
  )
end

---@param items CodeCompanion.StoredChat[]
---@param missing string The missing chats, or "" if there are none
---@param callback fun(id: string)
local function show_float(items, missing, callback)
  local rows, at = lines.float(items, missing)
  local function rows_of(item)
    local first, last
    for line in pairs(at) do
      if at[line] == item then
        first, last = math.min(first or line, line), math.max(last or line, line)
      end
    end
    return require("codecompanion.screen.clear_of").lines(api.nvim_get_current_win(), first - 1, last)
  end
  local function then_again(change_it)
    return function(item, close)
      change_it(item, function()
        close(nil)
        M.pick(callback)
      end, function()
        return rows_of(item)
      end)
    end
  end
  local bufnr = choose.list(rows, function(line)
    return at[line]
  end, {
    title = "Resume a chat",
    width = lines.WIDEST,
    keys = {
      { key = "r", label = "rename", action = then_again(rename) },
      { key = "d", label = "delete", action = then_again(stored.delete) },
    },
  }, function(chosen)
    if chosen then
      callback(chosen[1].id)
    end
  end)
  vim.wo.sidescrolloff = SIDE -- a match of `/` beyond the edge is shown whole
  vim.bo[bufnr].filetype = "codecompanion_resume"
  lines.colour(bufnr)
  if missing ~= "" then
    local win = api.nvim_get_current_win()
    scratch.map(bufnr, "b", "Restore missing chats", function()
      scratch.close(win)
      bring_back(callback)
    end)
  end
  for line = 1, #rows do
    if at[line] then
      api.nvim_win_set_cursor(0, { line, 0 })
      break
    end
  end
end

local MANAGE, BRING_BACK = { manage = true }, { bring_back = true }

---@param items CodeCompanion.StoredChat[]
---@param prompt string
---@param extra table[] Items that are not chats
---@param on_choice fun(item: table)
local function select(items, prompt, extra, on_choice)
  local options = {
    prompt = prompt,
    kind = "codecompanion.session",
    format_item = function(item)
      return item.manage and "Rename or delete a chat…" or item.text or lines.one(item)
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
    local options = { prompt = lines.title_of(item), kind = "codecompanion.session_action" }
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
  require("codecompanion.chat.lists.loading_list").list({ what = "stored chats" }, function(done)
    M.list(function(items)
      with_missing(function(missing)
        done({ items = items, missing = missing })
      end)
    end, nil, done)
  end, function(found)
    local items, missing = sorted(worth_resuming(found.items)), found.missing
    if #items == 0 and missing == "" then
      return say.line("No stored chats yet", severity.WARN)
    end
    if choose.is_builtin_select() then
      return choose.in_normal_mode(function()
        show_float(items, missing, callback)
      end)
    end
    local extra = { MANAGE }
    if missing ~= "" then
      table.insert(extra, 1, vim.tbl_extend("error", BRING_BACK, { text = "Restore from checkpoints: " .. missing }))
    end
    select(items, "Resume a chat", extra, function(item)
      if item.bring_back then
        bring_back(callback)
      elseif item.manage then
        manage(items, callback)
      else
        callback(item.id)
      end
    end)
  end)
end

---Pass the newest stored chat to `callback`.
---@param callback fun(id: string)
function M.newest(callback)
  M.list(function(items)
    items = worth_resuming(items)
    if #items == 0 then
      return with_missing(function(missing)
        if missing ~= "" then
          return M.pick(callback)
        end
        say.line("No stored chats yet", severity.WARN)
      end)
    end
    callback(items[1].id)
  end, NEWEST)
end

return M
