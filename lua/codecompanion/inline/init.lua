---Controls completion at the cursor in the editor (R-262): enables and disables it, and runs keys and commands. `flow`
---handles typing.

local eligible = require("codecompanion.inline.eligible")
local flow = require("codecompanion.inline.flow")
local recent = require("codecompanion.inline.recent_code")
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")
local source = require("codecompanion.inline.source")
local status = require("codecompanion.inline.completion_status")

local api = vim.api

local M = {}

local GROUP = "codecompanion.complete"

local has_begun = false ---Whether it was enabled or disabled, by the configuration or the user

---@return table `completion` of the options
local function options()
  return require("codecompanion.config").options.completion
end

---@return "ghost"|"lsp"|"none"
local function display()
  local wanted = options().display
  if wanted == "lsp" and not vim.lsp.inline_completion then
    say.once('completion.display = "lsp" needs Neovim 0.12; ghost text is used', severity.WARN)
    return "ghost"
  end
  return wanted
end

---@param events string|string[]
---@param description string
---@param callback fun(args: vim.api.keyset.create_autocmd.callback_args)
---@param pattern? string|string[]
local function on(events, description, callback, pattern)
  api.nvim_create_autocmd(events, { group = GROUP, pattern = pattern, desc = description, callback = callback })
end

local function watch_typing()
  on("TextChangedI", "Keep the suggestion, or wait for a pause", flow.on_text)
  on("TextChangedP", "Hide the suggestion", flow.on_text_with_menu)
  on("CursorMovedI", "Hide a suggestion that the cursor has left", flow.on_move)
  on("InsertEnter", "Wait for a pause", flow.on_enter)
  on({ "InsertLeave", "BufLeave", "WinLeave", "BufReadPre" }, "Hide the suggestion", flow.drop)
  on("ModeChanged", "Hide the suggestion outside of Insert mode", function()
    eligible.on_mode(vim.v.event.old_mode, vim.v.event.new_mode)
    if vim.v.event.new_mode ~= "i" then
      flow.drop()
    end
  end, { "*:i*", "i*:*" })
  on({ "CompleteChanged", "CompleteDone" }, "Show a menu or a suggestion", flow.on_menu)
  on("User", "Show a menu or a suggestion", flow.on_menu, { "BlinkCmpMenuOpen", "BlinkCmpMenuClose" })
end

---Record recently visited places; menu sources and Neovim's own completion use them too.
local function watch_places()
  on({ "InsertLeave", "BufLeave" }, "Remember recent edits and visits", function(args)
    recent.visit(args.buf)
  end)
  on({ "BufWipeout", "BufFilePost" }, "Clear the buffer's cached state", function(args)
    eligible.forget(args.buf)
  end)
end

---Enable completion for this session.
---@param is_manual? boolean Whether only `:CodeCompanionComplete` triggers requests
function M.enable(is_manual)
  has_begun = true
  flow.is_manual = is_manual == true
  if status.is_on then
    return
  end
  status.is_on = true
  api.nvim_create_augroup(GROUP, { clear = true })
  require("codecompanion.inline.suggestion_highlights").define()
  on("ColorScheme", "Define the colours of suggestions", function()
    require("codecompanion.inline.suggestion_highlights").define()
  end)
  source.reset()
  local shows = display()
  watch_places()
  if shows == "ghost" then
    flow.listen(status.changed)
    watch_typing()
    if api.nvim_get_mode().mode == "i" then
      flow.on_enter()
    end
  elseif shows == "lsp" then
    require("codecompanion.inline.inline_lsp_server").start()
  end
  require("codecompanion.inline.suggestion_keys").set(options().keymaps, M)
end

---Disable completion for this session.
function M.disable()
  has_begun = true
  if not status.is_on then
    return
  end
  status.is_on = false
  api.nvim_create_augroup(GROUP, { clear = true })
  flow.close()
  require("codecompanion.inline.suggestion_keys").remove()
  local lsp = package.loaded["codecompanion.inline.inline_lsp_server"]
  if lsp then
    lsp.stop()
  end
  status.changed()
end

---Start as configured; called on the first Insert mode.
function M.start()
  if options().enabled then
    M.enable()
  end
end

---Start now as configured, unless already enabled or disabled: a command may run before any Insert mode.
function M.begin()
  if not has_begun then
    M.start()
  end
end

---Accept a part of the suggestion at the cursor.
---@param part? CodeCompanion.SuggestionPart "all" by default
---@return boolean accepted Whether there was a suggestion
function M.accept(part)
  return require("codecompanion.inline.accept").start(part or "all")
end

---Show the next (1) or the previous (-1) suggestion.
---@param step 1|-1
---@return boolean
function M.cycle(step)
  local is_shown = flow.is_shown()
  if is_shown then
    flow.cycle(step)
  end
  return is_shown
end

---Remove the suggestion.
---@return boolean
function M.dismiss()
  local is_shown = flow.is_shown()
  flow.drop()
  source.forget()
  return is_shown
end

---Return whether a suggestion is visible.
---@return boolean
function M.is_shown()
  return flow.is_shown()
end

---Request suggestions now; in Normal mode, start Insert mode after the cursor first.
function M.complete()
  M.begin()
  if not status.is_on then
    M.enable(true)
  end
  local mode = api.nvim_get_mode().mode
  if mode:sub(1, 2) == "ni" then
    return vim.schedule(M.complete) -- i_CTRL-O: Insert mode resumes afterwards
  elseif mode:sub(1, 1) == "n" then
    api.nvim_feedkeys(vim.keycode("a<Cmd>lua require('codecompanion.inline').complete()<CR>"), "n", false)
    return
  end
  local problem = eligible.buffer_problem(api.nvim_get_current_buf()) or eligible.moment_problem()
  if problem then
    return flow.hint(problem)
  end
  if not flow.is_shown() then
    flow.ask({ manual = true })
  end
end

---Restart with the changed configuration.
function M.reconfigure()
  M.disable()
  M.start()
end

return M
