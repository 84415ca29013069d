---The review of what tools changed: keys of the quickfix list, where each place is marked as reviewed or taken back.
---
---A revert is the host's, three-way and logged; what was reviewed is known until Neovim ends.

local api = vim.api
local revert = require("codecompanion.files.revert")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")

local M = {}

M.TITLE = "CodeCompanion review · g? keys"

local KEYS = {
  { "ga", "Mark this place as reviewed, or not" },
  { "gA", "Mark all places of this file in the list as reviewed" },
  { "gX", "Revert this place, or bring it back" },
  { "gF", "Revert all places of this file in the list" },
  { "K", "Show the change as a diff" },
  { "<CR>", "Go to the place" },
  { "g?", "Show these keys" },
}
local HINTS = {
  "ga reviewed · gX revert the place · gF revert the file's places · K diff · g? keys",
  "ga reviewed · gX revert · K diff · g? keys",
  "g? keys",
}

---What was reviewed, by chat, change and place. What is reverted the host knows.
---@type table<string, true>
local reviewed = {}

---@param chat CodeCompanion.Chat
---@param change_id string
---@param hunk integer
---@return string
local function key(chat, change_id, hunk)
  return ("%s %s %d"):format(chat.id, change_id, hunk)
end

---What stands before the text of a place.
---@param chat CodeCompanion.Chat
---@param row table A change, as the host lists it
---@param hunk integer
---@return string
function M.mark(chat, row, hunk)
  if row.places[hunk + 1].reverted then
    return "↶ reverted: "
  end
  return reviewed[key(chat, row.change_id, hunk)] and "✓ " or ""
end

---@class CodeCompanion.ReviewPlace
---@field item table The quickfix item
---@field change_id string
---@field hunk integer From 0
---@field path string

---The place under the cursor, nil when the list is another one.
---@return CodeCompanion.ReviewPlace?
local function place()
  local list = vim.fn.getqflist({ items = 0, title = 0 })
  local item = list.title == M.TITLE and list.items[vim.fn.line(".")] or nil
  local data = item and item.user_data
  if type(data) ~= "table" or not data.change_id then
    return nil
  end
  return { item = item, change_id = data.change_id, hunk = data.hunk, path = data.path }
end

---@param chat CodeCompanion.Chat
---@param one CodeCompanion.ReviewPlace
---@param refill fun()
local function revert_place(chat, one, refill)
  session.request(chat, "revert_changes", { changes = { one.change_id }, hunk = one.hunk }, function(result)
    local severity = require("codecompanion.severity")
    say.line(result.text, result.reverted == 0 and severity.WARN or severity.INFO)
    refill()
  end)
end

---@param chat CodeCompanion.Chat
---@param one CodeCompanion.ReviewPlace
local function show_diff(chat, one)
  session.request(chat, "show_change", { change_id = one.change_id, texts = true }, function(result)
    local function side(name, text)
      local lines = vim.split(text, "\n", { plain = true })
      return { name = name, lines = lines }
    end
    local filetype = vim.filetype.match({ filename = one.path }) or ""
    local before, after = side("before", result.before), side("after", result.after)
    local file = { path = one.path, filetype = filetype, line = one.item.lnum }
    require("codecompanion.screen.diff_tab").open(before, after, file)
  end)
end

---@param chat CodeCompanion.Chat
---@param one CodeCompanion.ReviewPlace
---@param whole_file boolean
local function toggle(chat, one, whole_file)
  local now = whole_file or not reviewed[key(chat, one.change_id, one.hunk)] or nil
  for _, item in ipairs(vim.fn.getqflist()) do
    local data = item.user_data
    local is_meant = data.change_id == one.change_id and data.hunk == one.hunk
    is_meant = is_meant or (whole_file and data.path == one.path)
    if is_meant and not data.reverted then
      reviewed[key(chat, data.change_id, data.hunk)] = now
    end
  end
end

---The changes of a file that the list shows and that count.
---@param path string
---@return string[] ids
local function listed(path)
  local ids = {}
  for _, item in ipairs(vim.fn.getqflist()) do
    local data = item.user_data
    if data.path == path and not data.is_whole and not vim.list_contains(ids, data.change_id) then
      ids[#ids + 1] = data.change_id
    end
  end
  return ids
end

local function show_keys()
  local lines = vim.tbl_map(function(one)
    return ("  %-5s %s"):format(one[1], one[2])
  end, KEYS)
  local shown = { title = "Review of file changes", lines = lines, footer = { "q close" } }
  require("codecompanion.screen.float").open(shown)
end

---Set the keys in the quickfix window, which is the current one.
---@param chat CodeCompanion.Chat
---@param refill fun() Fills the list again
function M.set_keys(chat, refill)
  local bufnr = api.nvim_get_current_buf()
  local function on(lhs, action)
    local desc = vim.iter(KEYS):find(function(one)
      return one[1] == lhs
    end)[2]
    vim.keymap.set("n", lhs, function()
      local one = place()
      if not one then -- another list in the same window
        return api.nvim_feedkeys(vim.keycode(lhs), "n", false)
      end
      action(one)
    end, { buffer = bufnr, nowait = true, desc = "CodeCompanion: " .. desc })
  end
  on("ga", function(one)
    toggle(chat, one, false)
    refill()
  end)
  on("gA", function(one)
    toggle(chat, one, true)
    refill()
  end)
  on("gX", function(one)
    revert_place(chat, one, refill)
  end)
  on("gF", function(one)
    local ids = listed(one.path)
    if #ids == 0 then
      return say.hint("All places of this file are reverted; gX brings one back")
    end
    revert.revert(chat, ids, refill)
  end)
  on("K", function(one)
    show_diff(chat, one)
  end)
  on("g?", show_keys)
  say.hint(vim.iter(HINTS):find(function(text)
    return api.nvim_strwidth(text) < vim.v.echospace
  end) or HINTS[#HINTS])
end

return M
