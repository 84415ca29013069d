---Protects newly drawn content under the cursor: a key pressed before it could be read is ignored.

local api = vim.api
local say = require("codecompanion.say")

local M = {}

---Time in milliseconds before a key acts on new content, unless the cursor is moved to it meanwhile.
M.UNREAD_MS = 500

---@class CodeCompanion.Drawn
---@field at number Time in milliseconds, infinite until all of it is drawn
---@field cursor? integer[] Position of the chat window's cursor at that time

---@return number
local function now()
  return (vim.uv or vim.loop).now()
end

---@param chat CodeCompanion.Chat
---@return integer[]?
local function cursor_of(chat)
  return api.nvim_get_current_buf() == chat.bufnr and api.nvim_win_get_cursor(0) or nil
end

---Return the time at which the current drawing becomes visible: one value for everything drawn at once.
---@param chat CodeCompanion.Chat
---@return CodeCompanion.Drawn
function M.stamp(chat)
  if not chat.being_drawn then
    local drawn = { at = math.huge }
    chat.being_drawn = drawn
    vim.schedule(function()
      chat.being_drawn = nil
      drawn.at, drawn.cursor = now(), cursor_of(chat)
    end)
  end
  return chat.being_drawn
end

---Return whether a key would act on content that has just appeared under the cursor; if so, notify the user. A key that
---is held down never acts.
---@param chat CodeCompanion.Chat
---@param thing? { drawn?: CodeCompanion.Drawn } An item or a change
---@return boolean
function M.is_unread(chat, thing)
  local drawn = thing and thing.drawn
  if not drawn or now() - drawn.at >= M.UNREAD_MS then
    return false
  elseif drawn.cursor and not vim.deep_equal(drawn.cursor, cursor_of(chat)) then
    return false
  end
  drawn.at = drawn.at == math.huge and drawn.at or now()
  say.hint("This just appeared: read it, then press the key again")
  return true
end

return M
