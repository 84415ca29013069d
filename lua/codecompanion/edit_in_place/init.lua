---Edits in place (`:[range]CodeCompanion instruction`): the lines and what stands around them go to the model, and what
---it makes of them is shown in the buffer, to be accepted or rejected. The text changes when the user accepts.

local api = vim.api
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

---What the keys of a buffer do: to its only edit, or to that of the cursor's line.
---@param bufnr integer
---@return table<string, fun()>
local function bound(bufnr)
  local edits = require("codecompanion.edit_in_place.edits")
  local found = {}
  for name, action in pairs(require("codecompanion.edit_in_place.actions")) do
    found[name] = function()
      local of_any = name == "next_hunk" or name == "previous_hunk" or name == "options"
      local edit = edits.chosen(bufnr) or of_any and edits.live(bufnr)[1]
      if edit then
        return action(edit)
      end
      local keys = require("codecompanion.edit_in_place.keys")
      local go = keys.hint({ { "next_hunk", "goes to the next change" } }, " · ")
      say.hint(("%d edits stand in this buffer, none on this line"):format(#edits.live(bufnr)) .. go)
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
  local edit = { bufnr = bufnr, region = place, is_asking = true, is_decided = false, label = "", arrived = {} }
  require("codecompanion.screen.edit_highlights").define()
  edit.actions = bound(bufnr)
  edits.add(edit)
  edit.conversation = require("codecompanion.headless_chat").open({
    adapter = require("codecompanion.config").options.interactions.inline.adapter,
    on_event = function(event)
      asking.take(edit, event)
    end,
  })
  asking.ask(edit, instruction, lines.lines, false)
end

---Why these lines cannot be edited now: another edit has them. nil when none has.
---@param bufnr integer
---@param lines CodeCompanion.EditTargetLines
---@return string[]? reason In fewer and fewer words
local function taken(bufnr, lines)
  local other = require("codecompanion.edit_in_place.edits").meeting(bufnr, lines.first, lines.last)
  if not other then
    return nil
  end
  local keys = require("codecompanion.edit_in_place.keys")
  local first, last = require("codecompanion.edit_in_place.region").rows(other.region)
  local where = last - first < 2 and ("Line %d"):format(first + 1) or ("Lines %d-%d"):format(first + 1, last)
  local choice, short
  if other.is_asking then
    choice = (last - first < 2 and " is" or " are") .. " being edited already"
    short = keys.hint({ { "stop", "stops that" } }, " · ")
  else
    choice = (last - first < 2 and " has" or " have") .. " a proposal already"
    short = keys.hint({ { "accept_change", "accepts it" }, { "reject_change", "rejects it" } }, " · ")
  end
  return { where .. choice .. short, where .. choice }
end

---Ask for an edit of the current buffer.
---@param instruction string What to do; the user is asked when it is empty
---@param range? { [1]: integer, [2]: integer } 1-based lines, both in it; without it what is around the cursor
function M.start(instruction, range)
  if require("codecompanion.send_code").refuses("An edit in place") then
    return
  end
  local bufnr = api.nvim_get_current_buf()
  local target = require("codecompanion.edit_in_place.target")
  local refusal, lines = target.refusal(bufnr), nil
  if not refusal then
    lines, refusal = target.lines(bufnr, range, api.nvim_win_get_cursor(0))
  end
  refusal = refusal or taken(bufnr, lines --[[@as CodeCompanion.EditTargetLines]])
  if refusal then
    return say.line(refusal, severity.WARN)
  elseif instruction:find("%S") then
    return begin(bufnr, instruction, lines)
  end
  vim.ui.input({ prompt = ("Edit lines %d-%d: "):format(lines.first + 1, lines.last) }, function(words)
    if not words or not words:find("%S") or not api.nvim_buf_is_loaded(bufnr) then
      return
    end
    local now, problem = target.lines(bufnr, { lines.first + 1, lines.last }, { 1, 0 })
    problem = problem or taken(bufnr, now --[[@as CodeCompanion.EditTargetLines]])
    if problem then
      return say.line(problem, severity.WARN)
    end
    begin(bufnr, words, now)
  end)
end

---Open the chat of the edit in this buffer, or of the one that ended last.
function M.open_chat()
  local edits = require("codecompanion.edit_in_place.edits")
  local edit = edits.chosen(api.nvim_get_current_buf())
  if edit then
    return require("codecompanion.edit_in_place.actions").open_chat(edit)
  elseif not edits.last_chat then
    return say.line({
      "No edit in place was made since Neovim was started; :CodeCompanionChat Resume lists older chats",
      "No edit in place yet; :CodeCompanionChat Resume lists older chats",
    })
  end
  require("codecompanion.chat").resume(edits.last_chat)
end

return M
