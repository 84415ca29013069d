---Uses a prompt from a file window: opens a chat or edits in place; problems are reported on the command line.

local api = vim.api
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

---@param reason string
local function refuse(reason)
  say.line(reason, severity.WARN)
end

---Edit the selected lines in place, or those around the cursor.
---@param text string The instruction; the user is asked for one if it is empty
---@param context CodeCompanion.PromptContext
function M.edit(text, context)
  if not api.nvim_win_is_valid(context.winnr) or api.nvim_win_get_buf(context.winnr) ~= context.bufnr then
    return refuse("Nothing was edited: the buffer is no longer shown")
  end
  api.nvim_set_current_win(context.winnr)
  local range = context.is_visual and { context.start_line, context.end_line } or nil
  require("codecompanion.edit_in_place").start(text, range)
end

---@param context CodeCompanion.PromptContext
---@param argument string
---@return CodeCompanion.PromptUse
local function use(context, argument)
  require("codecompanion.chat") -- so that a new chat gets its keymaps
  return { context = context, argument = argument, refuse = refuse, edit = M.edit }
end

---Remember the user's position for an edit in place that starts later.
---@param args { range: integer, line1: integer, line2: integer } Arguments of a user command
---@return fun(text: string) edit
function M.edit_here(args)
  local bufnr, winnr, range = api.nvim_get_current_buf(), api.nvim_get_current_win(), { args.line1, args.line2 }
  return function(text)
    M.edit(text, { bufnr = bufnr, winnr = winnr, is_visual = true, start_line = range[1], end_line = range[2] })
  end
end

---@param prompt CodeCompanion.Prompt
---@param context CodeCompanion.PromptContext
function M.run(prompt, context)
  require("codecompanion.chat.prompts.run_prompt").run(prompt, use(context, ""))
end

---@param name string Alias or name
---@param argument string
---@param args? { range: integer, line1: integer, line2: integer } Arguments of a user command
function M.by_name(name, argument, args)
  local context = require("codecompanion.prompt_library.prompt_context").look(args)
  if context.is_visual and api.nvim_get_mode().mode:find("^[vV\22]") then
    api.nvim_feedkeys(vim.keycode("<Esc>"), "nx", false)
  end
  require("codecompanion.chat.prompts.run_prompt").by_name(name, use(context, argument))
end

return M
