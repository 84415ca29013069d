---The public API. Every function loads its modules when it is called, so that loading this file is cheap.

local M = {}

---Return whether no chat can be shown here; if so, notify the user of the reason.
---@return boolean
local function is_refused()
  return require("codecompanion.commands.command_line_window").refuses()
end

---Configure the plugin. Options: |codecompanion-options|. The call is optional: without it the defaults apply.
---
---The call is cheap: the options are checked when any of them is first read, or else right after startup, so that
---mistakes are reported.
---@param opts? CodeCompanion.Options
function M.setup(opts)
  opts = opts == nil and {} or opts
  package.loaded["codecompanion_given"] = { opts = opts } -- read by the configuration, which is loaded later
  local loaded = package.loaded["codecompanion.config"]
  if loaded then
    loaded.setup(opts)
  end
  if package.loaded["codecompanion.inline"] or type(opts) == "table" and opts.completion then
    require("codecompanion.inline.begin")(opts)
  end
  if type(opts) == "table" and next(opts) == nil then
    return -- the defaults need no check
  end
  local function check()
    local config = require("codecompanion.config")
    config.check()
    if next(config.options.interactions.chat.slash_commands) ~= nil then
      config.add_mistakes(require("codecompanion.chat.slash.slash_registry").problems())
    end
  end
  if vim.v.vim_did_enter == 1 then
    vim.schedule(check)
  else
    vim.api.nvim_create_autocmd("VimEnter", {
      once = true,
      callback = function()
        vim.schedule(check)
      end,
    })
  end
end

---Prepare for unloading; called by lazy.nvim (`:Lazy reload`). Drafts are saved and the host is stopped; once the new
---modules are loaded, the chats are redrawn from the history.
function M.deactivate()
  require("codecompanion.commands.reload").deactivate()
end

---Open a new chat.
---@param opts? CodeCompanion.ChatOpts
---@return CodeCompanion.Chat?
function M.chat(opts)
  require("codecompanion.values.arguments").chat(opts)
  if is_refused() then
    return nil
  end
  return require("codecompanion.chat").open(opts)
end

---Show the last chat, or hide it if it is visible; open a new one if there is none.
---@return CodeCompanion.Chat?
function M.toggle()
  if is_refused() then
    return nil
  end
  return require("codecompanion.chat").toggle()
end

---Reopen a chat from the history.
---@param id? string Chat id, or "last"; defaults to showing a list
function M.resume(id)
  require("codecompanion.values.arguments").optional("id", id, "string")
  if is_refused() then
    return nil
  end
  return require("codecompanion.chat").resume(id)
end

---Restore a chat from a checkpoint file as a new chat.
---@param id? string Id of a chat or of one of its checkpoints; defaults to showing a list
function M.restore(id)
  require("codecompanion.values.arguments").optional("id", id, "string")
  if is_refused() then
    return nil
  end
  return require("codecompanion.chat").restore(id)
end

---Use a prompt of the prompt library, like `:CodeCompanion /{name}`; in Visual mode with the selection.
---@param name string Alias or name
---@param argument? string Answer to the prompt's question
function M.prompt(name, argument)
  require("codecompanion.values.arguments").text("name", name)
  require("codecompanion.values.arguments").optional("argument", argument, "string")
  if is_refused() then
    return nil
  end
  require("codecompanion.commands.use_prompt").by_name(name, argument or "")
end

---Compact the chat of this buffer, or the last chat, regardless of its size.
---@param instructions? string Instructions for the summary
function M.compact(instructions)
  require("codecompanion.values.arguments").optional("instructions", instructions, "string")
  return require("codecompanion.chat").compact(instructions)
end

---Return the chat of the current buffer, otherwise the most recently used one.
---@return CodeCompanion.Chat?
function M.last_chat()
  return require("codecompanion.chat").current()
end

---Attach files to the current chat (a new one if there is none) and show it.
---@param paths string[] Unreadable files are reported; the others are attached
function M.attach(paths)
  require("codecompanion.values.arguments").paths(paths)
  if is_refused() then
    return nil
  end
  return require("codecompanion.chat.slash.attach_paths").attach_to_current(paths)
end

---Return the state of a chat and its context usage as an item for 'statusline' (`%` is doubled); empty if there is no
---chat.
---@param bufnr? integer Chat buffer; defaults to the current chat, even for a value that is not a number (lualine.nvim
---passes its component)
---@return string
function M.statusline(bufnr)
  -- Status lines are redrawn constantly, so this must not load the chat.
  local chats = package.loaded["codecompanion.chat"]
  local chat = nil
  if chats and type(bufnr) == "number" then
    chat = chats.by_buffer(bufnr)
  elseif chats then
    chat = chats.current()
  end
  return chat and require("codecompanion.chat.state.chat_status").component(chat.bufnr) or ""
end

---Return a tab line like Neovim's own that shows the titles of chats; for 'tabline'.
---@return string
function M.tabline()
  return require("codecompanion.chat.window.tabline").line()
end

return setmetatable(M, {
  __index = function(_, name) -- completion at the cursor
    return tostring(name):find("completion") and require("codecompanion.inline.api")[name] or nil
  end,
})
