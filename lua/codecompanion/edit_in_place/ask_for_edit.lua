---Asks the model for an edit and turns the reply into a proposal.

local api = vim.api
local present = require("codecompanion.changes.present")
local proposals = require("codecompanion.changes.proposal")
local region = require("codecompanion.changes.region")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")
local of_buffer = require("codecompanion.changes.proposals_of_buffer")
local target = require("codecompanion.edit_in_place.target")

local M = {}

---Maximum bytes of a remedy that is shown alone.
local SHORT_REMEDY = 45

---End a failed edit, or show its previous proposal again.
---@param edit CodeCompanion.StandingEdit
local function give_up(edit)
  if not edit.proposal then
    return of_buffer.finish(edit)
  end
  of_buffer.end_progress(edit)
  of_buffer.draw(edit)
end

---Return an error, longest form first: its last sentence, the remedy, is kept longest.
---@param reason string
---@return string[]
local function wordings(reason)
  reason = require("codecompanion.chat.state.configured_keys").in_message(reason, true)
  local found = { reason .. " The buffer was not changed.", reason }
  local cause, remedy = reason:gsub(" %b()%.", "."):match("^(.-%.) (.+)$")
  if cause then
    found[3] = cause .. " " .. remedy
    found[4] = cause:gsub(" to https?://%S+%.$", ".") .. " " .. remedy
    found[5] = #remedy <= SHORT_REMEDY and remedy or nil
  end
  return found
end

---@param edit CodeCompanion.StandingEdit
---@param reason string "" if the reply was stopped
local function fail(edit, reason)
  give_up(edit)
  if reason == "" then
    return say.line({ "Stopped; the buffer was not changed.", "Stopped" })
  end
  say.line(wordings(reason), severity.ERROR)
end

---Show a reply that belongs in a new buffer.
---@param edit CodeCompanion.StandingEdit
---@param event table edit_ended event
local function show_new_buffer(edit, event)
  local filetype = vim.bo[edit.bufnr].filetype
  local named = event.language ~= "" and vim.filetype.match({ filename = "x." .. event.language })
  local is_name = event.language:find("^[%w_.+-]+$") ~= nil -- the completion of any other name may run a shell
  local known = is_name and vim.fn.getcompletion(event.language, "filetype") or {}
  filetype = vim.list_contains(known, event.language) and event.language or named or filetype
  of_buffer.finish(edit)
  vim.cmd.new()
  api.nvim_buf_set_lines(0, 0, -1, false, event.lines)
  vim.bo.filetype = filetype
end

---Open the chat of an edit.
---@param edit CodeCompanion.StandingEdit
---@param opts? { hidden?: boolean }
function M.show_chat(edit, opts)
  edit.conversation:give_back() -- the buffer reopens it
  require("codecompanion.chat").resume(edit.conversation.id, opts)
end

---Layouts that show a chat without covering the window where the user works.
local BESIDE = { vertical = true, horizontal = true, tab = true }

---Open the chat of an edit and return to the current window. The chat stays hidden where it would cover that window, or
---if that window shows another chat.
---@param edit CodeCompanion.StandingEdit
---@param is_hidden? boolean Only make it the chat that `:CodeCompanionChat Toggle` shows
---@return boolean is_shown
local function open_beside(edit, is_hidden)
  local config = require("codecompanion.config").options.display.chat.window
  local layout = require("codecompanion.chat.window.layout").with_room(config)
  is_hidden = is_hidden or not BESIDE[layout] or vim.bo.filetype == "codecompanion"
  local win, mode = api.nvim_get_current_win(), api.nvim_get_mode().mode
  M.show_chat(edit, { hidden = is_hidden })
  api.nvim_set_current_win(win)
  if not is_hidden and mode:sub(1, 1) ~= "i" then
    vim.cmd.stopinsert() -- `start_in_insert_mode` is meant for the window of the chat
  end
  return not is_hidden
end

---Show a reply that changes nothing in its chat, or say how to see it.
---@param edit CodeCompanion.StandingEdit
---@param reason string A sentence
---@param is_hidden? boolean
local function show_answer(edit, reason, is_hidden)
  local is_shown = open_beside(edit, is_hidden)
  local place = is_shown and "It is in the chat" or ":CodeCompanionChat Toggle shows it"
  say.line({
    ("%s %s; the buffer was not changed. Ask again with :CodeCompanion."):format(reason, place),
    ("%s %s. Ask again with :CodeCompanion."):format(reason, place),
    is_shown and "No edit: see the chat. Ask again with :CodeCompanion." or ("%s %s."):format(reason, place),
    is_shown and "No edit: see the chat" or ("No edit. %s."):format(place),
    "No edit: see the last chat",
  })
end

---@param edit CodeCompanion.StandingEdit
---@param event table edit_ended event
local function propose(edit, event)
  local lines = present.made_of(edit.asked, event.placement, event.lines)
  local before = edit.proposal and proposals.result(edit.proposal)
  of_buffer.end_progress(edit)
  edit.proposal = proposals.new(edit.region, edit.base, lines, edit.proposal)
  local placed = proposals.refresh(edit.proposal)
  if placed and #placed == 0 then
    of_buffer.decide(edit)
    return show_answer(edit, "The reply contains no change.", true)
  elseif of_buffer.accepts(edit.bufnr) then
    edit.is_automatic = true
    return edit.actions.accept_change()
  end
  of_buffer.draw(edit)
  present.reveal(edit)
  if event.note ~= "" then
    say.line(event.note, severity.WARN)
  elseif before then
    local is_same = vim.deep_equal(before, proposals.result(edit.proposal))
    say.hint(is_same and { "The model made the same proposal again", "Same proposal again" } or "New proposal")
  end
end

---@param edit CodeCompanion.StandingEdit
---@param event table edit_ended event
local function ended(edit, event)
  if event.outcome == "failed" then
    fail(edit, event.error)
  elseif event.outcome == "answer" then
    of_buffer.finish(edit)
    show_answer(edit, event.note)
  elseif event.placement == "new" then
    show_new_buffer(edit, event)
  else
    propose(edit, event)
  end
end

---@type table<string, fun(edit: CodeCompanion.StandingEdit, event: table)>
local TAKEN = {
  state = function(edit, event)
    edit.label = event.label
  end,
  gathering = function(edit)
    edit.label = "gathering code"
  end,
  retrying = function(edit, event)
    edit.label = event.brief ~= "" and event.brief or event.reason
  end,
  edit_text = function(edit, event)
    edit.placement = event.placement
    for at = #edit.arrived, event.kept + 1, -1 do
      edit.arrived[at] = nil
    end
    vim.list_extend(edit.arrived, event.lines)
    of_buffer.draw_soon(edit)
  end,
  edit_ended = ended,
  request_failed = function(edit, event)
    if event.verb == "open_chat" or event.verb == "submit" then
      fail(edit, event.error)
    end
  end,
  host_exit = function(edit, event)
    fail(edit, event.text)
  end,
}

---@param edit CodeCompanion.StandingEdit
---@param event table
function M.take(edit, event)
  if event.type == "notice" and (event.level == "WARN" or event.level == "ERROR") then
    if of_buffer.is_alive(edit) and not edit.conversation:has_window() then
      say.line(event.text, severity[event.level]) -- a budget or a rule file, which no chat reports here
    end
    return
  end
  if event.type == "trust_waits" and event.waits ~= "" and not edit.conversation:has_window() then
    local waits = require("codecompanion.text.visible_characters").line(event.waits).text
    say.once(("Not loaded until trusted: %s · :CodeCompanion trust to review"):format(waits))
  end
  local take = TAKEN[event.type]
  if take and of_buffer.is_alive(edit) and edit.is_asking then
    take(edit, event)
  end
end

---Ask the model about the lines of an edit, in their current or proposed form.
---@param edit CodeCompanion.StandingEdit
---@param instruction string
---@param lines string[] Lines that the reply replaces
---@param is_follow_up boolean The chat already contains the rest of the file
function M.ask(edit, instruction, lines, is_follow_up)
  local first, last = region.rows(edit.region)
  if not first or not last then
    return
  end
  edit.base, edit.asked = region.lines(edit.region), lines
  edit.instruction, edit.label, edit.arrived, edit.placement = instruction, "", {}, "replace"
  local payload = target.payload(edit.bufnr, first, last, lines)
  payload.is_follow_up = is_follow_up
  of_buffer.begin_progress(edit)
  edit.conversation:submit(instruction, payload)
end

---Stop the reply and report it.
---@param edit CodeCompanion.StandingEdit
function M.stop(edit)
  edit.conversation:cancel()
  fail(edit, "")
end

---Stop the reply; the caller reports it.
---@param edit CodeCompanion.StandingEdit
function M.stop_silently(edit)
  edit.conversation:cancel()
  give_up(edit)
end

return M
