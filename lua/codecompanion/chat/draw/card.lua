---Shows changes of the view in the buffer, from drawing to undo: an edit is a line of virtual text, a compaction a
---card, a cleared chat one line. An undoable change is marked, an undone one is dimmed, a restored one is opened.
---
---The file is longer than others because it owns everything about a change: its text, its marks, its undo.

local api = vim.api
local fit = require("codecompanion.text.fit")
local folds = require("codecompanion.chat.buffer.folds")
local gone = require("codecompanion.chat.state.removed_messages")
local keys = require("codecompanion.chat.state.configured_keys")
local marks = require("codecompanion.chat.buffer.row_marks")
local numbers = require("codecompanion.text.numbers")
local summary = require("codecompanion.chat.draw.summary")

local M = {}

M.ns = api.nvim_create_namespace("codecompanion.chat.changes")

---@class CodeCompanion.Change
---@field id string
---@field kind "edited"|"compacted"|"cleared"
---@field undone boolean
---@field folded? boolean A card that is drawn closed
---@field superseded? boolean A newer card replaces it (R-333)
---@field event table The event or entry it was drawn from
---@field mark? integer Extmark of an edit's line
---@field item? table Item of the card

---Describe the effect of an edit on tool results: "2 tool results cleared, 1 cut to 34 %".
---@param cleared integer
---@param cuts integer[] Percentages of cut results that are sent
---@param code integer Number of cleared items that are gathered code, not results
---@return string
local function edit_of(cleared, cuts, code)
  local function results(count)
    return ("%d tool result%s"):format(count, count == 1 and "" or "s")
  end
  local cut = #cuts == 1 and ("cut to %d %%"):format(cuts[1]) or "cut"
  if cleared == 0 then
    return #cuts == 0 and "text of old edits shortened" or ("%s %s"):format(results(#cuts), cut)
  end
  local what = cleared > code and { results(cleared - code) } or {}
  what[#what + 1] = code > 0 and "code for " .. numbers.counted(code, "message") or nil
  return table.concat(what, " and ") .. " cleared" .. (#cuts > 0 and (", %d %s"):format(#cuts, cut) or "")
end

---Return the line of virtual text for cleared or cut tool results; their displayed text is unchanged (R-516).
---@param event table
---@return CodeCompanion.Block
function M.edited(event)
  local what = edit_of(event.cleared, event.cuts or vim.tbl_values(event.cut or {}), event.code or 0)
  local text = ("✂ %s · %s → %s tokens"):format(
    what,
    numbers.short(event.tokens_before),
    numbers.short(event.tokens_after)
  )
  text = text .. ((event.why or "") ~= "" and " · " .. event.why or "")
  return {
    kind = "edited",
    lines = {},
    virtual = { { text, "CodeCompanionCleared" } },
    change = { id = event.change_id, kind = "edited", undone = event.undone == true, event = event },
  }
end

---Return the line that replaces a cleared chat.
---@param entry { change_id: string }
---@return CodeCompanion.Block
function M.cleared(entry)
  local line = "Chat cleared"
  return {
    kind = "cleared",
    lines = { line },
    marks = { { row = 0, from = 0, to = #line, group = "CodeCompanionCleared" } },
    item = { cleared_by = entry.change_id },
    change = { id = entry.change_id, kind = "cleared", undone = false, event = entry },
  }
end

---Return the height of the smallest window that shows the chat.
---@param chat CodeCompanion.Chat
---@return integer
local function smallest(chat)
  local rows = vim.o.lines
  for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
    rows = math.min(rows, api.nvim_win_get_height(win))
  end
  return rows
end

---Return the card of a compaction.
---@param chat CodeCompanion.Chat
---@param event table compacted event, or an entry of the log
---@return CodeCompanion.Block
function M.compacted(chat, event)
  return summary.block(event, smallest(chat), function(id, title, width)
    return M.title(chat, id, title, width)
  end)
end

---Return the text before an undone change: it comes first, because narrow windows cut the end.
---@param chat CodeCompanion.Chat
---@param change CodeCompanion.Change
---@return string
local function prefix(chat, change)
  local redo = keys.keys("redo", "n")[1]
  if not change.undone then
    return change.superseded and "superseded · " or ""
  end
  return chat.next_redo == change.id and redo and ("undone · %s redo · "):format(redo) or "undone · "
end

---Return the text after a change that can be undone.
---@param chat CodeCompanion.Chat
---@param change CodeCompanion.Change
---@return string
local function suffix(chat, change)
  local undo = keys.keys("undo", "n")[1]
  local is_next = not change.undone and chat.next_undo == change.id
  return is_next and undo and ("%s undo"):format(undo) or ""
end

---Return the keys of a card whose change can be undone, longest form first.
---@param chat CodeCompanion.Chat
---@param change CodeCompanion.Change
---@return string[]
local function card_keys(chat, change)
  local undo, show = suffix(chat, change), keys.keys("show_original", "n")[1]
  if undo == "" then
    return {}
  end
  return show and { ("%s · %s details"):format(undo, show), undo } or { undo }
end

---Return the edits shown below a row, in the order they were made.
---@param chat CodeCompanion.Chat
---@param row integer
---@return CodeCompanion.Change[]
function M.edits_below(chat, row)
  local found = {}
  for _, mark in ipairs(api.nvim_buf_get_extmarks(chat.bufnr, marks.decor, { row, 0 }, { row, -1 }, {})) do
    found[#found + 1] = chat.edits[mark[1]]
  end
  table.sort(found, function(one, other)
    return one.mark < other.mark
  end)
  return found
end

---Return the text of an edit as lines of virtual text.
---@param chat CodeCompanion.Chat
---@param change CodeCompanion.Change
---@return table[]
local function edit_lines(chat, change)
  local group = change.undone and "CodeCompanionUndone" or "CodeCompanionCleared"
  local after = suffix(chat, change)
  local line = {
    { prefix(chat, change), "CodeCompanionTokens" },
    { M.edited(change.event).virtual[1][1], group },
    { after ~= "" and " · " .. after or "", "CodeCompanionHint" },
  }
  local lines, room = { line }, fit.narrowest(chat)
  if fit.width(line) > room then -- virtual lines do not wrap
    lines = vim.tbl_map(function(part)
      return { { part, group } }
    end, fit.wrap(line[1][1] .. line[2][1] .. line[3][1], room))
  end
  lines[#lines + 1] = { { "", group } }
  return lines
end

---Draw the virtual text line of an edit. Neovim draws the lines of several marks at one position newest first, so if
---one request caused several edits, the mark of the first edit has the lines of all of them.
---@param chat CodeCompanion.Chat
---@param change CodeCompanion.Change
local function draw_edit(chat, change)
  local at = change.mark and api.nvim_buf_get_extmark_by_id(chat.bufnr, marks.decor, change.mark, {}) or {}
  if not at[1] then
    return
  end
  local edits, lines = M.edits_below(chat, at[1]), {}
  for _, edit in ipairs(edits) do
    vim.list_extend(lines, edit_lines(chat, edit))
  end
  for index, edit in ipairs(edits) do
    local opts = { id = edit.mark, virt_lines = index == 1 and lines or nil }
    api.nvim_buf_set_extmark(chat.bufnr, marks.decor, at[1], at[2], opts)
  end
end

---Return the highlight group of a card that is not part of the next request, otherwise nil.
---@param change CodeCompanion.Change
---@return string?
local function dimmed(change)
  return change.undone and "CodeCompanionUndone" or change.superseded and "CodeCompanionSuperseded" or nil
end

---Return the policy tier of a compaction and its result (R-137), or nil if the policy has no tiers.
---@param event table
---@return string?
local function tier_line(event)
  if (event.tier or 0) == 0 or not event.counts then
    return nil
  end
  return ("Compacted %d → %s, %s tokens saved, tier %d"):format(
    event.counts[1],
    numbers.counted(event.counts[2], "message"),
    numbers.short(event.tokens_before - event.tokens_after),
    event.tier
  )
end

---Draw the card of a compaction with its keys and its tier, dimmed if it is not part of the request.
---@param chat CodeCompanion.Chat
---@param change CodeCompanion.Change
local function draw_card(chat, change)
  local first, last = marks.item_rows(chat, change.item)
  if not first then
    return
  end
  api.nvim_buf_clear_namespace(chat.bufnr, M.ns, first, last)
  -- when closed, the title line is drawn by its fold, which asks for the same text
  local before, after = prefix(chat, change), card_keys(chat, change)
  if before ~= "" then
    api.nvim_buf_set_extmark(chat.bufnr, M.ns, first, #summary.BAR, {
      virt_text = { { before, "CodeCompanionTokens" } },
      virt_text_pos = "inline",
      hl_mode = "combine",
    })
  end
  local line = api.nvim_buf_get_lines(chat.bufnr, first, first + 1, false)[1]
  local function beside(wording)
    local pos, chunks = fit.beside(before .. line, { { wording, "CodeCompanionHint" } }, fit.narrowest(chat))
    return { virt_text = chunks, virt_text_pos = pos, hl_mode = "combine" }
  end
  local keys_of_card = vim.iter(after):map(beside):find(function(opts)
    return opts.virt_text_pos == "right_align"
  end) or after[1] and beside(after[1]) -- on its own line all keys fit
  if keys_of_card then
    local column = keys_of_card.virt_text_pos == "inline" and #line or 0
    api.nvim_buf_set_extmark(chat.bufnr, M.ns, first, column, keys_of_card)
  end
  local tier = tier_line(change.event)
  if tier then
    local opts = { virt_lines = { { { "  " .. tier, "CodeCompanionHint" } } } }
    api.nvim_buf_set_extmark(chat.bufnr, M.ns, first, 0, opts)
  end
  if dimmed(change) then
    api.nvim_buf_set_extmark(chat.bufnr, M.ns, first, 0, {
      end_row = last,
      hl_group = dimmed(change),
      hl_eol = false,
      priority = 120,
      strict = false,
    })
  end
end

---Draw the line of a cleared chat.
---@param chat CodeCompanion.Chat
---@param change CodeCompanion.Change
local function draw_clear(chat, change)
  local first = marks.item_rows(chat, change.item)
  if not first then
    return
  end
  api.nvim_buf_clear_namespace(chat.bufnr, M.ns, first, first + 1)
  local after = suffix(chat, change)
  if after ~= "" then
    local opts = { virt_text = { { "· " .. after, "CodeCompanionHint" } }, virt_text_pos = "eol" }
    api.nvim_buf_set_extmark(chat.bufnr, M.ns, first, 0, opts)
  end
end

---Redraw a change.
---@param chat CodeCompanion.Chat
---@param change CodeCompanion.Change
function M.show(chat, change)
  if change.kind == "edited" then
    draw_edit(chat, change)
  elseif change.kind == "cleared" then
    draw_clear(chat, change)
  else
    draw_card(chat, change)
  end
end

---Redraw everything that depends on the width of the windows.
---@param chat CodeCompanion.Chat
function M.refit(chat)
  for _, change in pairs(chat.changes) do
    if change.kind ~= "cleared" then
      M.show(chat, change)
    end
  end
end

---Return the title of a closed card.
---@param chat CodeCompanion.Chat
---@param id? string
---@param title string
---@param width? integer Available cells
---@return { [1]: string, [2]: string }[]
function M.title(chat, id, title, width)
  local change = id and chat.changes[id]
  if not change then
    return { { title, "CodeCompanionCompacted" } }
  end
  local chunks = {
    { prefix(chat, change), "CodeCompanionTokens" },
    { title, dimmed(change) or "CodeCompanionCompacted" },
  }
  for _, wording in ipairs(width and card_keys(chat, change) or {}) do
    local gap = width - fit.width(chunks) - api.nvim_strwidth(wording)
    if gap >= 2 then
      chunks[3] = { (" "):rep(gap) .. wording, "CodeCompanionHint" }
      break
    end
  end
  return chunks
end

---Close the card of an undone change; restore the initial state of a card that is in effect again.
---@param chat CodeCompanion.Chat
---@param change CodeCompanion.Change
function M.refold(chat, change)
  for _, fold in pairs(chat.folds) do
    if fold.change == change.id then
      folds.set_closed(chat, fold, change.undone or change.folded == true)
    end
  end
end

---Mark cards that a newer card replaces: their summary is gone (R-333).
---@param chat CodeCompanion.Chat
function M.supersede(chat)
  for _, change in pairs(chat.changes) do
    if change.kind == "compacted" then
      local superseded = not change.undone and change.item ~= nil and gone.is_gone(chat, change.item)
      if (change.superseded == true) ~= superseded then
        change.superseded = superseded
        M.show(chat, change)
      end
    end
  end
end

---Register a drawn change.
---@param chat CodeCompanion.Chat
---@param block CodeCompanion.Block
function M.add(chat, block)
  local change = block.change
  if not change.id or change.id == "" then
    return
  end
  change.item, change.mark = block.item, block.virtual_id
  chat.changes[change.id] = change
  if change.kind == "edited" and change.mark then
    chat.edits[change.mark] = change
  end
  M.show(chat, change)
  M.supersede(chat)
end

---Register a new change as the newest one; undone changes can no longer be redone.
---@param chat CodeCompanion.Chat
---@param id? string
function M.made(chat, id)
  local before = { chat.next_undo, chat.next_redo }
  chat.next_undo, chat.next_redo, chat.undo_kind = id ~= "" and id or nil, nil, nil
  for _, known in pairs({ before[1] or false, before[2] or false, chat.next_undo or false }) do
    if known and chat.changes[known] then
      M.show(chat, chat.changes[known])
    end
  end
end

return M
