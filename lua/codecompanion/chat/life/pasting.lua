---What is pasted into a chat, heard through `vim.paste`: the one function of Neovim's that is wrapped.
---
---A reload exchanges the modules and must not wrap it once more. `package.loaded` keeps the wrapper meanwhile: plugin
---managers unload only what is a file of the plugin.

local M = {}

local KEPT = "codecompanion_pasting"

---@param lines string[]
---@param phase integer As |vim.paste()| has it
function M.pasted(lines, phase)
  local chat = require("codecompanion.chat.state.open_chats").by_buffer()
  if chat and phase < 2 then
    require("codecompanion.chat.life.transcript_guard").pasted(chat)
  end
  if chat then
    require("codecompanion.chat.sources.dropped_files").pasted(chat, lines, phase)
  end
end

---Begin to listen.
function M.listen()
  if package.loaded[KEPT] then
    return -- the wrapper of the modules before these, below one of another plugin
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

---Put back what was wrapped, unless another plugin has wrapped it in turn: then the wrapper passes everything on.
function M.stop()
  local kept = package.loaded[KEPT]
  if kept and vim.paste == kept.wrapper then
    vim.paste = kept.paste
    package.loaded[KEPT] = nil
  end
end

return M
