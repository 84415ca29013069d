---What the keys of a proposal do. Their names are those of `interactions.inline.keymaps`.

local api = vim.api
local asking = require("codecompanion.edit_in_place.asking")
local edits = require("codecompanion.edit_in_place.edits")
local keys = require("codecompanion.edit_in_place.keys")
local present = require("codecompanion.edit_in_place.present")
local proposals = require("codecompanion.edit_in_place.proposal")
local region = require("codecompanion.edit_in_place.region")
local say = require("codecompanion.say")

local M = {}

---@param count integer
---@param what string
---@return string
local function counted(count, what)
  return ("%d change%s %s"):format(count, count == 1 and "" or "s", what)
end

---Whether there is something to decide about; if not, the user is told.
---@param edit CodeCompanion.EditInPlace
---@return boolean
local function is_proposed(edit)
  if edit.is_asking then
    say.hint("The model is still answering" .. keys.hint({ { "stop", "stops it" } }, " · "))
  elseif not vim.bo[edit.bufnr].modifiable then
    say.hint("This buffer cannot be changed (nomodifiable)")
  else
    proposals.refresh(edit.proposal)
    return true
  end
  return false
end

---@param edit CodeCompanion.EditInPlace
function M.accept_change(edit)
  if not is_proposed(edit) then
    return
  end
  local proposal = edit.proposal --[[@as CodeCompanion.Proposal]]
  local clear = vim.tbl_filter(function(one)
    return not one.is_conflict
  end, proposal.placed)
  local left = #proposal.placed - #clear
  if #clear == 0 and left > 0 then
    local choice = keys.hint({ { "accept_hunk", "takes the new ones" } }, " · ")
    return say.hint("You have changed these lines, too" .. choice)
  end
  edits.without_moving(edit, function()
    proposals.accept(proposal, clear)
  end)
  if left == 0 then
    local done, is_locked = counted(#clear, "accepted"), vim.bo[edit.bufnr].readonly
    local text = { done .. " · u undoes it", done }
    if is_locked then
      text = { done .. " · the file is read-only · u undoes it", done .. " · read-only", "Accepted · read-only" }
    end
    return edits.decide(edit, text)
  end
  edits.draw(edit)
  say.hint(("%s, %d left that meet yours"):format(counted(#clear, "accepted"), left))
end

---@param edit CodeCompanion.EditInPlace
function M.reject_change(edit)
  if edit.is_asking then
    return asking.stop(edit)
  end
  local is_part = edit.proposal and proposals.has_accepted(edit.proposal)
  edits.finish(edit, is_part and "Rejected; what you accepted stays." or "Rejected; the buffer is as it was.")
end

---@param edit CodeCompanion.EditInPlace
function M.stop(edit)
  if edit.is_asking then
    asking.stop(edit)
  else
    say.hint("The reply is complete" .. keys.hint({ { "reject_change", "rejects it" } }, " · "))
  end
end

---@param edit CodeCompanion.EditInPlace
---@return CodeCompanion.PlacedHunk?
local function under_cursor(edit)
  if not is_proposed(edit) then
    return nil
  end
  local one = proposals.at(edit.proposal, api.nvim_win_get_cursor(0)[1] - 1)
  if not one then
    say.hint("No change on this line" .. keys.hint({ { "next_hunk", "goes to the next one" } }, " · "))
  end
  return one
end

---@param edit CodeCompanion.EditInPlace
function M.accept_hunk(edit)
  local one = under_cursor(edit)
  if one then
    edits.without_moving(edit, function()
      proposals.accept(edit.proposal, { one })
    end)
    edits.draw(edit)
  end
end

---@param edit CodeCompanion.EditInPlace
function M.reject_hunk(edit)
  local one = under_cursor(edit)
  if one then
    proposals.reject(edit.proposal, one)
    edits.draw(edit)
  end
end

---The rows of all changes that are proposed in a buffer, from top to bottom.
---@param bufnr integer
---@return integer[] 0-based
local function rows_of(bufnr)
  local found = {}
  for _, edit in ipairs(edits.live(bufnr)) do
    if not edit.is_asking and proposals.refresh(edit.proposal) then
      vim.list_extend(found, proposals.rows_of(edit.proposal))
    end
  end
  return found
end

---@param edit CodeCompanion.EditInPlace
---@param step 1|-1
local function go(edit, step)
  if vim.wo.diff then
    return vim.cmd.normal({ step == 1 and "]c" or "[c", bang = true })
  end
  local rows, here = rows_of(edit.bufnr), api.nvim_win_get_cursor(0)[1] - 1
  for at = step == 1 and 1 or #rows, step == 1 and #rows or 1, step do
    if (rows[at] - here) * step > 0 then
      vim.cmd.normal({ "m'", bang = true })
      api.nvim_win_set_cursor(0, { math.min(rows[at] + 1, api.nvim_buf_line_count(0)), 0 })
      vim.cmd.normal({ "zv", bang = true })
      local there = edits.chosen(edit.bufnr)
      if there then
        present.reveal(there)
      end
      return say.hint(("change %d of %d"):format(at, #rows))
    end
  end
  if #rows > 0 then
    say.hint(step == 1 and "No change below" or "No change above")
  end
end

---@param edit CodeCompanion.EditInPlace
function M.next_hunk(edit)
  go(edit, 1)
end

---@param edit CodeCompanion.EditInPlace
function M.previous_hunk(edit)
  go(edit, -1)
end

---@param edit CodeCompanion.EditInPlace
---@param prompt string
---@param default string
---@param lines fun(): string[]
local function ask(edit, prompt, default, lines)
  if edit.is_asking then
    return say.hint("The model is still answering" .. keys.hint({ { "stop", "stops it" } }, " · "))
  end
  vim.ui.input({ prompt = prompt, default = default }, function(instruction)
    if instruction and instruction:find("%S") and edits.is_alive(edit) and not edit.is_asking then
      asking.ask(edit, instruction, lines(), true)
    end
  end)
end

---@param edit CodeCompanion.EditInPlace
function M.retry(edit)
  ask(edit, "Instead: ", edit.instruction, function()
    return region.lines(edit.region)
  end)
end

---@param edit CodeCompanion.EditInPlace
function M.follow_up(edit)
  ask(edit, "Change the proposal: ", "", function()
    return proposals.result(edit.proposal)
  end)
end

---@param edit CodeCompanion.EditInPlace
function M.open_chat(edit)
  if edit.is_asking then
    return say.hint("The model is still answering" .. keys.hint({ { "stop", "stops it" } }, " · "))
  end
  asking.show_chat(edit)
end

---@param edit CodeCompanion.EditInPlace
function M.show_diff(edit)
  if is_proposed(edit) then
    local first, last = region.rows(edit.region)
    local now = api.nvim_buf_get_lines(edit.bufnr, 0, -1, false)
    local proposed = vim.list_slice(now, 1, first)
    vim.list_extend(proposed, proposals.result(edit.proposal))
    vim.list_extend(proposed, now, last + 1)
    local sides = { { name = "now", lines = now }, { name = "proposal", lines = proposed } }
    require("codecompanion.screen.diff_tab").open(sides[1], sides[2], {
      path = api.nvim_buf_get_name(edit.bufnr),
      filetype = vim.bo[edit.bufnr].filetype,
      line = first + 1,
    })
  end
end

---The keys.
function M.options()
  local lines = keys.lines()
  require("codecompanion.screen.float").open({ title = "Edit in place", lines = lines, footer = { "q close" } })
end

return M
