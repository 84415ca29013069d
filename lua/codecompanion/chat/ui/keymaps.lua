---Maps the keys of chat buffers as configured: each can be changed or disabled, and `g?` lists them.

local keys = require("codecompanion.chat.state.configured_keys")

local M = {}

---Run the action of a key: the user's callback, or the built-in action, which is loaded by its first use.
---@param chat CodeCompanion.Chat
---@param name string
---@param entry table Its configuration
function M.run(chat, name, entry)
  local action = entry.callback or require("codecompanion.chat.ui.key_actions")[name]
  action(chat)
end

---@param chat CodeCompanion.Chat
---@param name string
---@param entry table
local function set(chat, name, entry)
  if not entry.callback and not require("codecompanion.config.options.keymaps").is_builtin(name) then
    return
  end
  for mode, given in pairs(entry.modes or {}) do
    for _, key in ipairs(type(given) == "table" and given or { given }) do
      local opts = vim.tbl_extend("force", { silent = true, nowait = true }, entry.opts or {}, {
        buffer = chat.bufnr,
        desc = entry.description,
      })
      vim.keymap.set(mode, key, function()
        M.run(chat, name, entry)
      end, opts)
    end
  end
end

---Map the keys of a chat buffer.
---@param chat CodeCompanion.Chat
function M.set(chat)
  require("codecompanion.screen.open_file").only_files(chat.bufnr)
  local diff = require("codecompanion.config").options.interactions.shared.keymaps.view_diff
  local shows = keys.configured().show_original
  if diff and shows then -- the key that shows a change in a file, where `K` is Neovim's own
    set(chat, "show_original", vim.tbl_extend("force", shows, { modes = diff.modes }))
  end
  for name, entry in pairs(keys.configured()) do
    if entry then
      set(chat, name, entry)
    end
  end
end

return M
