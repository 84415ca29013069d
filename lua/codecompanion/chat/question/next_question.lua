---Moves the cursor to the next question of the turn, if the user answered one on its block and has not moved since. A
---key meant for the previous question does not act on a block that has just appeared: it has to be read first.

local api = vim.api
local kinds = require("codecompanion.chat.state.question_kinds")
local marks = require("codecompanion.chat.buffer.row_marks")
local say = require("codecompanion.say")

local M = {}

---Time in milliseconds before a key acts on a new block; a key that is held down never does.
M.UNREAD_MS = 500

local RUNS = { accept_change = true, always_accept = true }

---Return the position of the cursor relative to the end, so that text drawn above the input does not change it.
---@param chat CodeCompanion.Chat
---@return { win: integer, below: integer, col: integer }? place nil if the user is not in Normal mode in the chat
local function place(chat)
  if api.nvim_get_current_buf() ~= chat.bufnr or api.nvim_get_mode().mode ~= "n" then
    return nil
  end
  local cursor = api.nvim_win_get_cursor(0)
  local below = api.nvim_buf_line_count(chat.bufnr) - cursor[1]
  return { win = api.nvim_get_current_win(), below = below, col = cursor[2] }
end

---Wait for the next question after the one under the cursor was answered and removed.
---@param chat CodeCompanion.Chat
function M.wait(chat)
  chat.follows = place(chat)
end

---Stop waiting at the end of the turn.
---@param chat CodeCompanion.Chat
function M.stop(chat)
  chat.follows = nil
end

---Go to an open question, if the cursor waits for one and the user has not moved it.
---@param chat CodeCompanion.Chat
---@param approval? CodeCompanion.Approval
function M.go(chat, approval)
  if not approval or not chat.follows or kinds[approval.event.kind] then
    return
  end
  local stays = vim.deep_equal(chat.follows, place(chat))
  chat.follows = nil
  local row = stays and marks.item_rows(chat, approval.item)
  if row then
    api.nvim_win_set_cursor(0, { row + 1, 0 })
    vim.cmd("normal! zv")
    approval.came_at = (vim.uv or vim.loop).now()
  end
end

---Return whether a key would act on a block that has just appeared under the cursor; if so, notify the user.
---@param approval CodeCompanion.Approval
---@param name string Action
---@return boolean
function M.is_unread(approval, name)
  local now = (vim.uv or vim.loop).now()
  if not RUNS[name] or not approval.came_at or now - approval.came_at >= M.UNREAD_MS then
    return false
  end
  approval.came_at = now
  say.hint("This approval just appeared: read it, then press the key again")
  return true
end

return M
