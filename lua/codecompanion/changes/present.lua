---Presents the edits of a buffer: their current changes, the hints for their keys, and the model's activity.

local api = vim.api
local draw = require("codecompanion.changes.draw_hunks")
local hunks = require("codecompanion.changes.hunks")
local keys = require("codecompanion.changes.decision_keys")
local proposals = require("codecompanion.changes.proposal")
local region = require("codecompanion.changes.region")

local uv = vim.uv or vim.loop

local M = {}

local FRAMES = { "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏" }
local FRAME_MS = 120

---@class CodeCompanion.EditProgress
---@field timer uv.uv_timer_t
---@field mark? integer Extmark that shows the progress

---Return the lines that result when the reply replaces the requested lines or is placed above or below them.
---@param asked string[]
---@param placement string
---@param lines string[]
---@return string[]
function M.made_of(asked, placement, lines)
  if placement == "after" then
    return vim.list_extend(vim.list_slice(asked), lines)
  elseif placement == "before" then
    return vim.list_extend(vim.list_slice(lines), asked)
  end
  return lines
end

---Return the hunks that an edit currently proposes or has received.
---@param edit CodeCompanion.StandingEdit
---@return CodeCompanion.PlacedHunk[]? placed nil if its lines were deleted
function M.placed(edit)
  if not edit.is_asking then
    return proposals.refresh(edit.proposal)
  end
  if not region.rows(edit.region) then
    return nil
  elseif #edit.arrived == 0 then
    return edit.proposal and proposals.refresh(edit.proposal) or {}
  end
  local so_far = M.made_of(edit.asked, edit.placement, edit.arrived)
  if edit.placement == "replace" then
    so_far = hunks.so_far(edit.asked, so_far)
  end
  local all = hunks.between({ lines = edit.base }, { lines = so_far })
  return hunks.place(edit.base, all, region.lines(edit.region))
end

---Return the hints below the first hunk, longest first.
---@param edit CodeCompanion.StandingEdit
---@param count integer
---@return string[]
local function hints(edit, count)
  local all = { { "accept_change", "accept" }, { "reject_change", "reject" } }
  local one = { { "skip_hunk", "skip hunk" }, { "next_hunk", "next" } }
  local more, total = edit.further_hints or {}, count > 1 and ("%d hunks · "):format(count) or ""
  local function said(list)
    return keys.hint(list, nil, edit.bufnr)
  end
  local long = vim.list_extend(vim.list_slice(all), count > 1 and one or {})
  local list = vim.list_slice(more, #more) -- the key that lists the others is the last to go
  local brief = said(vim.list_extend(vim.list_slice(all), list))
  return {
    total .. said(vim.list_extend(vim.list_slice(long), more)),
    total .. said(vim.list_extend(vim.list_slice(long), list)),
    total .. brief,
    brief,
    said(all),
  }
end

---@class CodeCompanion.PresentedEdit
---@field edit CodeCompanion.StandingEdit
---@field first integer 0-based first row of its region
---@field hunks CodeCompanion.PlacedHunk[]

---Set `b:codecompanion_edit` for status lines and other plugins. It covers all edits of a buffer; `label` and `chat`
---come from a running edit if there is one, otherwise from the newest edit.
---@param bufnr integer
---@param shown CodeCompanion.PresentedEdit[] In the order they began
local function publish(bufnr, shown)
  local told, changes
  for _, one in ipairs(shown) do
    changes = (changes or 0) + #one.hunks
    told = (one.edit.is_asking or not (told and told.is_asking)) and one.edit or told
  end
  local edit = told
  vim.b[bufnr].codecompanion_edit = edit
      and {
        state = edit.is_asking and "asking" or "proposed",
        label = edit.label,
        changes = changes,
        chat = edit.conversation and edit.conversation.id,
      }
    or nil
end

---Draw the edits of a buffer; replaces the previous drawing.
---@param bufnr integer
---@param shown CodeCompanion.PresentedEdit[]
function M.draw(bufnr, shown)
  publish(bufnr, shown)
  draw.draw(
    bufnr,
    vim.tbl_map(function(one)
      return { first = one.first, hunks = one.hunks, hint = one.edit.is_asking and {} or hints(one.edit, #one.hunks) }
    end, shown)
  )
end

---Reveal the proposal: open the folds that hide it, and scroll to new lines below the window.
---@param edit CodeCompanion.StandingEdit
function M.reveal(edit)
  local first = region.rows(edit.region)
  if not first or not edit.proposal then
    return
  end
  draw.unfold(edit.bufnr, { first = first, hunks = edit.proposal.placed, hint = {} })
  if api.nvim_get_current_buf() == edit.bufnr then
    local row = api.nvim_win_get_cursor(0)[1] - 1
    local one = proposals.at(edit.proposal, row, row)[1] or edit.proposal.placed[1]
    if one then
      draw.reveal(first + one.first, math.max(0, first + one.first + one.count - 1))
    end
  end
end

---@param edit CodeCompanion.StandingEdit
local function show_progress(edit)
  local first = region.rows(edit.region)
  if first then
    local frame = FRAMES[math.floor(uv.now() / FRAME_MS) % #FRAMES + 1]
    local label = edit.label ~= "" and edit.label or "waiting for the model"
    local stop = edit.stop_key and (" · %s stops"):format(edit.stop_key) or ""
    local text = ("%s %s%s"):format(frame, label, stop)
    edit.progress.mark = draw.progress(edit.bufnr, first, text, edit.progress.mark)
  end
end

---Show that a request to the model is running, until it ends.
---@param edit CodeCompanion.StandingEdit
function M.begin_progress(edit)
  M.end_progress(edit)
  local progress = { timer = uv.new_timer() }
  edit.progress = progress
  show_progress(edit)
  progress.timer:start(
    FRAME_MS,
    FRAME_MS,
    vim.schedule_wrap(function()
      if edit.progress == progress then
        show_progress(edit)
      end
    end)
  )
end

---@param edit CodeCompanion.StandingEdit
function M.end_progress(edit)
  local progress = edit.progress
  if progress then
    edit.progress = nil
    progress.timer:stop()
    progress.timer:close()
    draw.end_progress(edit.bufnr, progress.mark)
  end
end

---Remove the marks of all edits from a buffer.
---@param bufnr integer
function M.clear(bufnr)
  if api.nvim_buf_is_loaded(bufnr) then
    vim.b[bufnr].codecompanion_edit = nil
    draw.clear(bufnr)
  end
end

return M
