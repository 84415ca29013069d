---What stands as proposed, and what becomes of it: accepted into the buffer or left out, whole or change by change.
---
---Nothing here is a copy of the buffer: what is proposed is worked out from three texts, those of `hunks.lua`,
---after every change of the user's. An undo of what was accepted brings the proposal of it back.

local api = vim.api
local hunks = require("codecompanion.edit_in_place.hunks")
local region = require("codecompanion.edit_in_place.region")

local M = {}

---@class CodeCompanion.Proposal
---@field region CodeCompanion.EditRegion
---@field base string[] What the region was when it was asked about, with what has been accepted since
---@field theirs string[] What it would be
---@field past { seq: integer, base: string[] }[] Bases before something was accepted, and the undo state then
---@field placed CodeCompanion.PlacedHunk[] As they were drawn last

---@param place CodeCompanion.EditRegion
---@param base string[]
---@param theirs string[]
---@return CodeCompanion.Proposal
function M.new(place, base, theirs)
  return { region = place, base = base, theirs = theirs, past = {}, placed = {} }
end

---@param bufnr integer
---@return integer
local function undo_state(bufnr)
  return api.nvim_buf_call(bufnr, vim.fn.undotree).seq_cur
end

---Work out what is proposed now.
---@param proposal CodeCompanion.Proposal
---@return CodeCompanion.PlacedHunk[]? placed nil when the lines are gone
function M.refresh(proposal)
  if not region.rows(proposal.region) then
    return nil
  end
  local now, past = undo_state(proposal.region.bufnr), proposal.past
  while #past > 0 and now <= past[#past].seq do
    proposal.base = table.remove(past).base
  end
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

---Put changes into the buffer, as one step for undo.
---@param proposal CodeCompanion.Proposal
---@param wanted CodeCompanion.PlacedHunk[] From top to bottom
function M.accept(proposal, wanted)
  local place = proposal.region
  local first, last = region.rows(place)
  if not first or #wanted == 0 then
    return
  end
  table.insert(proposal.past, { seq = undo_state(place.bufnr), base = proposal.base })
  proposal.base = hunks.apply(
    proposal.base,
    vim.tbl_map(function(one)
      return one.hunk
    end, wanted)
  )
  for index = #wanted, 1, -1 do
    local one = wanted[index]
    local from = first + one.first
    api.nvim_buf_set_lines(place.bufnr, from, from + one.count, false, one.lines)
    last = last + #one.lines - one.count
  end
  region.set(place, first, last)
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

---The row to go to for the next (1) or previous (-1) change, and which one it is.
---@param proposal CodeCompanion.Proposal
---@param row integer 0-based
---@param step 1|-1
---@return integer? row
---@return integer? index
function M.next_row(proposal, row, step)
  local top = region.rows(proposal.region)
  local count = #proposal.placed
  if not top or count == 0 then
    return nil
  end
  for at = step == 1 and 1 or count, step == 1 and count or 1, step do
    local one = proposal.placed[at]
    local to = math.max(0, top + one.first - (one.count == 0 and 1 or 0))
    if (to - row) * step > 0 then
      return to, at
    end
  end
end

return M
