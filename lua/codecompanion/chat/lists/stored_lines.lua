---Formats a stored chat: in one line for pickers, in up to three for the float of `:CodeCompanionChat Resume`.

local api = vim.api
local fit = require("codecompanion.text.fit")
local numbers = require("codecompanion.text.numbers")
local scratch = require("codecompanion.screen.scratch_buffer")

local M = {}

local MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"

---@class CodeCompanion.StoredChat
---@field id string
---@field title string
---@field updated number Seconds since the epoch
---@field messages integer
---@field cwd string
---@field owned boolean Open in another Neovim
---@field draft? boolean It has unsent text
---@field last_question? string
---@field typed? integer Number of messages from the user; -1: unknown
---@field questions? string[] Beginnings of the user's last messages, oldest first; empty: unknown
---@field last_reply? string Set if another chat has the same title and last question
---@field here? boolean It belongs to this project
---@field current? boolean The chat in which the list was opened

---Return a time in the list's format: `14:05` today, `yesterday 14:05`, `3 Nov 14:05`, `3 Nov 2025`.
---@param seconds number Since the epoch
---@param now? number
---@return string
function M.time(seconds, now)
  local at, today = math.floor(seconds), os.date("*t", math.floor(now or os.time()))
  local date, clock = os.date("*t", at), tostring(os.date("%H:%M", at))
  local midnight = os.time({ year = today.year, month = today.month, day = today.day, hour = 0 })
  local last_midnight = os.time({ year = today.year, month = today.month, day = today.day - 1, hour = 0 })
  if at >= midnight then
    return clock
  elseif at >= last_midnight then
    return "yesterday " .. clock
  end
  local after = date.year == today.year and clock or tostring(date.year)
  return ("%d %s %s"):format(date.day, MONTHS:sub(3 * date.month - 2, 3 * date.month), after)
end

---@param item CodeCompanion.StoredChat
---@return string
function M.title_of(item)
  return require("codecompanion.chat.state.chat_title").shown(item.title)
end

---Return the number of turns, each of which begins with a message from the user, or nil if it is unknown.
---@param item CodeCompanion.StoredChat
---@return string?
function M.count(item)
  local typed = item.typed or -1
  return typed >= 0 and numbers.counted(typed, "turn") or nil
end

---Return the user's last messages, newest first, except those that the title repeats; then the last reply, if set.
---@param item CodeCompanion.StoredChat
---@return string
local function preview(item)
  local title, cuts = M.title_of(item):gsub("…$", "")
  local known = #(item.questions or {}) > 0 and item.questions or { item.last_question or "" }
  local texts = {}
  for index = #known, 1, -1 do
    -- previews stored by older versions may contain fences
    local text = vim.trim((known[index]:gsub("```+%w*", " "):gsub("%s+", " ")))
    local repeats = text == title or cuts > 0 and vim.startswith(text, title) or vim.endswith(text, " " .. title)
    if text ~= "" and not repeats and not vim.list_contains(texts, text) then
      texts[#texts + 1] = text
    end
  end
  return texts[1] and table.concat(texts, " · ") or item.last_reply or ""
end

---Return the details of a chat other than its title.
---@param item CodeCompanion.StoredChat
---@return string
local function facts(item)
  local parts = { item.messages == 0 and "draft" or M.count(item) }
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

---Return one line for pickers: the time, the title, the other details.
---@param item CodeCompanion.StoredChat
---@return string
function M.one(item)
  local shown = preview(item)
  local known = facts(item)
  local line = ("%s  %s%s"):format(M.time(item.updated), M.title_of(item), known == "" and "" or " · " .. known)
  return shown == "" and line or (line .. " · " .. shown)
end

local RULE = "other projects"
local GAP, MIN_TITLE = 2, 20
M.WIDEST = 110

---Return the lines of the float, and the chat of each line.
---@param items CodeCompanion.StoredChat[]
---@param missing? string Chats missing from the database, or "" if there are none
---@return string[] lines
---@return table<integer, CodeCompanion.StoredChat> at
function M.float(items, missing)
  local lines, at, column = {}, {}, 0
  for _, item in ipairs(items) do
    column = math.max(column, #M.time(item.updated) + GAP)
  end
  local width = math.min(M.WIDEST, vim.o.columns - 2)
  local room, indent = width - column, (" "):rep(column)
  local function add(line, item)
    lines[#lines + 1] = line
    at[#lines] = item
  end
  if missing and missing ~= "" then
    add(fit.cut("── " .. missing, width), nil)
    add("── b restores them from checkpoints", nil)
  end
  for index, item in ipairs(items) do
    if not item.here and (index == 1 or items[index - 1].here) then
      add(("── %s ──"):format(RULE), nil)
    end
    local known, time = facts(item), M.time(item.updated)
    local known_of = known == "" and "" or " · " .. known
    time = time .. (" "):rep(column - #time)
    local left = room - api.nvim_strwidth(known_of)
    if left >= MIN_TITLE then
      add(time .. fit.cut(M.title_of(item), left) .. known_of, item)
    else
      add(time .. fit.cut(M.title_of(item), room), item)
      add(indent .. fit.cut(known, room), item)
    end
    local shown = preview(item)
    if shown ~= "" then
      add(indent .. shown, item) -- the window cuts it, so that `/` finds the whole
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
