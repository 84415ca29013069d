---What stands as proposed, and what becomes of it: accepted into the buffer or left out, whole or change by change.
---
---Nothing here is a copy of the buffer: what is proposed is worked out from three texts, those of `hunks.lua`,
---after every change of the user's. An undo of what was accepted brings its proposal back, a redo accepts it again.

local api = vim.api
local hunks = require("codecompanion.edit_in_place.hunks")
local region = require("codecompanion.edit_in_place.region")

local M = {}

---@class CodeCompanion.Proposal
---@field region CodeCompanion.EditRegion
---@field base string[] What the region was when it was asked about, with what has been accepted since
---@field theirs string[] What it would be
---@field steps CodeCompanion.AcceptedStep[] What was accepted, oldest first; those after an undone one are undone, too
---@field seen? integer The undo state that `base` is true to
---@field placed CodeCompanion.PlacedHunk[] As they were drawn last

---@class CodeCompanion.AcceptedStep
---@field base_before string[]
---@field base_after string[]
---@field state_before integer Numbers of changes in the undo tree
---@field state_after integer
---@field rows_before { [1]: integer, [2]: integer } Of the region, in exactly these states
---@field rows_after { [1]: integer, [2]: integer }
---@field is_undone boolean

---@param place CodeCompanion.EditRegion
---@param base string[]
---@param theirs string[]
---@param older? CodeCompanion.Proposal What was proposed for these lines before
---@return CodeCompanion.Proposal
function M.new(place, base, theirs, older)
  local steps = older and older.steps or {}
  if #steps > 0 and not steps[#steps].is_undone then
    steps[#steps].base_after = base
  end
  return { region = place, base = base, theirs = theirs, steps = steps, placed = {} }
end

---@param bufnr integer
---@return integer
local function undo_state(bufnr)
  return api.nvim_buf_call(bufnr, vim.fn.changenr)
end

---End a step of undo: what comes next is another one.
---@param bufnr integer
local function break_undo(bufnr)
  vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels
end

---What `changes_of` has found last: for many edits of one buffer the undo tree, which may be large, is read once.
---@type { bufnr: integer, state: integer, changes: table<integer, "made"|"undone"> }?
local known

---Which changes the text has in it, and which it had and has not.
---@param bufnr integer
---@param now integer Its undo state
---@return table<integer, "made"|"undone"> by_number Without those that cannot be undone any more
local function changes_of(bufnr, now)
  if known and known.bufnr == bufnr and known.state == now then
    return known.changes
  end
  local tree = api.nvim_buf_call(bufnr, vim.fn.undotree)
  local found, state = {}, tree.seq_cur > 0 and "made" or "undone"
  local function undone(entries)
    for _, entry in ipairs(entries or {}) do
      found[entry.seq] = "undone"
      undone(entry.alt)
    end
  end
  for _, entry in ipairs(tree.entries) do -- from the oldest one to the current one, and what can be redone
    found[entry.seq] = state
    undone(entry.alt)
    state = entry.seq == tree.seq_cur and "undone" or state
  end
  known = { bufnr = bufnr, state = now, changes = found }
  return found
end

---Take in what was undone and redone.
---@param proposal CodeCompanion.Proposal
local function follow_undo(proposal)
  local bufnr = proposal.region.bufnr
  local now = undo_state(bufnr)
  if #proposal.steps == 0 or now == proposal.seen then
    return
  end
  proposal.seen = now
  local changes, rows = changes_of(bufnr, now), nil
  proposal.base = proposal.steps[1].base_before
  local is_undone = false
  for _, step in ipairs(proposal.steps) do
    local state = changes[step.state_after]
    is_undone = is_undone or state == "undone" or (state == nil and step.is_undone)
    step.is_undone = is_undone
    proposal.base = is_undone and proposal.base or step.base_after
    rows = now == step.state_before and step.rows_before or now == step.state_after and step.rows_after or rows
  end
  if rows then
    region.set(proposal.region, rows[1], rows[2])
  end
end

---Whether an undo has taken back what was accepted last.
---@param proposal CodeCompanion.Proposal
---@return boolean
function M.is_undone(proposal)
  follow_undo(proposal)
  return #proposal.steps > 0 and proposal.steps[#proposal.steps].is_undone
end

---Whether the text has something of it.
---@param proposal CodeCompanion.Proposal
---@return boolean
function M.has_accepted(proposal)
  follow_undo(proposal)
  return #proposal.steps > 0 and not proposal.steps[1].is_undone
end

---Work out what is proposed now.
---@param proposal CodeCompanion.Proposal
---@return CodeCompanion.PlacedHunk[]? placed nil when the lines are gone
function M.refresh(proposal)
  if not region.rows(proposal.region) then
    return nil
  end
  follow_undo(proposal)
  proposal.placed = hunks.place(proposal.base, proposal.theirs, region.lines(proposal.region))
  return proposal.placed
end

---The lines as they would be with all that does not meet a change of the user's.
---@param proposal CodeCompanion.Proposal
---@return string[]
function M.result(proposal)
  return hunks.apply(
    region.lines(proposal.region),
    vim.tbl_filter(function(one)
      return not one.is_conflict
    end, proposal.placed)
  )
end

---@type fun()?
local to_do

---What `quietly` runs.
function M.run_quietly()
  local change = to_do
  to_do = nil
  if change then
    change()
  end
end

---Change a buffer without Neovim's warning that it is read-only, which waits a second and in a narrow window for a key.
---@param change fun()
local function quietly(change)
  to_do = change
  local run = "require('codecompanion.edit_in_place.proposal').run_quietly()"
  vim.api.nvim_cmd({ cmd = "lua", args = { run }, mods = { silent = true } }, {})
end

---Put changes into the buffer, as one step for undo.
---@param proposal CodeCompanion.Proposal
---@param wanted CodeCompanion.PlacedHunk[] From top to bottom
function M.accept(proposal, wanted)
  local place = proposal.region
  local first, last = region.rows(place)
  if not first or #wanted == 0 then
    return
  end
  known = nil
  break_undo(place.bufnr)
  local step = { base_before = proposal.base, state_before = undo_state(place.bufnr), rows_before = { first, last } }
  proposal.base = hunks.apply(
    proposal.base,
    vim.tbl_map(function(one)
      return one.hunk
    end, wanted)
  )
  quietly(function()
    for index = #wanted, 1, -1 do
      local one = wanted[index]
      local from = first + one.first
      api.nvim_buf_set_lines(place.bufnr, from, from + one.count, false, one.lines)
      last = last + #one.lines - one.count
    end
  end)
  region.set(place, first, last)
  step.state_after, step.base_after, step.rows_after = undo_state(place.bufnr), proposal.base, { first, last }
  break_undo(place.bufnr)
  proposal.steps = vim.tbl_filter(function(other)
    return not other.is_undone
  end, proposal.steps)
  if step.state_after ~= step.state_before then -- else nothing is undone in this buffer
    step.is_undone = false
    table.insert(proposal.steps, step)
    proposal.seen = step.state_after
  end
end

---Leave a change out of what is proposed.
---@param proposal CodeCompanion.Proposal
---@param unwanted CodeCompanion.PlacedHunk
function M.reject(proposal, unwanted)
  local kept = {}
  for _, hunk in ipairs(hunks.between(proposal.base, proposal.theirs)) do
    if not (hunk.first == unwanted.hunk.first and hunk.count == unwanted.hunk.count) then
      kept[#kept + 1] = hunk
    end
  end
  proposal.theirs = hunks.apply(proposal.base, kept)
end

---The change at a row of the buffer, or the only one there is.
---@param proposal CodeCompanion.Proposal
---@param row integer 0-based
---@return CodeCompanion.PlacedHunk?
function M.at(proposal, row)
  local top = region.rows(proposal.region)
  if not top then
    return nil
  end
  for _, one in ipairs(proposal.placed) do
    local first = top + one.first
    local from, to = first, first + one.count - 1
    if one.count == 0 then
      from, to = first - 1, math.max(0, first - 1)
    end
    if row >= from and row <= to then
      return one
    end
  end
  return #proposal.placed == 1 and proposal.placed[1] or nil
end

---The rows that its changes stand at, from top to bottom; one that only adds is at the line above.
---@param proposal CodeCompanion.Proposal
---@return integer[] 0-based
function M.rows_of(proposal)
  local top = region.rows(proposal.region) or 0
  return vim.tbl_map(function(one)
    return math.max(0, top + one.first - (one.count == 0 and 1 or 0))
  end, proposal.placed)
end

return M
