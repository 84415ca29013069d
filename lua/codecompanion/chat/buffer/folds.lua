---Manages the folds of a chat independently of windows: extmarks store their positions, a table their state; windows
---only follow. The file is longer than others because everything that changes a window's folds must keep the same table
---in sync.
---
---Manual folds are window-local and cost nothing while text streams (`foldmethod=expr` is evaluated for every changed
---line). They are rebuilt from the extmarks, in their last state, when a window starts to show the chat.

local api = vim.api

local fit = require("codecompanion.text.fit")
local numbers = require("codecompanion.text.numbers")
local registry = require("codecompanion.chat.state.open_chats")

local M = {}

M.ns = api.nvim_create_namespace("codecompanion.chat.folds")

---@class CodeCompanion.Fold
---@field closed boolean Current or last state
---@field text fun(width: integer): { [1]: string, [2]: string }[] Line shown while it is closed
---@field id integer
---@field change? string Id of the change whose card it folds
---@field key? string Identifies the fold across redraws, to restore the user's choice
---@field default boolean Initial state

local SAMPLES = 40

---Return the state that the folds depend on: the text and the table.
---@param chat CodeCompanion.Chat
---@return string
local function stamp(chat)
  return ("%d:%d"):format(api.nvim_buf_get_changedtick(chat.bufnr), chat.folds_version)
end

---@param chat CodeCompanion.Chat
local function has_changed(chat)
  chat.folds_version = chat.folds_version + 1
end

---@param win integer
---@param first integer 0-based
---@param last integer 0-based, inclusive
---@param closed boolean
local function make(win, first, last, closed)
  api.nvim_win_call(win, function()
    local ok = pcall(vim.cmd, ("noautocmd %d,%dfold"):format(first + 1, last + 1))
    if ok and not closed then
      pcall(vim.cmd, ("noautocmd %dfoldopen"):format(first + 1))
    end
  end)
end

---Return the current rows of a fold.
---@param chat CodeCompanion.Chat
---@param fold CodeCompanion.Fold
---@return integer? first
---@return integer? last Inclusive
function M.rows(chat, fold)
  local mark = api.nvim_buf_get_extmark_by_id(chat.bufnr, M.ns, fold.id, { details = true })
  if not mark[1] or mark[3].invalid then
    return nil
  end
  return mark[1], mark[3].end_row
end

---Add a fold over at least two whole lines.
---@param chat CodeCompanion.Chat
---@param first integer 0-based
---@param last integer 0-based, inclusive
---@param spec { closed: boolean, text: fun(): table, change?: string, key?: string, marked?: boolean } `marked`: its
---first line, which has no ▾ of its own, gets one while it is open
---@return CodeCompanion.Fold?
function M.add(chat, first, last, spec)
  if last <= first then
    return nil
  end
  local closed = spec.closed == true
  local left = spec.key and chat.fold_states[spec.key]
  local fold = { closed = closed, default = closed, text = spec.text, change = spec.change, key = spec.key }
  if left ~= nil then
    fold.closed = left
  end
  fold.id = api.nvim_buf_set_extmark(chat.bufnr, M.ns, first, 0, {
    end_row = last,
    end_col = 0,
    right_gravity = true,
    end_right_gravity = true,
    invalidate = true,
    undo_restore = false,
    virt_text = spec.marked and { { "▾ ", "CodeCompanionFoldMark" } } or nil,
    virt_text_pos = spec.marked and "inline" or nil,
  })
  chat.folds[fold.id] = fold
  has_changed(chat)
  for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
    make(win, first, last, fold.closed)
  end
  return fold
end

---Remove a fold from the chat and from its windows.
---@param chat CodeCompanion.Chat
---@param fold CodeCompanion.Fold
function M.remove(chat, fold)
  has_changed(chat)
  local first = M.rows(chat, fold)
  if first then
    for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
      api.nvim_win_call(win, function()
        if vim.fn.foldlevel(first + 1) > 0 then
          local view = vim.fn.winsaveview()
          pcall(vim.cmd, ("noautocmd keepjumps %dfoldopen!"):format(first + 1))
          api.nvim_win_set_cursor(win, { first + 1, 0 })
          pcall(vim.cmd, "noautocmd keepjumps normal! zd")
          vim.fn.winrestview(view)
        end
      end)
    end
  end
  api.nvim_buf_del_extmark(chat.bufnr, M.ns, fold.id)
  chat.folds[fold.id] = nil
end

---Remove a fold if no other fold begins on its first line; folds inside keep their state and move up.
---@param chat CodeCompanion.Chat
---@param fold CodeCompanion.Fold
function M.unwrap(chat, fold)
  has_changed(chat)
  local first = M.rows(chat, fold)
  for _, win in ipairs(first and vim.fn.win_findbuf(chat.bufnr) or {}) do
    api.nvim_win_call(win, function()
      local depth, view = vim.fn.foldlevel(first + 1), vim.fn.winsaveview()
      for _ = 1, depth do -- only those around the line: `foldopen!` would also open those inside
        pcall(vim.cmd, ("noautocmd keepjumps %dfoldopen"):format(first + 1))
      end
      if depth > 0 then
        api.nvim_win_set_cursor(win, { first + 1, 0 })
        pcall(vim.cmd, "noautocmd keepjumps normal! zd")
        vim.fn.winrestview(view)
      end
    end)
  end
  api.nvim_buf_del_extmark(chat.bufnr, M.ns, fold.id)
  chat.folds[fold.id] = nil
end

---Save which folds the user has opened or closed, for the next drawing of the chat.
---@param chat CodeCompanion.Chat
function M.keep_states(chat)
  for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
    M.remember(chat, win)
  end
  for _, fold in pairs(chat.folds) do
    if fold.key then
      chat.fold_states[fold.key] = nil
      if fold.closed ~= fold.default then
        chat.fold_states[fold.key] = fold.closed
      end
    end
  end
end

---Open or close a fold in every window.
---@param chat CodeCompanion.Chat
---@param fold CodeCompanion.Fold
---@param closed boolean
function M.set_closed(chat, fold, closed)
  has_changed(chat)
  fold.closed = closed
  local first = M.rows(chat, fold)
  for _, win in ipairs(first and vim.fn.win_findbuf(chat.bufnr) or {}) do
    api.nvim_win_call(win, function()
      pcall(vim.cmd, ("noautocmd %d%s"):format(first + 1, closed and "foldclose" or "foldopen"))
    end)
  end
end

---Return whether a fold is closed where it is visible.
---@param chat CodeCompanion.Chat
---@param fold CodeCompanion.Fold
---@return boolean
function M.is_closed(chat, fold)
  local first = M.rows(chat, fold)
  local win = vim.fn.win_findbuf(chat.bufnr)[1]
  if not first or not win then
    return fold.closed
  end
  return api.nvim_win_call(win, function()
    return vim.fn.foldclosed(first + 1) ~= -1
  end)
end

---Return all folds in the order of their ends, inner ones before outer ones: the window's list grows at its end.
---@param chat CodeCompanion.Chat
---@return { first: integer, last: integer, fold: CodeCompanion.Fold }[]
local function inner_first(chat)
  local found = {}
  for _, fold in pairs(chat.folds) do -- look up each by id: for a range, Neovim would search all marks of all kinds
    local first, last = M.rows(chat, fold)
    if first then
      found[#found + 1] = { first = first, last = last, fold = fold }
    end
  end
  table.sort(found, function(a, b)
    if a.last ~= b.last then
      return a.last < b.last
    end
    return a.first > b.first
  end)
  return found
end

---Return the folds with their first lines; they are cached until something changes, because extmark lookups are slower
---than fold lookups.
---@param chat CodeCompanion.Chat
---@return CodeCompanion.Fold[]
---@return integer[]
local function beginnings(chat)
  local now, known = stamp(chat), chat.fold_lines
  if known and known.stamp == now and not chat.damaged then
    return known.folds, known.lines
  end
  local bufnr, ns, by_id = chat.bufnr, M.ns, api.nvim_buf_get_extmark_by_id
  -- only after a deletion do details distinguish valid marks
  local opts = chat.damaged and { details = true } or {}
  local found, lines = {}, {}
  for id, fold in pairs(chat.folds) do
    local mark = by_id(bufnr, ns, id, opts)
    if mark[1] and not (mark[3] and mark[3].invalid) then
      found[#found + 1], lines[#lines + 1] = fold, mark[1] + 1
    end
  end
  chat.fold_lines = { stamp = now, folds = found, lines = lines }
  return found, lines
end

---Record which folds the user opened or closed in a window.
---@param chat CodeCompanion.Chat
---@param win integer
function M.remember(chat, win)
  if not api.nvim_win_is_valid(win) or api.nvim_win_get_buf(win) ~= chat.bufnr then
    return
  end
  local found, lines = beginnings(chat)
  local foldclosed = vim.fn.foldclosed
  api.nvim_win_call(win, function()
    if not vim.wo.foldenable then
      return
    end
    for index, line in ipairs(lines) do
      local closed_at = foldclosed(line)
      -- inside another closed fold its state is not visible: keep the known one
      if closed_at == -1 then
        found[index].closed = false
      elseif closed_at == line then
        found[index].closed = true
      end
    end
    local now = stamp(chat)
    chat.folds_kept[win], chat.folds_kept.latest = now, now
  end)
end

---Return whether Vim has restored all folds of a window that shows the chat again: Vim stores folds per window and
---buffer. If it has, a long chat needs no rebuild.
---@param chat CodeCompanion.Chat
---@param win integer
---@return boolean
function M.are_kept(chat, win)
  if (chat.folds_kept[win] or chat.folds_kept.latest) ~= stamp(chat) then
    return false
  end
  local looked = 0
  return api.nvim_win_call(win, function()
    for _, fold in pairs(chat.folds) do
      if looked < SAMPLES or not fold.closed then -- check all opened ones: setting an option may have closed them
        looked = looked + 1
        local first = M.rows(chat, fold)
        local closed_at = first and vim.fn.foldclosed(first + 1)
        if first and (vim.fn.foldlevel(first + 1) == 0 or (closed_at == (fold.closed and -1 or first + 1))) then
          return false
        end
      end
    end
    return true
  end)
end

---Build all folds in a window that starts to show the chat.
---@param chat CodeCompanion.Chat
---@param win integer
function M.apply(chat, win)
  api.nvim_win_call(win, function()
    local view = vim.fn.winsaveview()
    pcall(vim.cmd, "noautocmd normal! zE")
    local commands = {} -- run as one script: a separate command costs several times as much
    for _, entry in ipairs(inner_first(chat)) do
      commands[#commands + 1] = ("silent! noautocmd %d,%dfold"):format(entry.first + 1, entry.last + 1)
      if not entry.fold.closed then
        commands[#commands + 1] = ("silent! noautocmd %dfoldopen"):format(entry.first + 1)
      end
    end
    api.nvim_exec2(table.concat(commands, "\n"), {})
    vim.fn.winrestview(view)
  end)
end

---Return the innermost fold that covers a row.
---@param chat CodeCompanion.Chat
---@param row integer 0-based
---@return CodeCompanion.Fold?
function M.at(chat, row)
  local marks = api.nvim_buf_get_extmarks(chat.bufnr, M.ns, { row, 0 }, { row, -1 }, { overlap = true, details = true })
  local best, best_first
  for _, mark in ipairs(marks) do
    local fold = chat.folds[mark[1]]
    if fold and not mark[4].invalid and mark[4].end_row >= row and (not best_first or mark[2] >= best_first) then
      best, best_first = fold, mark[2]
    end
  end
  return best
end

---Return the 'foldtext' of chat windows.
---@return { [1]: string, [2]: string }[]|string
function M.text()
  local chat = registry.by_buffer(api.nvim_get_current_buf())
  local row = vim.v.foldstart - 1
  if chat then
    local marks = api.nvim_buf_get_extmarks(chat.bufnr, M.ns, { row, 0 }, { row, 0 }, {})
    for _, mark in ipairs(marks) do
      local fold = chat.folds[mark[1]]
      if fold then
        local room = fit.room(api.nvim_get_current_win())
        return fit.cut_chunks(fold.text(room), room)
      end
    end
  end
  local line = api.nvim_buf_get_lines(0, row, row + 1, false)[1] or ""
  local counted = numbers.counted
  return {
    { line, "CodeCompanionFold" },
    { "  " .. counted(vim.v.foldend - row, "line"), "CodeCompanionFoldMark" },
  }
end

return M
