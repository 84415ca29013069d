---Places the anchors that separate machine text from the user's input in a chat buffer.
---
---Four anchors (extmarks) divide the buffer:
---  top     first row below the context block; older pieces of a restored chat are inserted here
---  tail    row where the next block of machine text goes
---  header  the row `## Me` above the input
---  input   start of the input, which extends to the end of the buffer
---Messages that are being sent are between `tail` and `header`. Role borders are anchors, never headings, so a message
---may contain any text (R-547).

local api = vim.api

local M = {}

M.ns = api.nvim_create_namespace("codecompanion.chat.anchors")

local SWEEP_MS, SWEEP_ROWS = 4, 500

local ID = { top = 1, tail = 2, header = 3, input = 4 }
local GRAVITY = { top = false, tail = true, header = true, input = false }

---@alias CodeCompanion.Anchor "top"|"tail"|"header"|"input"

---@param chat CodeCompanion.Chat
---@param anchor CodeCompanion.Anchor
---@return integer row 0-based
---@return integer col 0-based, bytes
function M.position(chat, anchor)
  local mark = api.nvim_buf_get_extmark_by_id(chat.bufnr, M.ns, ID[anchor], {})
  return mark[1] or 0, mark[2] or 0
end

---@param chat CodeCompanion.Chat
---@param anchor CodeCompanion.Anchor
---@param row integer
---@param col? integer
function M.place(chat, anchor, row, col)
  api.nvim_buf_set_extmark(chat.bufnr, M.ns, row, col or 0, {
    id = ID[anchor],
    right_gravity = GRAVITY[anchor],
    strict = false,
  })
end

---Remove the marks below the last line in slices: an unloaded buffer keeps them where its text was. They are invisible,
---and inserted text moves them along.
---@param chat CodeCompanion.Chat
local function sweep(chat)
  local bufnr, began = chat.bufnr, vim.uv.hrtime()
  repeat
    if not api.nvim_buf_is_loaded(bufnr) then
      return
    end
    local next = api.nvim_buf_get_extmarks(bufnr, -1, { api.nvim_buf_line_count(bufnr), 0 }, -1, { limit = 1 })[1]
    if not next then
      return
    end
    api.nvim_buf_clear_namespace(bufnr, -1, next[2], next[2] + SWEEP_ROWS)
  until (vim.uv.hrtime() - began) / 1e6 >= SWEEP_MS
  vim.defer_fn(function()
    sweep(chat)
  end, SWEEP_MS)
end

---Remove all marks except the anchors. Where there are lines, all namespaces are cleared at once, because clearing each
---one separately would search all marks.
---@param chat CodeCompanion.Chat
function M.clear_marks(chat)
  local places = {}
  for anchor in pairs(ID) do
    places[anchor] = { M.position(chat, anchor) }
  end
  api.nvim_buf_clear_namespace(chat.bufnr, -1, 0, api.nvim_buf_line_count(chat.bufnr) + 1)
  sweep(chat)
  for anchor, place in pairs(places) do
    M.place(chat, anchor, place[1], place[2])
  end
end

return M
