-- The editor's side of `buffer_story.py`: one chat at a time, drawn without waiting, read back as plain lists.
local api = vim.api
local host = require("codecompanion.host")
local chats = require("codecompanion.chat")

_G.Story = {}
local S = _G.Story
local asked = {}
local VERBS = { redraw_chat = true, detach = true, undo_change = true }

local request = host.request
function host.request(verb, payload, callback)
  request(verb, payload, callback)
  if VERBS[verb] then
    asked[#asked + 1] = { verb = verb, payload = payload }
  end
  host.requests = {}
end

local function chat()
  return chats.last_chat()
end

local function wait()
  vim.wait(2000, function()
    for _, one in ipairs(chats.list()) do
      if one.queue.scheduled or one.restore.running then
        return false
      end
    end
    return true
  end, 1)
end

function S.begin()
  for _, old in ipairs(chats.list()) do
    chats.close(old)
  end
  asked = {}
  local new = chats.open({ layout = "buffer" })
  vim.wait(1000, function()
    return new.attached ~= "no"
  end, 1)
  return new.id
end

function S.draw(json)
  if json ~= "[]" then
    host.on_events(json)
  end
  wait()
  local now = asked
  asked = {}
  return #now == 0 and "[]" or vim.json.encode(now)
end

local function changed()
  api.nvim_exec_autocmds("TextChanged", { buffer = chat().bufnr })
end

function S.delete_context_line(number)
  local top = require("codecompanion.chat.buffer.anchors").position(chat(), "top")
  if top > 2 then
    api.nvim_win_set_cursor(0, { 2 + number % (top - 2), 0 })
    api.nvim_exec_autocmds("CursorMoved", { buffer = chat().bufnr })
    vim.cmd("normal! dd")
    changed()
  end
end

function S.undo_there()
  local top = require("codecompanion.chat.buffer.anchors").position(chat(), "top")
  if top > 1 then
    api.nvim_win_set_cursor(0, { 1, 0 })
    require("codecompanion.chat.ui.key_actions").undo(chat())
    changed()
  end
end

function S.leave()
  chats.close(chat())
  asked = {}
end

function S.resume(id)
  chats.resume(id, { layout = "buffer" })
  wait()
end

function S.command(name)
  local bufnr = chat().bufnr
  if name == "redraw" then
    require("codecompanion.chat.wire.redraw_chat").redraw(chat())
  elseif name == "bdelete" then
    vim.cmd("bdelete")
    vim.cmd("buffer " .. bufnr)
  else
    vim.cmd(name)
  end
end

local function runs(c)
  local folds = require("codecompanion.chat.buffer.folds")
  local found = {}
  for _, item in pairs(c.items) do
    if item.run and item.run.fold then
      local first, last = folds.rows(c, item.run.fold)
      found[#found + 1] = { first, last }
    end
  end
  return found
end

---A fold ends at its own last row, or at that of one around it that begins on the same row.
local function check_folds(c)
  local folds = require("codecompanion.chat.buffer.folds")
  local ends = {}
  for _, fold in pairs(c.folds) do
    local first, last = folds.rows(c, fold)
    if first then
      ends[first] = ends[first] or {}
      ends[first][last] = true
    end
  end
  for first, lasts in pairs(ends) do
    local closed_end = vim.fn.foldclosedend(first + 1) - 1
    if vim.fn.foldlevel(first + 1) == 0 then
      return ("no fold at %d"):format(first)
    elseif vim.fn.foldclosed(first + 1) == first + 1 and not lasts[closed_end] then
      return ("fold %d..%s ends at %d"):format(first, vim.inspect(vim.tbl_keys(lasts)), closed_end)
    end
  end
  return ""
end

function S.shown()
  local c = chat()
  local marks = require("codecompanion.chat.buffer.row_marks")
  local hidden = runs(c)
  local function is_hidden(row)
    for _, run in ipairs(hidden) do
      if row > run[1] and row <= run[2] then
        return true
      end
    end
    return false
  end
  local said, cards, cleared, lost, seen = {}, {}, {}, {}, {}
  for _, mark in ipairs(api.nvim_buf_get_extmarks(c.bufnr, marks.items, 0, -1, { details = true })) do
    local item = c.items[mark[1]]
    if item and not mark[4].invalid and not is_hidden(mark[2]) then
      if item.compaction_id then
        local change = c.changes[item.compaction_id]
        if not (change and change.undone) then
          vim.list_extend(cards, item.summary_ids or {})
        end
      elseif item.message_id and not item.reasoning and not item.replaced and not seen[item.message_id] then
        seen[item.message_id] = true
        said[#said + 1] = item.message_id
        if item.cleared then
          cleared[#cleared + 1] = item.message_id
        elseif item.lost then
          lost[#lost + 1] = item.message_id
        end
      end
    end
  end
  local context = {}
  local top = require("codecompanion.chat.buffer.anchors").position(c, "top")
  for row = 0, top - 1 do
    local item = require("codecompanion.chat.draw.context_block").item_at(c, row)
    if item then
      context[#context + 1] = item.id
    end
  end
  local lines = api.nvim_buf_get_lines(c.bufnr, 0, top, false)
  local problem = check_folds(c)
  if #context ~= math.max(0, top - 2) or top > 0 and lines[1] ~= "> Context:" then
    problem = "context block: " .. table.concat(lines, "|")
  end
  local empty = vim.empty_dict
  local function list(values)
    return #values > 0 and values or nil
  end
  _ = empty
  local parts = {}
  for name, values in pairs({ said = said, cards = cards, context = context, cleared = cleared, lost = lost }) do
    parts[#parts + 1] = ("%q:%s"):format(name, list(values) and vim.json.encode(values) or "[]")
  end
  return "{" .. table.concat(parts, ",") .. ',"problem":' .. vim.json.encode(problem) .. "}"
end

function S.lines(all)
  local lines = api.nvim_buf_get_lines(chat().bufnr, 0, -1, false)
  if all then
    return lines
  end
  return vim.tbl_filter(function(line)
    return line ~= "" and not line:find("^· ") and not line:find("^! ") and not line:find("^✗ ")
  end, lines)
end
