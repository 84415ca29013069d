-- Only commands and <Plug> maps; the first use of one loads everything else.
local source = debug.getinfo(1, "S").source

local taken = vim.fn.exists(":CodeCompanion") == 2
-- A plugin manager that reloads clears `loaded_…`, while the commands still exist.
local ours = vim.g.codecompanion_source == source

if vim.g.loaded_codecompanion or (taken and not ours) then
  -- Ours again (fine), disabled by the user (fine), or another plugin's, which then owns the commands.
  if taken and not ours then
    require("codecompanion.commands.conflict").report_commands()
  end
  return
end
vim.g.loaded_codecompanion, vim.g.codecompanion_source = source, source

-- Kept short: reading and compiling this file is most of its cost at startup.
local api = vim.api

---@param name string
---@param run string Function of `codecompanion.commands`
---@param desc string
---@param opts table For nvim_create_user_command(); `complete` is also a function of `codecompanion.commands`
local function command(name, run, desc, opts)
  local complete = opts.complete
  opts.desc = desc
  opts.complete = complete and function(...)
    return require("codecompanion.commands")[complete](...)
  end
  api.nvim_create_user_command(name, function(args)
    require("codecompanion.commands")[run](args)
  end, opts)
end

command("CodeCompanion", "run", "Open the palette; with words, edit lines or run a prompt or subcommand", {
  nargs = "*",
  range = true,
  complete = "complete",
})
command("CodeCompanionChat", "chat", "Open a chat, or send it the words that follow; a range is attached", {
  nargs = "*",
  range = true,
  complete = "complete_chat",
})
command("CodeCompanionActions", "actions", "List available actions: prompts, chats, commands", { range = true })
command("CodeCompanionCmd", "command_line", "Turn a description into a command line; it is shown, not run", {
  nargs = "*",
  range = true,
})
command(
  "CodeCompanionRestore",
  "restore",
  "Restore a chat from a checkpoint: choose one, or give the id of a chat or checkpoint",
  { nargs = "?" }
)
command("CodeCompanionCompact", "compact", "Replace the conversation with a summary (!: without asking)", {
  nargs = "*",
  bang = true,
})
command("CodeCompanionUndo", "undo", "Undo the last context change, not file edits", {})
command("CodeCompanionRedo", "redo", "Redo the last undone change", {})
command("CodeCompanionRecall", "recall", "Search content removed from the context", { nargs = "*" })
command("CodeCompanionRevert", "revert", "List file changes and revert them; `turn` or a file reverts directly", {
  nargs = "?",
  complete = "complete_revert",
})
command(
  "CodeCompanionChanges",
  "changes",
  "Review the file changes of the newest turn (!: of the chat); opens the quickfix list",
  { bang = true }
)
command("CodeCompanionComplete", "complete_now", "Ask for suggestions at the cursor", {})
command("CodeCompanionContext", "context", "Show the code sent with a question, and why", { nargs = "*" })
command("CodeCompanionCost", "cost", "Show the cost of the chat", {})
command("CodeCompanionTrace", "trace", "Show a turn request by request, by default the newest", { nargs = "?" })

-- Chats are reopened by the names of their buffers: `:e`, `:b`, session files. Nothing is loaded before.
local group = api.nvim_create_augroup("codecompanion.buffers", {})
api.nvim_create_autocmd({ "BufReadCmd", "BufFilePost" }, {
  group = group,
  pattern = "codecompanion://*",
  desc = "Draw a chat",
  callback = function(args)
    require("codecompanion.chat")[args.event == "BufReadCmd" and "read" or "named"](args.buf)
  end,
})

---@param mode string
---@param name string
---@param keys string
---@param desc string
local function plug(mode, name, keys, desc)
  -- Not vim.keymap.set: loading that module costs more than the rest of this file.
  api.nvim_set_keymap(mode, ("<Plug>(CodeCompanion%s)"):format(name), keys, { desc = desc, noremap = true })
end

plug("n", "Chat", "<Cmd>CodeCompanionChat<CR>", "Open a chat")
plug("x", "Chat", ":CodeCompanionChat<CR>", "Add the selection to the chat's draft")
plug("n", "Toggle", "<Cmd>CodeCompanionChat Toggle<CR>", "Show or hide the chat")
plug("n", "Cost", "<Cmd>CodeCompanionCost<CR>", "Show the cost of the chat")
plug("n", "Trace", "<Cmd>CodeCompanionTrace<CR>", "Show the newest turn request by request")
plug("n", "Resume", "<Cmd>CodeCompanionChat Resume<CR>", "Resume a stored chat")
plug("n", "Compact", "<Cmd>CodeCompanionCompact<CR>", "Replace the conversation with a summary")
plug("n", "Undo", "<Cmd>CodeCompanionUndo<CR>", "Undo the last context change, not file edits")
plug("n", "Redo", "<Cmd>CodeCompanionRedo<CR>", "Redo the last undone change")
plug("n", "Recall", "<Cmd>CodeCompanionRecall<CR>", "List content removed from the context")
plug("n", "Complete", "<Cmd>CodeCompanionComplete<CR>", "Ask for suggestions at the cursor")
plug("n", "Accept", "<Cmd>CodeCompanion accept<CR>", "Accept the proposed change or tool call")
plug("x", "Accept", ":CodeCompanion accept<CR>", "Accept the selected hunks")
plug("n", "Reject", "<Cmd>CodeCompanion reject<CR>", "Reject the proposed change or tool call")
plug("n", "Always", "<Cmd>CodeCompanion always<CR>", "Accept, and choose what to allow from now on")
plug("n", "Skip", "<Cmd>CodeCompanion skip<CR>", "Skip the hunk under the cursor")
plug("x", "Skip", ":CodeCompanion skip<CR>", "Skip the selected hunks")

-- Insert mode mappings are defined on first use.
api.nvim_create_autocmd("InsertEnter", {
  group = group,
  once = true,
  callback = function()
    require("codecompanion.inline.plug_maps")(plug)
  end,
})
