---Implements the decision keys for the proposals of a buffer.

local api = vim.api
local choose = require("codecompanion.screen.choose")
local keys = require("codecompanion.changes.decision_keys")
local present = require("codecompanion.changes.present")
local proposals = require("codecompanion.changes.proposal")
local region = require("codecompanion.changes.region")
local say = require("codecompanion.say")
local of_buffer = require("codecompanion.changes.proposals_of_buffer")

---@type table<string, fun(edit: CodeCompanion.StandingEdit, rows?: { [1]: integer, [2]: integer })>
local M = {}

---@param count integer
---@param what string
---@return string
local function counted(count, what)
  return ("%d hunk%s %s"):format(count, count == 1 and "" or "s", what)
end

---Return whether there is anything to decide; otherwise notify the user.
---@param edit CodeCompanion.StandingEdit
---@return boolean
local function is_proposed(edit)
  if edit.is_asking then
    say.hint("The model is still answering · g? keys")
  elseif not vim.bo[edit.bufnr].modifiable then
    say.hint("This buffer cannot be changed (nomodifiable)")
  else
    proposals.refresh(edit.proposal)
    return true
  end
  return false
end

---@param placed CodeCompanion.PlacedHunk[]
---@return CodeCompanion.PlacedHunk[]
local function without_conflicts(placed)
  return vim.tbl_filter(function(one)
    return not one.is_conflict
  end, placed)
end

---Return the hunks a key applies to: the selected ones, or those on the cursor's line.
---@param edit CodeCompanion.StandingEdit
---@param rows? { [1]: integer, [2]: integer }
---@return CodeCompanion.PlacedHunk[]
local function chosen_hunks(edit, rows)
  if rows then
    return proposals.at(edit.proposal, rows[1], rows[2])
  end
  local row, placed = api.nvim_win_get_cursor(0)[1] - 1, edit.proposal.placed
  local found = proposals.at(edit.proposal, row, row)
  return #found == 0 and #placed == 1 and { placed[1] } or found
end

---@param edit CodeCompanion.StandingEdit
---@param count integer Number of accepted hunks
local function say_accepted(edit, count)
  local left, done = #(proposals.refresh(edit.proposal) or {}), counted(count, "accepted")
  if left > 0 then
    of_buffer.draw(edit)
    return say.hint(("%s · %d left"):format(done, left))
  end
  done = count == 1 and "Accepted" or done
  local text = { done .. " · u undoes it", done }
  if vim.bo[edit.bufnr].modified and vim.bo[edit.bufnr].buftype == "" then
    table.insert(text, 1, done .. " · u undoes it, :w saves it")
  end
  if vim.bo[edit.bufnr].readonly then
    text = { done .. " · the file is read-only · u undoes it", done .. " · read-only", "Accepted · read-only" }
  end
  of_buffer.decide(edit, text)
end

---Accept all hunks that do not overlap the user's changes; with selected rows, every hunk in them, even overlapping
---ones.
function M.accept_change(edit, rows)
  if not is_proposed(edit) then
    return
  end
  local wanted = rows and chosen_hunks(edit, rows) or without_conflicts(edit.proposal.placed)
  if #wanted == 0 then
    local how = keys.selecting(edit.bufnr)
    how = how and (" · %s accepts the new lines"):format(how) or ""
    return say.hint(rows and "No hunk in the selection" or "You changed these lines too" .. how)
  end
  of_buffer.without_moving(edit, function()
    proposals.accept(edit.proposal, wanted)
  end)
  say_accepted(edit, #wanted)
end

---Reject the open hunks, or those in the selected rows; stop a reply that is still streaming.
function M.reject_change(edit, rows)
  if edit.is_asking then
    return edit.actions.stop()
  elseif rows then
    return M.skip_hunk(edit, rows)
  end
  proposals.refresh(edit.proposal)
  local is_part = proposals.has(edit.proposal, "accepted")
  proposals.reject(edit.proposal, edit.proposal.placed)
  local back = vim.bo[edit.bufnr].modifiable and " · u undoes it" or ""
  of_buffer.decide(edit, { (is_part and "Rejected the rest" or "Rejected") .. back, "Rejected" })
end

---Skip the hunk under the cursor, or the selected ones.
function M.skip_hunk(edit, rows)
  if not is_proposed(edit) then
    return
  end
  local unwanted = chosen_hunks(edit, rows)
  if #unwanted == 0 then
    local go = keys.hint({ { "next_hunk", "goes to the next one" } }, " · ")
    return say.hint(rows and "No hunk in the selection" or "No hunk on this line" .. go)
  end
  proposals.reject(edit.proposal, unwanted)
  if #(proposals.refresh(edit.proposal) or {}) == 0 then
    return of_buffer.decide(edit, { "All hunks decided · u undoes the last one", "All hunks decided" })
  end
  of_buffer.draw(edit)
  say.hint(counted(#unwanted, "skipped") .. " · u undoes it")
end

---Accept, and accept later edits without asking; a second prompt asks for which buffers.
function M.always_accept(edit)
  if not is_proposed(edit) then
    return
  end
  local name = vim.fn.fnamemodify(api.nvim_buf_get_name(edit.bufnr), ":t")
  local scopes = {
    {
      text = ("Accept this and later edits in place in %s"):format(name ~= "" and name or "this buffer"),
      bufnr = edit.bufnr,
    },
    { text = "Accept this and later edits in place in every buffer, until Neovim exits" },
  }
  choose.select(scopes, {
    prompt = "Accept without asking (u on an accepted edit asks again)",
    format_item = function(scope)
      return scope.text
    end,
  }, function(scope)
    if scope and of_buffer.is_alive(edit) then
      of_buffer.always_accept(scope.bufnr)
      edit.is_automatic = true
      M.accept_change(edit)
    end
  end)
end

---Return the rows of all proposed hunks in a buffer, from top to bottom.
---@param bufnr integer
---@return integer[] 0-based
local function rows_of(bufnr)
  local found = {}
  for _, edit in ipairs(of_buffer.live(bufnr)) do
    if not edit.is_asking and proposals.refresh(edit.proposal) then
      vim.list_extend(found, proposals.rows(edit.proposal))
    end
  end
  return found
end

---@param edit CodeCompanion.StandingEdit
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
      local there = of_buffer.chosen(edit.bufnr)
      if there then
        present.reveal(there)
      end
      return say.hint(("hunk %d of %d"):format(at, #rows))
    end
  end
  if #rows > 0 then
    say.hint(step == 1 and "No hunk below" or "No hunk above")
  end
end

function M.next_hunk(edit)
  go(edit, 1)
end

function M.previous_hunk(edit)
  go(edit, -1)
end

---Show the diff in its own view. Decisions made there apply here, unless the proposal or the text has changed
---since.
function M.view_diff(edit)
  if not is_proposed(edit) then
    return
  end
  local first, last = region.rows(edit.region)
  local now = api.nvim_buf_get_lines(edit.bufnr, 0, -1, false)
  local proposed = vim.list_slice(now, 1, first)
  vim.list_extend(proposed, proposals.result(edit.proposal))
  vim.list_extend(proposed, now, last + 1)
  local seen, tick = edit.proposal.now, api.nvim_buf_get_changedtick(edit.bufnr)
  local view
  local function deciding(decide)
    return function()
      local is_same = of_buffer.is_alive(edit) and not edit.is_asking and edit.proposal.now == seen
      if not is_same or api.nvim_buf_get_changedtick(edit.bufnr) ~= tick then
        return view:over("The proposal or the text has changed; nothing was applied")
      end
      view:close()
      decide(edit)
    end
  end
  view = require("codecompanion.changes.change_view").open({
    title = "Edit in place",
    path = api.nvim_buf_get_name(edit.bufnr),
    filetype = vim.bo[edit.bufnr].filetype,
    before = { lines = now },
    after = { lines = proposed },
    actions = { accept_change = deciding(M.accept_change), reject_change = deciding(M.reject_change) },
  })
end

return M
