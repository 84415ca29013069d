-- Commands and <Plug> maps only; everything else is loaded by the first of them.
local source = debug.getinfo(1, "S").source

local taken = vim.fn.exists(":CodeCompanion") == 2
-- A plugin manager that reloads forgets `loaded_…`, while the commands are still there.
local ours = vim.g.codecompanion_source == source

if vim.g.loaded_codecompanion or (taken and not ours) then
  -- Ours again (fine), switched off by the user (fine), or another plugin's, which then owns the commands.
  if taken and not ours then
    require("codecompanion.conflict").report_commands()
  end
  return
end
vim.g.loaded_codecompanion, vim.g.codecompanion_source = source, source

local command = vim.api.nvim_create_user_command

command("CodeCompanion", function(args)
  require("codecompanion.commands").run(args)
end, {
  nargs = "*",
  desc = "Manage CodeCompanion: install, restart, log, health …",
  complete = function(...)
    return require("codecompanion.commands").complete(...)
  end,
})

command("CodeCompanionChat", function(args)
  require("codecompanion.commands").chat(args)
end, {
  nargs = "*",
  range = true,
  desc = "Open a chat; with a range, add the lines to its draft",
  complete = function(...)
    return require("codecompanion.commands").complete_chat(...)
  end,
})

command("CodeCompanionRestore", function(args)
  require("codecompanion.commands").restore(args)
end, {
  nargs = "?",
  desc = "Restore a chat from a checkpoint: choose one, or give the id of a chat or checkpoint",
})

command("CodeCompanionCompact", function(args)
  require("codecompanion.commands").compact(args)
end, {
  nargs = "*",
  bang = true,
  desc = "Compact the chat (! does not ask); arguments guide the summary",
})

command("CodeCompanionUndo", function()
  require("codecompanion.commands").change("undo")
end, { desc = "Undo the newest edit, compaction, pin … of the chat" })

command("CodeCompanionRedo", function()
  require("codecompanion.commands").change("redo")
end, { desc = "Redo the change of the chat that was undone last" })

command("CodeCompanionRecall", function(args)
  require("codecompanion.commands").recall(args)
end, { nargs = "*", desc = "Search what was removed from the chat's context" })

command("CodeCompanionRevert", function(args)
  require("codecompanion.commands").revert(args)
end, {
  nargs = "?",
  desc = "Revert what tools changed: choose from a list, or give `turn` or a file",
  complete = function(...)
    return require("codecompanion.commands").complete_revert(...)
  end,
})

command("CodeCompanionChanges", function(args)
  require("codecompanion.commands").changes(args)
end, { bang = true, desc = "Put what the newest turn changed (! the whole chat) into the quickfix list" })

command("CodeCompanionCost", function()
  require("codecompanion.commands").cost()
end, { desc = "Show what the chat has cost" })

command("CodeCompanionTrace", function(args)
  require("codecompanion.commands").trace(args)
end, { nargs = "?", desc = "Show a turn of the chat call by call, by default the newest" })

-- Chats come back by the names of their buffers: `:e`, `:b`, session files. Nothing is loaded before.
local group = vim.api.nvim_create_augroup("codecompanion.buffers", {})
vim.api.nvim_create_autocmd("BufReadCmd", {
  group = group,
  pattern = "codecompanion://*",
  desc = "Draw a chat",
  callback = function(args)
    require("codecompanion.chat.name").read(args.buf)
  end,
})
vim.api.nvim_create_autocmd("BufFilePost", {
  group = group,
  pattern = "codecompanion://*",
  desc = "Draw a chat that a session file names",
  callback = function(args)
    require("codecompanion.chat.name").named(args.buf)
  end,
})

---@param mode string
---@param name string
---@param keys string
---@param desc string
local function plug(mode, name, keys, desc)
  -- Not vim.keymap.set: loading that module costs more than all the rest of this file.
  vim.api.nvim_set_keymap(mode, ("<Plug>(CodeCompanion%s)"):format(name), keys, { desc = desc, noremap = true })
end

plug("n", "Chat", "<Cmd>CodeCompanionChat<CR>", "Open a chat")
plug("x", "Chat", ":CodeCompanionChat<CR>", "Add the selection to the chat's draft")
plug("n", "Toggle", "<Cmd>CodeCompanionChat Toggle<CR>", "Show or hide the chat")
plug("n", "Cost", "<Cmd>CodeCompanionCost<CR>", "Show what the chat has cost")
plug("n", "Trace", "<Cmd>CodeCompanionTrace<CR>", "Show the newest turn of the chat")
plug("n", "Resume", "<Cmd>CodeCompanionChat Resume<CR>", "Resume a stored chat")
plug("n", "Compact", "<Cmd>CodeCompanionCompact<CR>", "Compact the chat")
plug("n", "Undo", "<Cmd>CodeCompanionUndo<CR>", "Undo the newest change of the chat's context")
plug("n", "Redo", "<Cmd>CodeCompanionRedo<CR>", "Redo the change that was undone last")
plug("n", "Recall", "<Cmd>CodeCompanionRecall<CR>", "List what was removed from the chat's context")
