---The edits that run or wait for an answer, one a buffer: what is known of each, how it is drawn, how it ends.

local api = vim.api
local conversation = require("codecompanion.edit_in_place.conversation")
local draw = require("codecompanion.edit_in_place.draw")
local hunks = require("codecompanion.edit_in_place.hunks")
local keys = require("codecompanion.edit_in_place.keys")
local proposals = require("codecompanion.edit_in_place.proposal")
local region = require("codecompanion.edit_in_place.region")
local say = require("codecompanion.say")

local uv = vim.uv or vim.loop

local M = {}

local FRAMES = { "⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏" }
local FRAME_MS = 120
local REDRAW_MS = 40
local AUGROUP = api.nvim_create_augroup("codecompanion.edit_in_place", {})

---@class CodeCompanion.Edit
---@field bufnr integer
---@field region CodeCompanion.EditRegion
---@field base string[] The lines of the region when the model was asked
---@field asked string[] The lines that the reply is about: those, or what was proposed for them
---@field instruction string The newest one
---@field conversation CodeCompanion.EditConversation
---@field is_asking boolean The model is answering
---@field label string What it is doing
---@field arrived string[] Lines of the reply so far
---@field placement string Where they go
---@field proposal CodeCompanion.Proposal? What is proposed, also while the model is asked for another
---@field keys CodeCompanion.EditKeys
---@field timer? uv.uv_timer_t
---@field is_due? boolean It will be drawn soon

---@type table<integer, CodeCompanion.Edit>
local by_buffer = {}

---Id of the chat of the edit that ended last.
---@type string?
M.last_chat = nil

---@param bufnr integer
---@return CodeCompanion.Edit?
function M.of(bufnr)
  return by_buffer[bufnr]
end

---@param edit CodeCompanion.Edit
---@return boolean
function M.is_alive(edit)
  return by_buffer[edit.bufnr] == edit
end

---The lines that a reply makes of those it is about.
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

---For status lines, and for whoever wants to know: `b:codecompanion_edit`.
---@param edit CodeCompanion.Edit
---@param count integer
local function publish(edit, count)
  local state = edit.is_asking and "asking" or "proposed"
  local chat = edit.conversation and edit.conversation.id
  vim.b[edit.bufnr].codecompanion_edit = { state = state, label = edit.label, changes = count, chat = chat }
end

---@param edit CodeCompanion.Edit
---@return CodeCompanion.PlacedHunk[]? placed nil when its lines are gone
local function placed_now(edit)
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
  return hunks.place(edit.base, so_far, region.lines(edit.region))
end

---@param count integer
---@return string[]
local function hints(count)
  local all = { { "accept_change", "accept" }, { "reject_change", "reject" } }
  local one = { { "accept_hunk", "accept this" }, { "reject_hunk", "reject this" }, { "next_hunk", "next" } }
  local more = { { "follow_up", "follow up" }, { "options", "keys" } }
  local total = count > 1 and ("%d changes · "):format(count) or ""
  local short = vim.list_slice(all)
  short[3] = more[2]
  local long = vim.list_extend(vim.list_slice(all), count > 1 and one or {})
  return {
    total .. keys.hint(vim.list_extend(vim.list_slice(long), more)),
    total .. keys.hint(short),
    keys.hint(short),
  }
end

---Draw what stands now. Nothing left to decide is the end of it.
---@param edit CodeCompanion.Edit
function M.draw(edit)
  if not M.is_alive(edit) then
    return
  end
  local placed = placed_now(edit)
  local first = region.rows(edit.region)
  if not placed or not first then
    return M.finish(edit, "The lines of this edit are gone from the buffer; nothing was changed.")
  elseif not edit.is_asking and #placed == 0 then
    return M.finish(edit)
  end
  publish(edit, #placed)
  draw.draw(edit.bufnr, { first = first, hunks = placed, hint = edit.is_asking and {} or hints(#placed) })
end

---Draw soon, once for all that comes until then.
---@param edit CodeCompanion.Edit
function M.draw_soon(edit)
  if not edit.is_due then
    edit.is_due = true
    vim.defer_fn(function()
      edit.is_due = false
      M.draw(edit)
    end, REDRAW_MS)
  end
end

---Change the text, and leave the cursor's line where it is on the screen.
---@param edit CodeCompanion.Edit
---@param change fun()
function M.without_moving(edit, change)
  draw.without_moving(edit.bufnr, change)
end

---Open the folds that hide what is proposed.
---@param edit CodeCompanion.Edit
function M.unfold(edit)
  local first = region.rows(edit.region)
  if first and edit.proposal then
    draw.unfold(edit.bufnr, { first = first, hunks = edit.proposal.placed, hint = {} })
  end
end

---@param edit CodeCompanion.Edit
local function show_progress(edit)
  local first = region.rows(edit.region)
  if first then
    local frame = FRAMES[math.floor(uv.now() / FRAME_MS) % #FRAMES + 1]
    local label = edit.label ~= "" and edit.label or "waiting for the model"
    draw.progress(edit.bufnr, first, ("%s %s%s"):format(frame, label, keys.hint({ { "stop", "stops" } }, " · ")))
  end
end

---Show that the model is being asked, until it is not any more.
---@param edit CodeCompanion.Edit
function M.begin_progress(edit)
  edit.is_asking = true
  publish(edit, 0)
  show_progress(edit)
  edit.timer = edit.timer or uv.new_timer()
  edit.timer:start(
    FRAME_MS,
    FRAME_MS,
    vim.schedule_wrap(function()
      if M.is_alive(edit) and edit.is_asking then
        show_progress(edit)
      end
    end)
  )
end

---@param edit CodeCompanion.Edit
function M.end_progress(edit)
  edit.is_asking, edit.arrived = false, {}
  if edit.timer then
    edit.timer:stop()
  end
  if api.nvim_buf_is_loaded(edit.bufnr) then
    draw.progress(edit.bufnr, 0, nil)
  end
end

---An edit is over: the buffer has its keys back, and nothing of it is drawn.
---@param edit CodeCompanion.Edit
---@param text? string|string[] What to say
---@param level? CodeCompanion.Severity
function M.finish(edit, text, level)
  if not M.is_alive(edit) then
    return
  end
  by_buffer[edit.bufnr] = nil
  M.end_progress(edit)
  if edit.timer then
    edit.timer:close()
    edit.timer = nil
  end
  if api.nvim_buf_is_loaded(edit.bufnr) then
    keys.restore(edit.bufnr, edit.keys)
    draw.clear(edit.bufnr)
    region.clear(edit.region)
    vim.b[edit.bufnr].codecompanion_edit = nil
  end
  M.last_chat = edit.conversation.id
  conversation.close(edit.conversation)
  if text then
    say.line(text, level)
  end
end

---Keep what is drawn true to the buffer.
---@param edit CodeCompanion.Edit
local function watch(edit)
  local function gone()
    vim.schedule(function()
      M.finish(edit, "The buffer was loaded again; its edit in place was dropped.")
    end)
  end
  api.nvim_buf_attach(edit.bufnr, false, {
    on_lines = function()
      if not M.is_alive(edit) then
        return true
      end
      M.draw_soon(edit)
    end,
    on_reload = gone,
    on_detach = gone,
  })
end

local is_redrawing = false

---Draw proposals again when windows or what they show beside the text have another width.
local function redraw_on_resize()
  if is_redrawing then
    return
  end
  is_redrawing = true
  api.nvim_create_autocmd({ "VimResized", "WinResized", "OptionSet" }, {
    group = AUGROUP,
    desc = "Draw proposals for the new width",
    callback = function(args)
      if args.event ~= "OptionSet" or vim.list_contains({ "wrap", "number", "tabstop" }, args.match) then
        for _, edit in pairs(by_buffer) do
          M.draw_soon(edit)
        end
      end
    end,
  })
end

---@param edit CodeCompanion.Edit
function M.add(edit)
  by_buffer[edit.bufnr] = edit
  watch(edit)
  redraw_on_resize()
end

return M
