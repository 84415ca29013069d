---What has just been drawn under the cursor: a key that was pressed before it could be read does nothing with it.

local api = vim.api
local say = require("codecompanion.say")

local M = {}

---Milliseconds that something is shown before a key acts on it, unless the cursor is moved to it meanwhile.
M.UNREAD_MS = 500

---@class CodeCompanion.Drawn
---@field at number In milliseconds, infinite until all of it is drawn
---@field cursor? integer[] Where the cursor of the chat's window was then

---@return number
local function now()
  return (vim.uv or vim.loop).now()
end

---@param chat CodeCompanion.Chat
---@return integer[]?
local function cursor_of(chat)
  return api.nvim_get_current_buf() == chat.bufnr and api.nvim_win_get_cursor(0) or nil
end

---When what is drawn now can be seen: one value for all that is drawn at once.
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

---Whether a key would act on what has only just come under the cursor; the user is told, and a key that is held down
---never does.
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
  say.hint("This has just appeared: read it, then press the key again")
  return true
end

return M
