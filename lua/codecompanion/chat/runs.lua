---What left the request, folded: runs of messages that are not sent any more, never one that is (lesson 54).
---
---The host says which messages are gone (`chat.gone`); a run begins with a line that tells what it holds, and is one
---fold. What stands between two messages that are gone (notices, marks of edits, undone cards) goes along.

local api = vim.api
local buffer = require("codecompanion.chat.buffer")
local draw = require("codecompanion.chat.draw")
local folds = require("codecompanion.chat.folds")

local M = {}

local WORDS = { compacted = "summarised", regenerated = "replaced by a new answer" }

---@class CodeCompanion.Run
---@field first integer Row, 0-based
---@field last integer Row, exclusive
---@field head table First item
---@field tail table Last item
---@field kind string Kind of change that took most of it out
---@field count integer Messages
---@field from? integer Number of the user's first message in it
---@field to? integer And of the last

---@param chat CodeCompanion.Chat
---@param item table
---@return string? kind What took it out, nil for what is sent
local function gone(chat, item)
  if item.summary_ids then
    local kind
    for _, id in ipairs(item.summary_ids) do
      kind = chat.gone[id]
      if not kind then
        return nil
      end
    end
    return kind
  end
  return item.message_id and not item.replaced and chat.gone[item.message_id] or nil
end

---Whether an item is neither sent nor gone: it goes along with what is around it.
---@param chat CodeCompanion.Chat
---@param item table
---@return boolean
local function neutral(chat, item)
  local change = item.compaction_id and chat.changes[item.compaction_id]
  if change then
    return change.undone == true
  end
  -- an answer that does not count has a fold and a way back of its own (`replaced`)
  return item.cleared_by ~= nil or item.replaced ~= nil
end

---@param chat CodeCompanion.Chat
---@param ns integer
---@param from integer
---@param to integer Exclusive
---@return [integer, integer, integer][] marks In order; without details, which cost more than all the rest
local function marks_of(chat, ns, from, to)
  return to > from and api.nvim_buf_get_extmarks(chat.bufnr, ns, { from, 0 }, { to - 1, -1 }, {}) or {}
end

---Items and headers of the model in these rows, in order, and the lines of the runs that are drawn.
---@param chat CodeCompanion.Chat
---@param from integer
---@param to integer Exclusive
---@return table[] atoms { first, item?, header? }
---@return { row: integer, item: table }[] drawn
local function atoms(chat, from, to)
  local found, drawn = {}, {}
  local headers, at = marks_of(chat, draw.roles, from, to), 1
  ---@param row integer
  local function add_headers(row)
    while headers[at] and headers[at][2] <= row do
      if chat.roles[headers[at][1]] == "llm" then
        found[#found + 1] = { first = headers[at][2], header = true }
      end
      at = at + 1
    end
  end
  for _, mark in ipairs(marks_of(chat, draw.items, from, to)) do
    local item = chat.items[mark[1]]
    if item and item.run then
      if draw.item_rows(chat, item) then
        drawn[#drawn + 1] = { row = mark[2], item = item }
      end
    elseif item then
      add_headers(mark[2])
      found[#found + 1] = { first = mark[2], item = item }
    end
  end
  add_headers(to)
  return found, drawn
end

---What is below a header of the model, up to the next one who speaks: "gone" when something is and nothing is sent,
---"neutral" when all goes along with what is around it.
---@param chat CodeCompanion.Chat
---@param list table[]
---@param index integer Of the header
---@return "gone"|"neutral"|"live"
local function below_header(chat, list, index)
  local found = "live"
  for at = index + 1, #list do
    local atom = list[at]
    if atom.header or atom.item.speaker then
      break
    elseif gone(chat, atom.item) then
      found = "gone"
    elseif not neutral(chat, atom.item) then
      return "live"
    elseif found == "live" then
      found = "neutral"
    end
  end
  return found
end

---@param run CodeCompanion.Run
---@param chat CodeCompanion.Chat
---@param atom table
---@param kind string
---@param seen table<string, true>
local function join(run, chat, atom, kind, seen)
  local item = atom.item
  run.last, run.tail = atom.first + 1, item
  run.kind = kind == "compacted" and kind or run.kind
  for _, id in ipairs({ item.message_id or false, item.reply_id or false }) do
    if id and not seen[id] and chat.gone[id] then
      seen[id] = true
      run.count = run.count + 1
    end
  end
  if item.number and item.number > 0 then
    run.from = run.from or item.number
    run.to = item.number
  end
end

---The runs there should be in these rows, and those that are drawn.
---@param chat CodeCompanion.Chat
---@param from integer
---@param to integer
---@return CodeCompanion.Run[] wanted
---@return { row: integer, item: table }[] drawn By their line
local function compare(chat, from, to)
  local list, drawn = atoms(chat, from, to)
  local found, seen = {}, {}
  local run, begin ---@type CodeCompanion.Run?, integer?
  for index, atom in ipairs(list) do
    local kind = not atom.header and gone(chat, atom.item)
    local below = atom.header and below_header(chat, list, index)
    if below == "gone" then
      begin = begin or atom.first
    elseif kind then
      if not run then
        run = { first = begin or atom.first, head = atom.item, kind = kind, count = 0 }
        seen = {}
        found[#found + 1] = run
      end
      join(run, chat, atom, kind, seen)
      begin = nil
    elseif (run or begin) and (below == "live" or not below and not neutral(chat, atom.item)) then
      if below or draw.item_rows(chat, atom.item) then -- its text is there
        run, begin = nil, nil
      end
    end
  end
  for _, made in ipairs(found) do
    local _, last = draw.item_rows(chat, made.tail)
    made.last = last or made.last
  end
  return found, drawn
end

---@param run CodeCompanion.Run
---@return string
function M.text(run)
  local parts = {}
  if run.from then
    parts[1] = run.from == run.to and ("your message %d"):format(run.from)
      or ("your messages %d–%d"):format(run.from, run.to)
  end
  local word = WORDS[run.kind] or "removed"
  parts[#parts + 1] = ("%d message%s %s"):format(run.count, run.count == 1 and "" or "s", word)
  return table.concat(parts, " · ")
end

---@param chat CodeCompanion.Chat
---@param run CodeCompanion.Run
local function add(chat, run)
  local text = M.text(run)
  buffer.insert(chat, run.first, { "▾ " .. text })
  draw.decorate(chat, run.first, {
    kind = "run",
    lines = { "▾ " .. text },
    marks = { { row = 0, from = 0, to = #text + #"▾ ", group = "CodeCompanionCompacted" } },
    item = { run = run },
  })
  run.fold = folds.add(chat, run.first, run.last, {
    closed = true,
    key = "run:" .. (run.head.message_id or run.head.compaction_id or ""),
    text = function()
      return { { "▸ ", "CodeCompanionFoldMark" }, { text, "CodeCompanionCompacted" } }
    end,
  })
end

---@param chat CodeCompanion.Chat
---@return boolean
local function has_runs(chat)
  for _, item in pairs(chat.items) do
    if item.run then
      return true
    end
  end
  return false
end

---Fold what is gone in these rows, and nothing else; what is right already stays untouched.
---@param chat CodeCompanion.Chat
---@param from? integer The whole buffer when not given
---@param to? integer Exclusive
function M.refresh(chat, from, to)
  from = from or buffer.position(chat, "top")
  to = to or buffer.position(chat, "header")
  if not next(chat.gone) and not has_runs(chat) then
    return
  end
  local list, drawn = compare(chat, from, to)
  ---@type table<table, CodeCompanion.Run|false>
  local keep, stale = {}, {}
  for _, run in ipairs(list) do
    keep[run.head] = run
  end
  for _, line in ipairs(drawn) do
    local old = line.item.run
    local new = keep[old.head]
    if new and new.tail == old.tail and M.text(new) == M.text(old) and old.fold and folds.rows(chat, old.fold) then
      keep[old.head] = false
    else
      stale[#stale + 1] = line
    end
  end
  if #stale == 0 and not next(keep) then
    return
  end
  local wins = #stale > 0 and vim.fn.win_findbuf(chat.bufnr) or {}
  for _, win in ipairs(wins) do
    folds.remember(chat, win)
  end
  local view = require("codecompanion.chat.view")
  local followers = view.followers(chat)
  buffer.edit(chat, function()
    for index = #stale, 1, -1 do
      local line = stale[index]
      if line.item.run.fold then
        folds.drop(chat, line.item.run.fold)
      end
      chat.items[line.item.id] = nil
      buffer.remove(chat, line.row, line.row + 1)
      to = to - 1
    end
    if #stale > 0 then
      list = compare(chat, from, to)
    end
    for index = #list, 1, -1 do
      if keep[list[index].head] then
        add(chat, list[index])
      end
    end
  end)
  for _, win in ipairs(wins) do
    folds.apply(chat, win)
  end
  view.follow(chat, followers)
end

---Messages left the view.
---@param chat CodeCompanion.Chat
---@param ids string[]
---@param kind string
function M.take_out(chat, ids, kind)
  for _, id in ipairs(ids) do
    chat.gone[id] = kind
  end
  if #ids > 0 then
    M.refresh(chat)
  end
end

---What is out of the view now, as a whole.
---@param chat CodeCompanion.Chat
---@param by_kind table<string, string[]>
---@return boolean changed
function M.set(chat, by_kind)
  local now, changed = {}, false
  for kind, ids in pairs(by_kind) do
    for _, id in ipairs(ids) do
      now[id] = kind
      changed = changed or chat.gone[id] ~= kind
    end
  end
  for id in pairs(chat.gone) do
    changed = changed or not now[id]
  end
  chat.gone = now
  return changed
end

---Whether the message is folded away because it is not sent any more.
---@param chat CodeCompanion.Chat
---@param item table
---@return boolean
function M.is_gone(chat, item)
  return gone(chat, item) ~= nil or item.message_id ~= nil and chat.gone[item.message_id] ~= nil
end

return M
