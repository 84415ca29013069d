---The public API. Thin: every function requires what it needs when it is called, so that loading this costs nothing.

local M = {}

---Whether no chat can be shown here; the user is told why.
---@return boolean
local function is_refused()
  return require("codecompanion.commands.command_line_window").refuses()
end

---Configure the plugin. Options: |codecompanion-options|. Calling it is not needed to use the defaults.
---
---It costs next to nothing: the table is looked at when an option is first needed, and at the latest right after
---start-up, so that mistakes are seen.
---@param opts? CodeCompanion.Options
function M.setup(opts)
  opts = opts == nil and {} or opts
  package.loaded["codecompanion_given"] = { opts = opts } -- the configuration is not loaded yet: it takes it from here
  local loaded = package.loaded["codecompanion.config"]
  if loaded then
    loaded.setup(opts)
  end
  if package.loaded["codecompanion.inline"] or type(opts) == "table" and opts.completion then
    require("codecompanion.inline.begin")(opts)
  end
  if type(opts) == "table" and next(opts) == nil then
    return -- nothing can be wrong with the defaults
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

---What lazy.nvim calls before it unloads the modules (`:Lazy reload`): drafts are saved, the host goes, and once the
---new modules are there the chats are drawn again from the history.
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

---Show the last chat, or hide it when it is shown; opens one when there is none.
---@return CodeCompanion.Chat?
function M.toggle()
  if is_refused() then
    return nil
  end
  return require("codecompanion.chat").toggle()
end

---Bring a chat back from the history.
---@param id? string Id of a stored chat, or "last"; without it a list is shown
function M.resume(id)
  require("codecompanion.values.arguments").optional("id", id, "string")
  if is_refused() then
    return nil
  end
  return require("codecompanion.chat").resume(id)
end

---Restore a chat from a checkpoint beside the database, as a chat of its own.
---@param id? string Id of a chat or of one of its checkpoints; without it a list is shown
function M.restore(id)
  require("codecompanion.values.arguments").optional("id", id, "string")
  if is_refused() then
    return nil
  end
  return require("codecompanion.chat").restore(id)
end

---Use a prompt of the prompt library, as `:CodeCompanion /{name}` does; in visual mode with the selection.
---@param name string Its alias, or its name
---@param argument? string What it wants to know
function M.prompt(name, argument)
  require("codecompanion.values.arguments").text("name", name)
  require("codecompanion.values.arguments").optional("argument", argument, "string")
  if is_refused() then
    return nil
  end
  require("codecompanion.commands.use_prompt").by_name(name, argument or "")
end

---Compact the chat of this buffer, or the last chat, whatever its size.
---@param instructions? string What the summary should take care of
function M.compact(instructions)
  require("codecompanion.values.arguments").optional("instructions", instructions, "string")
  return require("codecompanion.chat").compact(instructions)
end

---The chat of the current buffer, otherwise the one that was used last.
---@return CodeCompanion.Chat?
function M.last_chat()
  return require("codecompanion.chat").current()
end

---Attach files to the chat in use (a new one when there is none) and show it.
---@param paths string[] Those that cannot be read are named, the others are attached
function M.attach(paths)
  require("codecompanion.values.arguments").paths(paths)
  if is_refused() then
    return nil
  end
  return require("codecompanion.chat.slash.attach_paths").attach_to_current(paths)
end

---What a chat is doing and how full its context is, as an item for 'statusline' (a `%` is written twice); empty when
---there is no chat.
---@param bufnr? integer Buffer of a chat; without a number (lualine.nvim passes its component) the chat in use
---@return string
function M.statusline(bufnr)
  -- A status line is drawn all the time: it must not load the chat.
  local chats = package.loaded["codecompanion.chat"]
  local chat = nil
  if chats and type(bufnr) == "number" then
    chat = chats.by_buffer(bufnr)
  elseif chats then
    chat = chats.current()
  end
  return chat and require("codecompanion.chat.state.chat_status").component(chat.bufnr) or ""
end

---A tab line like Neovim's own, in which chats have their titles; for 'tabline'.
---@return string
function M.tabline()
  return require("codecompanion.chat.window.tabline").line()
end

return setmetatable(M, {
  __index = function(_, name) -- completion at the cursor
    return tostring(name):find("completion") and require("codecompanion.inline.api")[name] or nil
  end,
})
