---Keeps a proposal in a buffer, and the decision on each of its hunks: accepted into the text, rejected, or still open.
---
---No copy of the buffer is kept: the positions of the open hunks are computed from the base, the hunks and the current
---text after each user's change. Each decision is a step in the buffer's undo history, even a rejection: undo reopens
---its hunks, redo decides them again.

local api = vim.api
local hunks = require("codecompanion.changes.hunks")
local region = require("codecompanion.changes.region")
local undo_tree = require("codecompanion.changes.undo_tree")

local M = {}

---@alias CodeCompanion.Decision "accepted"|"rejected"

---@class CodeCompanion.Decided
---@field base string[] Lines of the region that the hunks apply to
---@field hunks CodeCompanion.Hunk[] All hunks, decided or not
---@field decided table<integer, CodeCompanion.Decision> By index of the hunk; hunks without an entry are open

---@class CodeCompanion.Proposal
---@field region CodeCompanion.Region
---@field now CodeCompanion.Decided
---@field steps CodeCompanion.DecisionStep[] Oldest first; steps after an undone step are also undone
---@field seen? integer Undo state that `now` corresponds to
---@field placed CodeCompanion.PlacedHunk[] The open hunks as last drawn

---@class CodeCompanion.DecisionStep
---@field before CodeCompanion.Decided
---@field after CodeCompanion.Decided
---@field state_before integer Change number in the undo tree
---@field state_after integer
---@field rows_before { [1]: integer, [2]: integer } Rows of the region in exactly this state
---@field rows_after { [1]: integer, [2]: integer }
---@field saves? integer Number of times the file had been written, if the text did not change and was not 'modified'
---@field format? table<string, any> File format that is written with it: line endings, encoding
---@field is_undone boolean

---Return the base with the accepted hunks applied.
---@param at CodeCompanion.Decided
---@return string[]
local function with_accepted(at)
  local accepted = {}
  for index, hunk in ipairs(at.hunks) do
    accepted[#accepted + 1] = at.decided[index] == "accepted" and hunk or nil
  end
  return hunks.apply({ lines = at.base }, accepted).lines
end

---@param base string[]
---@param theirs string[]
---@return CodeCompanion.Decided
local function undecided(base, theirs)
  return { base = base, hunks = hunks.between({ lines = base }, { lines = theirs }), decided = {} }
end

---@param place CodeCompanion.Region
---@param base string[]
---@param theirs string[]
---@param older? CodeCompanion.Proposal The proposal for these lines that this one replaces: undoing its accepted hunks
---reopens this proposal for the earlier text
---@return CodeCompanion.Proposal
function M.new(place, base, theirs, older)
  local proposal = { region = place, now = undecided(base, theirs), steps = {}, placed = {} }
  for _, step in ipairs(older and older.steps or {}) do
    proposal.steps[#proposal.steps + 1] = vim.tbl_extend("force", step, {
      before = undecided(with_accepted(step.before), theirs),
      after = undecided(with_accepted(step.after), theirs),
    })
  end
  local last = proposal.steps[#proposal.steps]
  if last and not last.is_undone then
    last.after = proposal.now
  end
  proposal.seen = older and older.seen
  return proposal
end

---Return the options that are written with a buffer's text and count as a change to it.
---@param bufnr integer
---@return table<string, any>
local function format_of(bufnr)
  local bo = vim.bo[bufnr]
  return { bo.fileformat, bo.fileencoding, bo.bomb, bo.endofline, bo.binary }
end

---Update the decisions after an undo or redo.
---@param proposal CodeCompanion.Proposal
local function follow_undo(proposal)
  local bufnr = proposal.region.bufnr
  local now = undo_tree.state(bufnr)
  if #proposal.steps == 0 or now == proposal.seen then
    return
  end
  proposal.seen = now
  local changes, rows = undo_tree.changes(bufnr), nil
  proposal.now = proposal.steps[1].before
  local is_undone = false
  for _, step in ipairs(proposal.steps) do
    local state = changes[step.state_after]
    is_undone = is_undone or state == "undone" or (state == nil and step.is_undone)
    step.is_undone = is_undone
    proposal.now = is_undone and proposal.now or step.after
    rows = now == step.state_before and step.rows_before or now == step.state_after and step.rows_after or rows
    local is_there = now == step.state_before or now == step.state_after
    if is_there and step.saves == undo_tree.saves(bufnr) and vim.deep_equal(step.format, format_of(bufnr)) then
      vim.bo[bufnr].modified = false -- a rejection is an undo step, but the text equals the file
    end
  end
  if rows then
    region.set(proposal.region, rows[1], rows[2])
  end
end

---Return whether the last decision was undone.
---@param proposal CodeCompanion.Proposal
---@return boolean
function M.is_undone(proposal)
  follow_undo(proposal)
  return #proposal.steps > 0 and proposal.steps[#proposal.steps].is_undone
end

---Return whether a decision of this kind is in effect.
---@param proposal CodeCompanion.Proposal
---@param decision CodeCompanion.Decision
---@return boolean
function M.has(proposal, decision)
  follow_undo(proposal)
  return vim.list_contains(vim.tbl_values(proposal.now.decided), decision)
end

---Return the open hunks, relative to the base with the accepted hunks.
---@param at CodeCompanion.Decided
---@return CodeCompanion.Hunk[] open
---@return integer[] indices
local function open_hunks(at)
  local open, indices, offset = {}, {}, 0
  for index, hunk in ipairs(at.hunks) do
    if at.decided[index] == "accepted" then
      offset = offset + #hunk.lines - hunk.count
    elseif not at.decided[index] then
      open[#open + 1] = vim.tbl_extend("force", hunk, { first = hunk.first + offset })
      indices[#indices + 1] = index
    end
  end
  return open, indices
end

---Compute the current positions of the open hunks.
---@param proposal CodeCompanion.Proposal
---@return CodeCompanion.PlacedHunk[]? placed nil if the lines were deleted
function M.refresh(proposal)
  if not region.rows(proposal.region) then
    return nil
  end
  follow_undo(proposal)
  local open, indices = open_hunks(proposal.now)
  proposal.placed = hunks.place(with_accepted(proposal.now), open, region.lines(proposal.region))
  for _, one in ipairs(proposal.placed) do
    one.indices = vim.tbl_map(function(index)
      return indices[index]
    end, one.indices)
  end
  return proposal.placed
end

---Return the lines with every open hunk applied, except hunks that overlap a user's change.
---@param proposal CodeCompanion.Proposal
---@return string[]
function M.result(proposal)
  local clear = vim.tbl_filter(function(one)
    return not one.is_conflict
  end, proposal.placed)
  return hunks.apply({ lines = region.lines(proposal.region) }, clear).lines
end

---@type fun()?
local to_do

---Run the pending change of `quietly`.
function M.run_quietly()
  local change = to_do
  to_do = nil
  if change then
    change()
  end
end

---Change a buffer without Neovim's read-only warning, which waits a second or, in a narrow window, for a key.
---@param change fun()
local function quietly(change)
  to_do = change
  local run = "require('codecompanion.changes.proposal').run_quietly()"
  api.nvim_cmd({ cmd = "lua", args = { run }, mods = { silent = true } }, {})
end

---Record a decision on hunks as one undo step.
---@param proposal CodeCompanion.Proposal
---@param about CodeCompanion.PlacedHunk[]
---@param decision CodeCompanion.Decision
---@param first integer First row of the region
---@param last integer
---@param change fun(): integer Changes the text; returns the new row after the region
---@return CodeCompanion.DecisionStep?
local function decide(proposal, about, decision, first, last, change)
  local place = proposal.region
  local decided = vim.deepcopy(proposal.now.decided)
  for _, one in ipairs(about) do
    for _, index in ipairs(one.indices) do
      decided[index] = decision
    end
  end
  undo_tree.forget()
  undo_tree.close_block(place.bufnr)
  local step = { before = proposal.now, state_before = undo_tree.state(place.bufnr), rows_before = { first, last } }
  quietly(function()
    last = change()
  end)
  region.set(place, first, last)
  proposal.now = { base = proposal.now.base, hunks = proposal.now.hunks, decided = decided }
  step.state_after, step.after, step.rows_after = undo_tree.state(place.bufnr), proposal.now, { first, last }
  undo_tree.close_block(place.bufnr)
  proposal.steps = vim.tbl_filter(function(other)
    return not other.is_undone
  end, proposal.steps)
  if step.state_after == step.state_before then
    return nil -- undo is off in this buffer
  end
  step.is_undone = false
  table.insert(proposal.steps, step)
  proposal.seen = step.state_after
  return step
end

---Apply hunks to the buffer as one undo step.
---@param proposal CodeCompanion.Proposal
---@param wanted CodeCompanion.PlacedHunk[] From top to bottom
function M.accept(proposal, wanted)
  local bufnr = proposal.region.bufnr
  local first, last = region.rows(proposal.region)
  if not first or not last or #wanted == 0 then
    return
  end
  decide(proposal, wanted, "accepted", first, last, function()
    local after = last
    for index = #wanted, 1, -1 do
      local one = wanted[index]
      local from = first + one.first
      api.nvim_buf_set_lines(bufnr, from, from + one.count, false, one.lines)
      after = after + #one.lines - one.count
    end
    return after
  end)
end

---Reject hunks. The text and 'modified' stay unchanged; the undo step that reopens the hunks is an empty change.
---@param proposal CodeCompanion.Proposal
---@param unwanted CodeCompanion.PlacedHunk[]
function M.reject(proposal, unwanted)
  local bufnr = proposal.region.bufnr
  local first, last = region.rows(proposal.region)
  if not first or not last or #unwanted == 0 then
    return
  end
  local was_modified = vim.bo[bufnr].modified
  local step = decide(proposal, unwanted, "rejected", first, last, function()
    local row = math.min(first + unwanted[1].first, api.nvim_buf_line_count(bufnr) - 1)
    local is_empty = api.nvim_buf_call(bufnr, function()
      return vim.fn.line2byte(1) == -1
    end)
    if not is_empty then -- empty text would gain a line
      pcall(api.nvim_buf_set_text, bufnr, row, 0, row, 0, { "" })
    end
    return last
  end)
  if step and not was_modified then
    vim.bo[bufnr].modified = false
    step.saves, step.format = undo_tree.saves(bufnr), format_of(bufnr)
  end
end

---Reopen the rejected hunks; text typed since is kept.
---@param proposal CodeCompanion.Proposal
function M.reopen(proposal)
  follow_undo(proposal)
  local function without_rejections(at)
    local decided = {}
    for index, decision in pairs(at.decided) do
      decided[index] = decision == "accepted" and decision or nil
    end
    return { base = at.base, hunks = at.hunks, decided = decided }
  end
  proposal.now = without_rejections(proposal.now)
  for _, step in ipairs(proposal.steps) do
    step.before, step.after = without_rejections(step.before), without_rejections(step.after)
  end
end

---Return the rows of a hunk; for a pure insertion, the row of the line above it.
---@param top integer
---@param one CodeCompanion.PlacedHunk
---@return integer first
---@return integer last
local function rows_of_hunk(top, one)
  local first = top + one.first
  if one.count == 0 then
    return math.max(0, first - 1), math.max(0, first - 1)
  end
  return first, first + one.count - 1
end

---Return the open hunks in a range of buffer rows.
---@param proposal CodeCompanion.Proposal
---@param from integer 0-based row
---@param to integer Row of the last line
---@return CodeCompanion.PlacedHunk[]
function M.at(proposal, from, to)
  local top = region.rows(proposal.region)
  if not top then
    return {}
  end
  return vim.tbl_filter(function(one)
    local first, last = rows_of_hunk(top, one)
    return first <= to and from <= last
  end, proposal.placed)
end

---Return the first rows of the open hunks, from top to bottom.
---@param proposal CodeCompanion.Proposal
---@return integer[] 0-based
function M.rows(proposal)
  local top = region.rows(proposal.region) or 0
  return vim.tbl_map(function(one)
    return (rows_of_hunk(top, one))
  end, proposal.placed)
end

return M
