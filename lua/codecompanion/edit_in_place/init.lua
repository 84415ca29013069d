---Runs edits in place (`:[range]CodeCompanion instruction`): sends the lines and their surroundings to the model, and
---shows its edit in the buffer, to be accepted or rejected. The text changes only when the user accepts.

local api = vim.api
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

---Chat id of the most recently ended edit.
---@type string?
M.last_chat = nil

---@param bufnr integer
---@param instruction string
---@param lines CodeCompanion.EditTargetLines
local function begin(bufnr, instruction, lines)
  local of_buffer = require("codecompanion.changes.proposals_of_buffer")
  local asking, actions =
    require("codecompanion.edit_in_place.ask_for_edit"), require("codecompanion.edit_in_place.edit_actions")
  local own_keys = require("codecompanion.edit_in_place.edit_keys")
  local place = require("codecompanion.changes.region").set({ bufnr = bufnr }, lines.first, lines.last)
  local edit = { bufnr = bufnr, region = place, is_asking = true, is_decided = false, label = "", arrived = {} }
  require("codecompanion.changes.change_highlights").define()
  local all = vim.tbl_extend("error", actions, require("codecompanion.changes.decision_actions"))
  edit.actions = of_buffer.bound(bufnr, all)
  edit.further_keys, edit.stop_key = own_keys.further(edit.actions), own_keys.of("stop")
  edit.further_hints, edit.key_texts = own_keys.hints(), own_keys.TEXTS
  edit.conversation = require("codecompanion.headless.headless_chat").open({
    purpose = "edit_in_place",
    adapter = require("codecompanion.config").options.interactions.inline.adapter,
    on_event = function(event)
      asking.take(edit, event)
    end,
  })
  edit.on_end = function()
    M.last_chat = edit.conversation.id
    edit.conversation:close()
  end
  of_buffer.add(edit)
  asking.ask(edit, instruction, lines.lines, false)
end

---Return the reason why these lines cannot be edited now (another edit includes them), or nil if they are free.
---@param bufnr integer
---@param lines CodeCompanion.EditTargetLines
---@return string[]? reason Longest form first
local function taken(bufnr, lines)
  local other = require("codecompanion.changes.proposals_of_buffer").meeting(bufnr, lines.first, lines.last)
  if not other then
    return nil
  end
  local first, last = require("codecompanion.changes.region").rows(other.region)
  local where = last - first < 2 and ("Line %d"):format(first + 1) or ("Lines %d-%d"):format(first + 1, last)
  local choice, short
  if other.is_asking then
    choice = (last - first < 2 and " is" or " are") .. " already being edited"
    local key = require("codecompanion.edit_in_place.edit_keys").of("stop")
    short = key and (" · %s stops it"):format(key) or ""
  else
    choice = (last - first < 2 and " already has" or " already have") .. " a proposal"
    local decide = { { "accept_change", "accepts it" }, { "reject_change", "rejects it" } }
    short = require("codecompanion.changes.decision_keys").hint(decide, " · ")
  end
  return { where .. choice .. short, where .. choice }
end

---Start an edit of the current buffer.
---@param instruction string The instruction; the user is asked for one if it is empty
---@param range? { [1]: integer, [2]: integer } 1-based lines, inclusive; defaults to the code around the cursor
function M.start(instruction, range)
  if require("codecompanion.editor_context.send_code").refuses("An edit in place") then
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
    say.nothing() -- Neovim's own prompt stays on the command line
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

---Open the chat of the edit in this buffer, or of the most recently ended edit.
function M.open_chat()
  local edit = require("codecompanion.changes.proposals_of_buffer").chosen(api.nvim_get_current_buf())
  if edit and edit.conversation then
    return require("codecompanion.edit_in_place.edit_actions").open_chat(edit)
  elseif not M.last_chat then
    return say.line("No edit in place since Neovim started")
  end
  require("codecompanion.chat").resume(M.last_chat)
end

return M
