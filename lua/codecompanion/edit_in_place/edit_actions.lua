---Implements the keys of an edit in place that ask the model again or stop it, named as in
---`interactions.inline.keymaps`. The decision keys are shared by all changes (`changes/decision_actions.lua`).

local asking = require("codecompanion.edit_in_place.ask_for_edit")
local keys = require("codecompanion.changes.decision_keys")
local own_keys = require("codecompanion.edit_in_place.edit_keys")
local proposals = require("codecompanion.changes.proposal")
local region = require("codecompanion.changes.region")
local say = require("codecompanion.say")
local of_buffer = require("codecompanion.changes.proposals_of_buffer")

---@type table<string, fun(edit: CodeCompanion.StandingEdit)>
local M = {}

---@param edit CodeCompanion.StandingEdit
---@return boolean
local function is_answering(edit)
  if edit.is_asking then
    local key = own_keys.of("stop")
    say.hint("The model is still answering" .. (key and (" · %s stops it"):format(key) or ""))
  end
  return edit.is_asking
end

---@param edit CodeCompanion.StandingEdit
---@param prompt string
---@param default string
---@param lines fun(): string[]
local function ask(edit, prompt, default, lines)
  if is_answering(edit) then
    return
  end
  vim.ui.input({ prompt = prompt, default = default }, function(instruction)
    say.nothing() -- Neovim's own prompt stays on the command line
    if instruction and instruction:find("%S") and of_buffer.is_alive(edit) and not edit.is_asking then
      asking.ask(edit, instruction, lines(), true)
    end
  end)
end

function M.retry(edit)
  ask(edit, "New instruction: ", edit.instruction, function()
    return region.lines(edit.region)
  end)
end

function M.follow_up(edit)
  ask(edit, "Follow up: ", "", function()
    return proposals.result(edit.proposal)
  end)
end

function M.open_chat(edit)
  if not is_answering(edit) then
    asking.show_chat(edit)
  end
end

function M.stop(edit)
  if edit.is_asking then
    return asking.stop(edit)
  end
  say.hint("The reply is complete" .. keys.hint({ { "reject_change", "rejects it" } }, " · "))
end

---Show the keys.
function M.options(edit)
  local rows = keys.described(edit.bufnr, edit.actions, own_keys.TEXTS)
  require("codecompanion.screen.float").show_keys("Edit in place", vim.list_extend(rows, own_keys.described()))
end

return M
