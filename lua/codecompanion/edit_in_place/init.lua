---Edits in place (`:[range]CodeCompanion instruction`): the lines and what stands around them go to the model, and what
---it makes of them is shown in the buffer, to be accepted or rejected. The text changes when the user accepts.

local api = vim.api
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

---@param edit CodeCompanion.Edit
---@return table<string, fun()>
local function bound(edit)
  local found = {}
  for name, action in pairs(require("codecompanion.edit_in_place.actions")) do
    found[name] = function()
      action(edit)
    end
  end
  return found
end

---@param bufnr integer
---@param instruction string
---@param lines CodeCompanion.EditTargetLines
local function begin(bufnr, instruction, lines)
  local edits = require("codecompanion.edit_in_place.edits")
  local asking = require("codecompanion.edit_in_place.asking")
  local place = require("codecompanion.edit_in_place.region").set({ bufnr = bufnr }, lines.first, lines.last)
  local edit = { bufnr = bufnr, region = place, is_asking = true, label = "", arrived = {}, placement = "replace" }
  require("codecompanion.screen.edit_highlights").define()
  edit.keys = require("codecompanion.edit_in_place.keys").set(bufnr, bound(edit))
  edits.add(edit)
  edit.conversation = require("codecompanion.edit_in_place.conversation").open(function(event)
    asking.take(edit, event)
  end)
  asking.ask(edit, instruction, lines.lines, false)
end

---Ask for an edit of the current buffer.
---@param instruction string What to do; the user is asked when it is empty
---@param range? { [1]: integer, [2]: integer } 1-based lines, both in it; without it what is around the cursor
function M.start(instruction, range)
  local bufnr = api.nvim_get_current_buf()
  local target = require("codecompanion.edit_in_place.target")
  local refusal = target.refusal(bufnr)
  if not refusal and require("codecompanion.edit_in_place.edits").of(bufnr) then
    local keys = require("codecompanion.edit_in_place.keys")
    refusal = "An edit of this buffer is waiting for you"
      .. keys.hint({ { "accept_change", "accepts it" }, { "reject_change", "rejects it" } }, " · ")
  end
  local lines, problem
  if not refusal then
    lines, problem = target.lines(bufnr, range, api.nvim_win_get_cursor(0))
  end
  if not lines then
    return say.line(refusal or problem --[[@as string]], severity.WARN)
  elseif instruction:find("%S") then
    return begin(bufnr, instruction, lines)
  end
  vim.ui.input({ prompt = ("Edit lines %d-%d: "):format(lines.first + 1, lines.last) }, function(words)
    if words and words:find("%S") and api.nvim_buf_is_loaded(bufnr) then
      begin(bufnr, words, target.lines(bufnr, { lines.first + 1, lines.last }, { 1, 0 }))
    end
  end)
end

---Open the chat of the edit in this buffer, or of the one that ended last.
function M.open_chat()
  local edits = require("codecompanion.edit_in_place.edits")
  local edit = edits.of(api.nvim_get_current_buf())
  if edit then
    return require("codecompanion.edit_in_place.actions").open_chat(edit)
  elseif not edits.last_chat then
    return say.line("No edit in place was made since Neovim was started; :CodeCompanionChat Resume lists older chats")
  end
  require("codecompanion.chat").resume(edits.last_chat)
end

return M
