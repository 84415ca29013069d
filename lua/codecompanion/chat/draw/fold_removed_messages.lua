---Folds runs of removed messages, which are no longer sent, and never a message that is (lesson 54). The file is longer
---than others because finding, joining, splitting and removing runs must keep one list in order.
---
---The host reports removed messages (`chat.gone`); a run is one fold and begins with a line that describes it. It
---includes everything between two removed messages (notices, marks of edits, undone cards).

local api = vim.api
local anchors = require("codecompanion.chat.buffer.anchors")
local buffer = require("codecompanion.chat.buffer.chat_text")
local draw = require("codecompanion.chat.draw.put_blocks")
local folds = require("codecompanion.chat.buffer.folds")
local gone = require("codecompanion.chat.state.removed_messages")
local marks = require("codecompanion.chat.buffer.row_marks")

local M = {}

local WORDS = { compacted = "summarised", regenerated = "replaced by a new reply" }
local ALONE = { compacted = "an earlier summary, now part of a newer one" }

M.ns = api.nvim_create_namespace("codecompanion.chat.runs")

---Limits of a pass: rows per step and, in a longer chat, the milliseconds before it yields to the user and the length
---of the pause.
local ROWS, BUDGET_MS, PAUSE_MS = 2000, 4, 2
local ATOMS = 500
local PLACE = 1

---@class CodeCompanion.Run
---@field head table First item
---@field header? integer Mark of the model's header above it, which is included
---@field tail table Last item
---@field kind string Kind of the change that removed most of it
---@field count integer Number of messages; 0 = only an older summary, between messages that are still sent
---@field from? integer Number of its first user message
---@field to? integer Number of its last user message
---@field fold? CodeCompanion.Fold

---Return whether an item is neither sent nor removed and is therefore folded with its neighbours.
---@param chat CodeCompanion.Chat
---@param item table
---@return boolean
local function neutral(chat, item)
  local change = item.compaction_id and chat.changes[item.compaction_id]
  if change then
    return change.undone == true
  end
  -- a replaced answer has its own fold, which can be restored (`replaced_answers`)
  return item.cleared_by ~= nil or item.replaced ~= nil
end

---Add the items and model headers in these rows, in order, and the lines of drawn runs.
---@param chat CodeCompanion.Chat
---@param from integer
---@param to integer Exclusive
---@param found table[] Atoms { item?, header? } so far
---@param drawn table[] Items of runs so far
local function add_atoms(chat, from, to, found, drawn)
  -- without details, which cost more than everything else
  local first, last = { from, 0 }, { to - 1, -1 }
  local headers, at = api.nvim_buf_get_extmarks(chat.bufnr, marks.roles, first, last, {}), 1
  ---@param row integer
  local function add_headers(row)
    while headers[at] and headers[at][2] <= row do
      if chat.roles[headers[at][1]] == "llm" then
        found[#found + 1] = { header = headers[at][1] }
      end
      at = at + 1
    end
  end
  for _, mark in ipairs(api.nvim_buf_get_extmarks(chat.bufnr, marks.items, first, last, {})) do
    local item = chat.items[mark[1]]
    if item and item.run then
      if marks.item_rows(chat, item) then
        drawn[#drawn + 1] = item
      end
    elseif item then
      add_headers(mark[2])
      found[#found + 1] = { item = item }
    end
  end
  add_headers(to)
end

---Return all atoms. The text may change whenever this yields, so a mark records the position.
---@param chat CodeCompanion.Chat
---@param breathe fun()
---@return table[] atoms
---@return table[] drawn
local function atoms(chat, breathe)
  local found, drawn, row = {}, {}, (anchors.position(chat, "top"))
  while row < anchors.position(chat, "header") do
    local to = math.min(row + ROWS, (anchors.position(chat, "header")))
    add_atoms(chat, row, to, found, drawn)
    api.nvim_buf_set_extmark(chat.bufnr, M.ns, to, 0, { id = PLACE, right_gravity = false })
    breathe()
    row = api.nvim_buf_get_extmark_by_id(chat.bufnr, M.ns, PLACE, {})[1]
  end
  return found, drawn
end

---Classify the content below a model's header, up to the next header: "gone" if something is removed and nothing is
---sent, "neutral" if all of it is folded with its neighbours.
---@param chat CodeCompanion.Chat
---@param list table[]
---@param index integer Index of the header
---@return "gone"|"neutral"|"live"
local function below_header(chat, list, index)
  local found = "live"
  for at = index + 1, #list do
    local atom = list[at]
    if atom.header or atom.item.speaker then
      break
    elseif gone.kind(chat, atom.item) then
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
---@param item table
---@param kind string
---@param seen table<string, true>
local function join(run, chat, item, kind, seen)
  run.tail = item
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

---Return the runs that should exist, and those that are drawn.
---@param chat CodeCompanion.Chat
---@param breathe fun()
---@return CodeCompanion.Run[] wanted
---@return table[] drawn Their items
local function compare(chat, breathe)
  local list, drawn = atoms(chat, breathe)
  local found, seen = {}, {}
  local run, header ---@type CodeCompanion.Run?, integer?
  for index, atom in ipairs(list) do
    local kind = not atom.header and gone.kind(chat, atom.item)
    local below = atom.header and below_header(chat, list, index)
    if below == "gone" then
      header = header or atom.header
    elseif kind then
      if not run then
        run = { head = atom.item, header = header, kind = kind, count = 0 }
        seen = {}
        found[#found + 1] = run
      end
      join(run, chat, atom.item, kind, seen)
      header = nil
    elseif (run or header) and (below == "live" or not below and not neutral(chat, atom.item)) then
      if below or marks.item_rows(chat, atom.item) then -- its text exists
        run, header = nil, nil
      end
    end
    if index % ATOMS == 0 then
      breathe()
    end
  end
  return found, drawn
end

---@param run CodeCompanion.Run
---@return string
function M.text(run)
  if run.count == 0 then
    return ALONE[run.kind] or "an earlier summary, removed"
  end
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
  local first, last = marks.item_rows(chat, run.head)
  local header = run.header and api.nvim_buf_get_extmark_by_id(chat.bufnr, marks.roles, run.header, {})
  first = header and header[1] or first
  if not first then
    return -- its text was removed meanwhile
  end
  local _, tail = marks.item_rows(chat, run.tail)
  last = tail or last or first + 1
  local text = M.text(run)
  buffer.edit(chat, function()
    buffer.insert(chat, first, { "▾ " .. text })
    draw.decorate(chat, first, {
      kind = "run",
      lines = { "▾ " .. text },
      marks = { { row = 0, from = 0, to = #text + #"▾ ", group = "CodeCompanionCompacted" } },
      item = { run = run },
    })
    run.fold = folds.add(chat, first, last, {
      closed = true,
      key = "run:" .. (run.head.message_id or run.head.compaction_id or ""),
      text = function(width)
        local is_wide = width and api.nvim_strwidth("▸ " .. text) > width
        local shown = is_wide and text:gsub("( · %d+) messages?", "%1") or text
        return { { "▸ ", "CodeCompanionFoldMark" }, { shown, "CodeCompanionCompacted" } }
      end,
    })
  end)
  chat.runs_drawn = chat.runs_drawn + 1
end

---@param chat CodeCompanion.Chat
---@param item table Item of the run's line
local function take_away(chat, item)
  buffer.edit(chat, function()
    if item.run.fold then
      folds.unwrap(chat, item.run.fold)
    end
    local row = marks.item_rows(chat, item)
    chat.items[item.id] = nil
    if row then
      -- otherwise its colour would outlive the line
      api.nvim_buf_clear_namespace(chat.bufnr, marks.decor, row, row + 1)
      buffer.remove(chat, row, row + 1)
    end
  end)
  chat.runs_drawn = chat.runs_drawn - 1
end

---Update the folds that differ from the expected ones; correct ones are not touched.
---@param chat CodeCompanion.Chat
---@param breathe fun()
local function pass(chat, breathe)
  local list, drawn = compare(chat, breathe)
  ---@type table<table, CodeCompanion.Run|false>
  local keep = {}
  for _, run in ipairs(list) do
    keep[run.head] = run
  end
  local stale = {}
  for _, item in ipairs(drawn) do
    local old = item.run
    local new = keep[old.head]
    if new and new.tail == old.tail and M.text(new) == M.text(old) and old.fold and folds.rows(chat, old.fold) then
      keep[old.head] = false
    else
      stale[#stale + 1] = item
    end
  end
  for index = #stale, 1, -1 do
    take_away(chat, stale[index])
    breathe()
  end
  for index = #list, 1, -1 do
    if keep[list[index].head] then
      add(chat, list[index])
      breathe()
    end
  end
end

---@param chat CodeCompanion.Chat
---@param work thread
local function continue(chat, work)
  if chat.refreshing ~= work or not api.nvim_buf_is_loaded(chat.bufnr) then
    return -- the chat was redrawn, or the removed messages have changed meanwhile
  end
  local ok, problem = coroutine.resume(work)
  if coroutine.status(work) ~= "dead" then
    vim.defer_fn(function()
      continue(chat, work)
    end, PAUSE_MS)
    return
  end
  chat.refreshing = nil
  if not ok then
    error(problem, 0)
  end
end

---Fold all removed messages and nothing else: at once in a chat of ordinary length, in slices in a long one.
---@param chat CodeCompanion.Chat
function M.refresh(chat)
  chat.refreshing = nil
  if not next(chat.gone) and chat.runs_drawn == 0 then
    return
  end
  local sliced = api.nvim_buf_line_count(chat.bufnr) > ROWS
  local work = coroutine.create(function()
    local began = vim.uv.hrtime()
    pass(chat, function()
      if sliced and (vim.uv.hrtime() - began) / 1e6 > BUDGET_MS then
        coroutine.yield()
        began = vim.uv.hrtime()
      end
    end)
  end)
  chat.refreshing = work
  continue(chat, work)
end

---Fold messages that were removed from the view.
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

return M
