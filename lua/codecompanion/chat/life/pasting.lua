---Detects text pasted into a chat by wrapping `vim.paste`, the only Neovim function that the plugin wraps.
---
---A reload replaces the modules and must not wrap it again. Meanwhile the wrapper is kept in `package.loaded`: plugin
---managers unload only modules that are files of the plugin.

local M = {}

local KEPT = "codecompanion_pasting"

---@param lines string[]
---@param phase integer As in |vim.paste()|
function M.pasted(lines, phase)
  local chat = require("codecompanion.chat.state.open_chats").by_buffer()
  if chat and phase < 2 then
    require("codecompanion.chat.life.transcript_guard").pasted(chat)
  end
  if chat then
    require("codecompanion.chat.sources.dropped_files").pasted(chat, lines, phase)
  end
end

---Wrap `vim.paste`.
function M.listen()
  if package.loaded[KEPT] then
    return -- the wrapper of the previous modules, wrapped by another plugin
  end
  local paste = vim.paste
  local function wrapper(lines, phase)
    local pasting = package.loaded["codecompanion.chat.life.pasting"]
    if pasting then
      pasting.pasted(lines, phase)
    end
    return paste(lines, phase)
  end
  vim.paste = wrapper
  package.loaded[KEPT] = { paste = paste, wrapper = wrapper }
end

---Restore `vim.paste`, unless another plugin has wrapped it since: then the wrapper only passes calls on.
function M.stop()
  local kept = package.loaded[KEPT]
  if kept and vim.paste == kept.wrapper then
    vim.paste = kept.paste
    package.loaded[KEPT] = nil
  end
end

return M
