---Begins, ends, decides and reopens the proposals of each buffer: those that wait for a decision or for the rest of a
---reply, and decided ones, which undo reopens.

local api = vim.api
local draw = require("codecompanion.changes.draw_hunks")
local keys = require("codecompanion.changes.decision_keys")
local present = require("codecompanion.changes.present")
local proposals = require("codecompanion.changes.proposal")
local region = require("codecompanion.changes.region")
local say = require("codecompanion.say")
local watching = require("codecompanion.changes.redraw_proposals")

local M = {}

local REDRAW_MS = 40
---Minimum pause after a redraw, as a multiple of its duration, so that the editor stays responsive.
local REST = 4

---@class CodeCompanion.StandingEdit
---@field bufnr integer
---@field region CodeCompanion.Region
---@field actions table<string, fun(rows?: { [1]: integer, [2]: integer })> Actions of the edit's keys
---@field is_asking boolean A request is running
---@field is_decided boolean All hunks are decided: undo or `reopen` opens them again
---@field is_automatic? boolean It was accepted without asking
---@field proposal CodeCompanion.Proposal? The current proposal, even while the model works on another one
---@field on_end? fun() Called whenever it is decided or dropped
---@field further_keys? { mode: string, lhs: string, action: fun(), text: string }[]
---@field key_texts? table<string, string> Descriptions of the decision keys, as for `keys.set`
---@field further_hints? { [1]: string, [2]: string }[] Hints for the further keys, as for `keys.hint`
---@field stop_key? string
---@field base string[] Lines of the region when the request was sent
---@field asked string[] Lines that the reply replaces: those of the region, or those last proposed for it
---@field instruction string The newest instruction
---@field conversation? CodeCompanion.HeadlessChat Set for an edit in place
---@field label string What the model is doing
---@field arrived string[] Lines of the reply received so far
---@field placement string Where the lines of the reply are placed
---@field progress? CodeCompanion.EditProgress

---@class CodeCompanion.EditedBuffer
---@field edits CodeCompanion.StandingEdit[] In the order they began
---@field keys? CodeCompanion.SetKeys Mapped while an edit is live
---@field keys_of? CodeCompanion.StandingEdit The edit whose further keys are mapped
---@field is_due? boolean A redraw is scheduled
---@field cost? number Duration of the last redraw in milliseconds
---@field is_drawn? boolean

---@type table<integer, CodeCompanion.EditedBuffer>
local by_buffer = {}
---Edits whose text was replaced: the buffer was closed or reloaded.
---@type table<integer, CodeCompanion.EditedBuffer>
local gone = {}

---Buffers whose edits in place are accepted without asking; 0 means every buffer.
---@type table<integer, true>
local accepting = {}

---Accept later edits in place without asking.
---@param bufnr? integer Defaults to every buffer
function M.always_accept(bufnr)
  accepting[bufnr or 0] = true
end

---@param bufnr integer
---@return boolean
function M.accepts(bufnr)
  return accepting[bufnr] or accepting[0] or false
end

---Return the edits that are running or waiting for a decision, from top to bottom.
---@param bufnr integer
---@return CodeCompanion.StandingEdit[]
function M.live(bufnr)
  M.settle(bufnr)
  local found = vim.tbl_filter(function(edit)
    return not edit.is_decided
  end, by_buffer[bufnr] and by_buffer[bufnr].edits or {})
  table.sort(found, function(a, b)
    return (region.rows(a.region) or 0) < (region.rows(b.region) or 0)
  end)
  return found
end

---@param edit CodeCompanion.StandingEdit
---@return boolean
function M.is_alive(edit)
  local here = by_buffer[edit.bufnr]
  return here ~= nil and not edit.is_decided and vim.list_contains(here.edits, edit)
end

---Return the edit that overlaps these lines.
---@param bufnr integer
---@param first integer 0-based row
---@param last integer 0-based row after the last line
---@return CodeCompanion.StandingEdit?
function M.meeting(bufnr, first, last)
  for _, edit in ipairs(M.live(bufnr)) do
    local from, to = region.rows(edit.region)
    if
      from
      and from < math.max(last, first + 1)
      and first < math.max(to --[[@as integer]], from + 1)
    then
      return edit
    end
  end
end

---Return the edit a key in the current window applies to: the only one, or the one on the cursor's line.
---@param bufnr integer
---@return CodeCompanion.StandingEdit?
function M.chosen(bufnr)
  local live = M.live(bufnr)
  local row = api.nvim_win_get_cursor(0)[1] - 1
  return #live == 1 and live[1] or M.meeting(bufnr, row, row + 1)
end

local end_of

---@param bufnr integer
---@param here CodeCompanion.EditedBuffer
local function set_keys(bufnr, here)
  local live = M.live(bufnr)
  local with_more = vim.iter(live):find(function(edit)
    return edit.further_keys ~= nil
  end)
  local edit = with_more or live[1]
  if here.keys and here.keys_of == edit then
    return
  elseif here.keys then
    keys.restore(bufnr, here.keys)
  end
  here.keys, here.keys_of = keys.set(bufnr, edit.actions, edit.further_keys, edit.key_texts), edit
end

---Redraw the edits of a buffer now. An edit ends when nothing is left to decide; undo reopens it.
---@param bufnr integer
local function refresh(bufnr)
  local here = by_buffer[bufnr]
  if not here or not api.nvim_buf_is_loaded(bufnr) then
    return
  end
  local shown, ended, decided = {}, {}, {}
  for _, edit in ipairs(here.edits) do
    if edit.is_decided and proposals.is_undone(edit.proposal) then
      local first, last = region.rows(edit.region)
      edit.is_decided = not first or not last or M.meeting(bufnr, first, last) ~= nil
      if edit.is_automatic and not edit.is_decided then
        edit.is_automatic, accepting[bufnr], accepting[0] = nil, nil, nil
        say.hint("Edits in place ask again")
      end
    end
    local placed = not edit.is_decided and present.placed(edit) or nil
    if not edit.is_decided and not placed then
      ended[#ended + 1] = edit
    elseif placed and #placed == 0 and not edit.is_asking then
      decided[#decided + 1] = edit
    elseif placed then
      shown[#shown + 1] = { edit = edit, first = region.rows(edit.region), hunks = placed }
    end
  end
  for _, edit in ipairs(ended) do
    end_of(edit, false, "The lines of this edit are gone; nothing was changed.")
  end
  for _, edit in ipairs(decided) do
    end_of(edit, true)
  end
  if #shown > 0 and not here.keys then
    set_keys(bufnr, here)
  end
  if #shown > 0 or here.is_drawn then
    present.draw(bufnr, shown)
    here.is_drawn = #shown > 0
  end
end

---Schedule a redraw, debounced.
---@param bufnr integer
local function refresh_soon(bufnr)
  local here = by_buffer[bufnr]
  if here and not here.is_due then
    here.is_due = true
    vim.defer_fn(function()
      here.is_due = false
      local start = vim.uv.hrtime()
      refresh(bufnr)
      here.cost = (vim.uv.hrtime() - start) / 1e6
    end, math.max(REDRAW_MS, math.floor(REST * (here.cost or 0))))
  end
end

---@param edit CodeCompanion.StandingEdit
function M.draw(edit)
  refresh(edit.bufnr)
end

---@param edit CodeCompanion.StandingEdit
function M.draw_soon(edit)
  refresh_soon(edit.bufnr)
end

---Change the text and keep the cursor's line at its position on the screen.
---@param edit CodeCompanion.StandingEdit
---@param change fun()
function M.without_moving(edit, change)
  draw.without_moving(edit.bufnr, change)
end

---@param edit CodeCompanion.StandingEdit
function M.begin_progress(edit)
  edit.is_asking = true
  present.begin_progress(edit)
  refresh(edit.bufnr)
end

---@param edit CodeCompanion.StandingEdit
function M.end_progress(edit)
  edit.is_asking, edit.arrived = false, {}
  present.end_progress(edit)
end

---@param edit CodeCompanion.StandingEdit
---@param can_return boolean
---@param text? string|string[]
---@param level? CodeCompanion.Severity
function end_of(edit, can_return, text, level)
  local here = by_buffer[edit.bufnr]
  M.end_progress(edit)
  if can_return and edit.proposal then
    edit.is_decided = true
  else
    here.edits = vim.tbl_filter(function(other)
      return other ~= edit
    end, here.edits)
    region.clear(edit.region)
  end
  if #M.live(edit.bufnr) == 0 and here.keys then
    keys.restore(edit.bufnr, here.keys)
    here.keys = nil
  end
  if #here.edits == 0 then
    by_buffer[edit.bufnr] = nil
    present.clear(edit.bufnr)
  end
  if edit.on_end then
    edit.on_end()
  end
  if text then
    say.line(text, level)
  end
end

---End an edit: restore the buffer's keys and remove its marks.
---@param edit CodeCompanion.StandingEdit
---@param text? string|string[] Message to show
---@param level? CodeCompanion.Severity
function M.finish(edit, text, level)
  if M.is_alive(edit) then
    end_of(edit, false, text, level)
    refresh(edit.bufnr)
  end
end

---End an edit whose hunks are all decided: like `finish`, but undo reopens it.
---@param edit CodeCompanion.StandingEdit
---@param text? string|string[]
function M.decide(edit, text)
  if M.is_alive(edit) then
    end_of(edit, true, text)
    refresh(edit.bufnr)
  end
end

---End the edits of replaced content, before the buffer gets new edits.
---@param bufnr integer
function M.settle(bufnr)
  local here = gone[bufnr]
  gone[bufnr] = nil
  local what = api.nvim_buf_is_loaded(bufnr) and "reloaded" or "closed"
  for _, edit in ipairs(here and here == by_buffer[bufnr] and here.edits or {}) do
    local text = ("Buffer %s: the proposed edit was discarded."):format(what)
    end_of(edit, false, not edit.is_decided and text or nil)
  end
end

---Keep the drawing in sync with the buffer.
---@param bufnr integer
local function watch(bufnr)
  watching.lines(bufnr, {
    edits = function()
      return by_buffer[bufnr] and by_buffer[bufnr].edits
    end,
    changed = function()
      refresh_soon(bufnr)
    end,
    gone = function()
      gone[bufnr] = by_buffer[bufnr]
      vim.schedule(function()
        M.settle(bufnr)
      end)
    end,
  })
  watching.widths(function()
    for each in pairs(by_buffer) do
      refresh_soon(each)
    end
  end)
end

---@param edit CodeCompanion.StandingEdit
function M.add(edit)
  M.settle(edit.bufnr)
  local here = by_buffer[edit.bufnr]
  if not here then
    here = { edits = {} }
    by_buffer[edit.bufnr] = here
    watch(edit.bufnr)
  end
  table.insert(here.edits, edit)
  if not here.keys or edit.further_keys then
    set_keys(edit.bufnr, here)
  end
end

---Return the actions of a buffer's keys, which apply to its only edit or to the one on the cursor's line.
---@param bufnr integer
---@param actions table<string, fun(edit: CodeCompanion.StandingEdit, rows?: { [1]: integer, [2]: integer })>
---@return table<string, fun(rows?: { [1]: integer, [2]: integer })>
function M.bound(bufnr, actions)
  local found = {}
  for name, action in pairs(actions) do
    found[name] = function(rows)
      local of_any = name == "next_hunk" or name == "previous_hunk" or name == "options"
      local edit = M.chosen(bufnr) or of_any and M.live(bufnr)[1]
      if edit then
        return action(edit, rows)
      end
      local go = keys.hint({ { "next_hunk", "goes to the next hunk" } }, " · ")
      say.hint(("%d edits are proposed in this buffer, none on this line"):format(#M.live(bufnr)) .. go)
    end
  end
  return found
end

---Propose a replacement for some lines of a buffer.
---@param bufnr integer
---@param first integer 0-based row
---@param last integer 0-based row after the last line
---@param base string[] Lines that the proposal was made for; the current ones may differ
---@param theirs string[]
---@param actions table<string, fun(edit: CodeCompanion.StandingEdit, rows?: { [1]: integer, [2]: integer })>
---@return CodeCompanion.StandingEdit
function M.propose(bufnr, first, last, base, theirs, actions)
  require("codecompanion.changes.change_highlights").define()
  local place = region.set({ bufnr = bufnr }, first, last)
  local edit = { bufnr = bufnr, region = place, is_asking = false, is_decided = false, label = "", arrived = {} }
  edit.actions = M.bound(bufnr, actions)
  edit.proposal = proposals.new(place, base, theirs)
  M.add(edit)
  refresh(bufnr)
  return edit
end

---Return the buffer's newest edit that has a rejected hunk and whose lines have no other proposal now.
---@param bufnr integer
---@return CodeCompanion.StandingEdit?
local function rejected_in(bufnr)
  local edits = by_buffer[bufnr] and by_buffer[bufnr].edits or {}
  for at = #edits, 1, -1 do
    local edit = edits[at]
    local first, last = region.rows(edit.region)
    local is_free = first and last and (not edit.is_decided or not M.meeting(bufnr, first, last))
    if is_free and edit.proposal and proposals.has(edit.proposal, "rejected") then
      return edit
    end
  end
end

---@param bufnr integer
---@return boolean
function M.can_reopen(bufnr)
  return rejected_in(bufnr) ~= nil
end

---Reopen the last rejected hunks in a buffer. Text typed since is kept.
---@param bufnr integer
---@return boolean done
function M.reopen(bufnr)
  local edit = rejected_in(bufnr)
  if not edit then
    return false
  end
  proposals.reopen(edit.proposal)
  edit.is_decided = false
  refresh(bufnr)
  if M.is_alive(edit) then
    present.reveal(edit)
  end
  return true
end

return M
