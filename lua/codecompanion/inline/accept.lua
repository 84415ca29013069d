---Accepts a suggestion: all of it, its next line or its next word (R-262).
---
---Each acceptance is one undo step, between two `i_CTRL-G_u`. The API inserts the text, so indenting, 'textwidth',
---abbreviations and mappings of auto-pairs do not apply. |nvim_paste()| is called to record the text for `.`; meanwhile
---`vim.paste` is replaced by the function that inserts it, so nothing else is pasted.

local flow = require("codecompanion.inline.flow")

local api = vim.api

local M = {}

---@alias CodeCompanion.SuggestionPart "all"|"line"|"word"

local NEXT_WORD = [[^\_s*\%(\k\+\|\%(\k\@!\S\)\+\)]]

---Return the part of a suggestion to accept.
---@param text string
---@param part CodeCompanion.SuggestionPart
---@return string
function M.part_of(text, part)
  if part == "line" then
    return text:match("^\n?[^\n]*")
  elseif part == "word" then
    local found = vim.fn.matchstr(text, NEXT_WORD)
    return found ~= "" and found or text
  end
  return text
end

---@param place CodeCompanion.Place
---@param text string
local function insert(place, text)
  local lines = vim.split(text, "\n", { plain = true })
  api.nvim_buf_set_text(place.bufnr, place.row, place.col, place.row, place.col, lines)
  local last = #lines[#lines]
  api.nvim_win_set_cursor(0, { place.row + #lines, #lines == 1 and place.col + last or last })
end

---Insert a part of the suggestion inside the new undo step. Called by the keys that `start` feeds.
---@param part CodeCompanion.SuggestionPart
function M.finish(part)
  local rest, here = flow.rest()
  if not rest or rest == "" then
    return
  end
  local taken = M.part_of(rest, part)
  local paste = vim.paste
  vim.paste = function() ---@diagnostic disable-line: duplicate-set-field
    insert(here, taken)
    return true
  end
  local ok, problem = pcall(api.nvim_paste, taken, false, -1)
  vim.paste = paste
  if not ok then
    error(problem, 0)
  end
  flow.on_accepted(rest:sub(#taken + 1))
end

---Accept a part of the suggestion. The insertion runs before the next key: an expression mapping may be waiting for the
---result, and must not change the text itself.
---@param part CodeCompanion.SuggestionPart
---@return boolean accepted Whether there is a suggestion
function M.start(part)
  if not flow.is_shown() then
    return false
  end
  local call = ("<Cmd>lua require('codecompanion.inline.accept').finish('%s')<CR>"):format(part)
  api.nvim_feedkeys(vim.keycode("<C-g>u" .. call .. "<C-g>u"), "ni", false)
  return true
end

return M
