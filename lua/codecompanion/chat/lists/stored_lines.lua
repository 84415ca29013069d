---Formats a stored chat: in one line for pickers, in up to three for the float of `:CodeCompanionChat Resume`.

local api = vim.api
local fit = require("codecompanion.text.fit")
local numbers = require("codecompanion.text.numbers")
local scratch = require("codecompanion.screen.scratch_buffer")

local M = {}

local MINUTE, HOUR, DAY = 60, 3600, 86400

---@class CodeCompanion.StoredChat
---@field id string
---@field title string
---@field updated number Seconds since the epoch
---@field messages integer
---@field cwd string
---@field owned boolean Open in another Neovim
---@field draft? boolean It has unsent text
---@field when? string Replaces the age if another chat has the same title and age
---@field first_question? string
---@field last_question? string
---@field here? boolean It belongs to this project
---@field current? boolean The chat in which the list was opened

---@param count integer
---@param unit string
---@return string
local function ago(count, unit)
  return ("%d %s ago"):format(count, unit)
end

---Return the time since `seconds`, in two or three words.
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

---@param item CodeCompanion.StoredChat
---@return string
local function age_of(item)
  return item.when or M.age(item.updated)
end

---Add a time to chats with the same title and age, which distinguishes them.
---@param items CodeCompanion.StoredChat[]
function M.tell_apart(items)
  local alike = {}
  for _, item in ipairs(items) do
    local key = item.title .. "\n" .. M.age(item.updated)
    alike[key] = alike[key] or {}
    table.insert(alike[key], item)
  end
  local today = os.date("%Y-%m-%d")
  for _, same in pairs(alike) do
    for _, item in ipairs(same) do
      local at = math.floor(item.updated)
      local format = os.date("%Y-%m-%d", at) == today and "%H:%M:%S" or "%m-%d %H:%M"
      item.when = #same > 1 and tostring(os.date(format, at)) or nil
    end
  end
end

---@param item CodeCompanion.StoredChat
---@return string
function M.title_of(item)
  return require("codecompanion.chat.state.chat_title").shown(item.title)
end

---@param count integer
---@return string
local function messages(count)
  return numbers.counted(count, "message")
end

---Return the last question, unless the title contains it.
---@param item CodeCompanion.StoredChat
---@return string
local function preview(item)
  local found, title = {}, M.title_of(item):lower()
  for _, text in ipairs({ item.first_question or "", item.last_question or "" }) do
    text = vim.trim((text:gsub("%s+", " ")))
    local said = text == "" or text == found[1] or vim.startswith(title, text:lower())
    if not said and not vim.startswith(text:lower(), (title:gsub("…$", ""))) then
      found[#found + 1] = text
    end
  end
  return table.concat(found, " … ")
end

---Return the details of a chat other than its title.
---@param item CodeCompanion.StoredChat
---@return string
local function facts(item)
  local parts = { item.messages > 0 and messages(item.messages) or "draft" }
  if item.draft and item.messages > 0 then
    parts[#parts + 1] = "unsent draft"
  end
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

---Return one line for pickers: the age, the title, the other details.
---@param item CodeCompanion.StoredChat
---@return string
function M.one(item)
  local shown = preview(item)
  local line = ("%-11s  %s · %s"):format(age_of(item), M.title_of(item), facts(item))
  return shown == "" and line or (line .. " · " .. shown)
end

local RULE = "other projects"
local AGE, MIN_TITLE = 13, 20
M.WIDEST = 110

---Return the lines of the float, and the chat of each line.
---@param items CodeCompanion.StoredChat[]
---@param missing? string Chats missing from the database, or "" if there are none
---@return string[] lines
---@return table<integer, CodeCompanion.StoredChat> at
function M.float(items, missing)
  local lines, at = {}, {}
  local room = math.min(M.WIDEST, vim.o.columns - 2) - AGE
  local function add(line, item)
    lines[#lines + 1] = line
    at[#lines] = item
  end
  if missing and missing ~= "" then
    add(fit.cut("── " .. missing, room + AGE), nil)
    add("── b restores them from checkpoints", nil)
  end
  for index, item in ipairs(items) do
    if not item.here and (index == 1 or items[index - 1].here) then
      add(("── %s ──"):format(RULE), nil)
    end
    local known_of = " · " .. facts(item)
    local left = room - api.nvim_strwidth(known_of)
    if left >= MIN_TITLE then
      add(("%-11s  %s%s"):format(age_of(item), fit.cut(M.title_of(item), left), known_of), item)
    else
      add(("%-11s  %s"):format(age_of(item), fit.cut(M.title_of(item), room)), item)
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
function M.colour(bufnr)
  scratch.colour(bufnr, "codecompanion.chat.stored", function(line)
    if line:find("^── ") or line:find("^ ") then
      return "CodeCompanionHint"
    end
    return "CodeCompanionTokens", 0, #(line:match("^.-  ") or "")
  end)
end

return M
