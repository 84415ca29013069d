---What a turn changed as a quickfix list: one entry for each place.

local review = require("codecompanion.files.review")
local say = require("codecompanion.say")
local session = require("codecompanion.chat.state.session")

local M = {}

---What one place is: how much of it changed, and its first line.
---@param row table
---@param place { added: integer, removed: integer, text: string }
---@return string
local function text_of(row, place)
  local parts = { require("codecompanion.files.counts").text(place), row.state == "unsaved" and "not saved" or nil }
  return table.concat(parts, " ") .. " · " .. place.text
end

---@param chat CodeCompanion.Chat
---@param rows table[] Newest first
---@param all boolean
---@param turn_id? string
---@return table[] items
local function items_of(chat, rows, all, turn_id)
  local items = {}
  for _, row in ipairs(rows) do
    review.follow(chat, row)
    local counts = not row.reverted or review.is_reverted(chat, row)
    if row.tool ~= "revert" and counts and not row.deleted then
      turn_id = turn_id or row.turn_id
      if all or row.turn_id == turn_id then
        for at = #row.places, 1, -1 do
          local place = row.places[at]
          local text = review.mark(chat, row.change_id, at - 1) .. text_of(row, place)
          local data = { change_id = row.change_id, hunk = at - 1, path = row.path, reverted = row.reverted }
          table.insert(items, 1, { filename = row.path, lnum = place.line, text = text, user_data = data })
        end
      end
    end
  end
  return items
end

---Put the places into the list that is there, with what has been decided about them.
---@param items table[]
local function refill(items)
  local line = vim.fn.getqflist({ winid = 0 }).winid
  local at = line > 0 and vim.api.nvim_win_get_cursor(line) or nil
  vim.fn.setqflist({}, "r", { title = review.TITLE, items = items })
  if at then
    pcall(vim.api.nvim_win_set_cursor, line, at)
  end
end

---Fill the quickfix list and open it: a review, with keys of its own.
---@param chat CodeCompanion.Chat
---@param all boolean The whole chat, not only the newest turn that changed something
---@param turn_id? string Another turn
function M.fill(chat, all, turn_id)
  session.request(chat, "list_changes", { hunks = true }, function(rows)
    local items = items_of(chat, rows, all, turn_id)
    if #items == 0 then
      return say.line("The tools of this chat have changed no files that are there now.")
    end
    vim.fn.setqflist({}, " ", { title = review.TITLE, items = items })
    vim.cmd("botright copen")
    review.set_keys(chat, function()
      session.request(chat, "list_changes", { hunks = true }, function(now)
        if vim.fn.getqflist({ title = 0 }).title == review.TITLE then
          refill(items_of(chat, now, all, turn_id))
        end
      end)
    end)
  end)
end

return M
