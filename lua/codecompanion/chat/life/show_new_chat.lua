---Shows a new chat. If it replaces or covers another chat, a line says that the other one is open, and how to go back.

local api = vim.api
local buffer = require("codecompanion.chat.buffer.chat_text")
local hint = require("codecompanion.chat.buffer.input_hint")
local registry = require("codecompanion.chat.state.open_chats")
local say = require("codecompanion.say")
local shown = require("codecompanion.chat.buffer.shown")
local window = require("codecompanion.chat.window")

local M = {}

---@param chat CodeCompanion.Chat A chat whose buffer is loaded
---@return boolean
function M.has_content(chat)
  return chat.touched or #chat.outgoing > 0 or buffer.input_text(chat) ~= ""
end

---Remove the line about the replaced chat, because the user has gone to another one.
---@param chat CodeCompanion.Chat
function M.went_on(chat)
  if chat.instead_of then
    chat.instead_of = nil
    hint.draw(chat)
    say.nothing()
  end
end

---Show a new chat. The other chat is mentioned in the intro, or on the command line if a question was given with the
---command.
---@param chat CodeCompanion.Chat
---@param layout? string
function M.show(chat, layout)
  local before = vim.tbl_filter(function(other)
    return other ~= chat and #shown.visible(other) > 0 and M.has_content(other)
  end, registry.list())
  local is_float = api.nvim_win_get_config(window.open(chat, layout)).relative ~= ""
  chat.instead_of = vim.iter(before):find(function(other)
    return vim.iter(shown.visible(other)):all(function(win)
      return is_float and api.nvim_win_get_config(win).relative ~= "" -- floats have one place
    end)
  end)
  if chat.instead_of then
    hint.draw(chat)
    vim.schedule(function()
      local text = M.has_content(chat) and hint.about_replaced(chat)
      if text then
        say.hint(text)
      end
    end)
  end
end

return M
