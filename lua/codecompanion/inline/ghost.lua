---Draws a suggestion at the cursor: its first line in the line, the others as virtual lines below it. Nothing of it is
---in the buffer.

local api = vim.api

local M = {}

local GHOST = "CodeCompanionGhost"
local HINT = "CodeCompanionGhostHint"
local MAX_LINES = 40
local ns = api.nvim_create_namespace("codecompanion.ghost")
---@type { bufnr: integer, id: integer, is_hint: boolean?, row: integer, col: integer }?
local drawn

---Tabs as the blanks that they are at this column: in virtual text they would be `^I`.
---@param text string
---@param column integer Display column at which it begins
---@return string
local function without_tabs(text, column)
  if not text:find("\t", 1, true) then
    return text
  end
  local parts, width = {}, column
  for piece, tab in text:gmatch("([^\t]*)(\t?)") do
    parts[#parts + 1] = piece
    width = width + vim.fn.strdisplaywidth(piece, width)
    if tab ~= "" then
      local cells = vim.fn.strdisplaywidth("\t", width)
      parts[#parts + 1] = (" "):rep(cells)
      width = width + cells
    end
  end
  return table.concat(parts)
end

---The first line over the rest of the cursor's line, which then stands at the end of the last line of the suggestion.
---@param first string
---@param place CodeCompanion.Place
---@param column integer
---@return table? chunks nil: it does not fit into the window's line
local function over_the_rest(first, place, column)
  local covered = vim.fn.strdisplaywidth(place.after, column)
  local width = vim.fn.strdisplaywidth(first, column)
  local info = vim.fn.getwininfo(api.nvim_get_current_win())[1]
  if column + math.max(covered, width) > info.width - info.textoff then
    return nil
  end
  return { { first .. (" "):rep(covered - width), GHOST } }
end

---The buffer may be shown in other windows too, where nobody types.
---@param bufnr integer
local function only_here(bufnr)
  if not api.nvim__ns_set then
    return
  end
  local windows = #vim.fn.win_findbuf(bufnr) > 1 and { api.nvim_get_current_win() } or {}
  pcall(api.nvim__ns_set, ns, { wins = windows })
end

---@param lines string[] Without the first
---@param tail string What stands after the last one
---@return table virt_lines
local function below(lines, tail)
  local shown = {}
  for number = 1, math.min(#lines, MAX_LINES) do
    shown[number] = { { without_tabs(lines[number], 0), GHOST } }
  end
  if #lines > MAX_LINES then
    shown[#shown + 1] = { { ("… %d more lines"):format(#lines - MAX_LINES), GHOST } }
  elseif tail ~= "" then
    table.insert(shown[#shown], { tail, GHOST })
  end
  return shown
end

---Draw a suggestion in the current window, in the place of the one before.
---@param place CodeCompanion.Place
---@param text string
function M.show(place, text)
  local lines = vim.split(text, "\n", { plain = true })
  local column = vim.fn.virtcol({ place.row + 1, place.col }) -- where the cursor's character begins
  local first = without_tabs(table.remove(lines, 1), column)
  local id = drawn and drawn.bufnr == place.bufnr and not drawn.is_hint and drawn.id or nil
  local mark = { id = id, hl_mode = "combine" }
  local covering = #lines > 0 and place.after ~= "" and over_the_rest(first, place, column) or nil
  if covering then
    mark.virt_text, mark.virt_text_pos = covering, "overlay"
  elseif first ~= "" then
    mark.virt_text, mark.virt_text_pos = { { first, GHOST } }, "inline"
  end
  if #lines > 0 then
    mark.virt_lines = below(lines, covering and place.after or "")
  end
  if drawn and (drawn.is_hint or drawn.bufnr ~= place.bufnr) then
    M.clear()
  end
  only_here(place.bufnr)
  local ok, new = pcall(api.nvim_buf_set_extmark, place.bufnr, ns, place.row, place.col, mark)
  drawn = ok and { bufnr = place.bufnr, id = new, row = place.row, col = place.col } or nil
end

---Take it away.
function M.clear()
  if drawn then
    pcall(api.nvim_buf_del_extmark, drawn.bufnr, ns, drawn.id)
    drawn = nil
  end
end

---Say something after the cursor's line, until the next key. The command line is no place for it: in Insert mode
---'showmode' takes it.
---@param place CodeCompanion.Place
---@param text string
function M.hint(place, text)
  M.clear()
  local mark = { virt_text = { { text:gsub("\n", " "), HINT } }, hl_mode = "combine" }
  local ok, id = pcall(api.nvim_buf_set_extmark, place.bufnr, ns, place.row, place.col, mark)
  drawn = ok and { bufnr = place.bufnr, id = id, is_hint = true, row = place.row, col = place.col } or nil
end

---@return boolean
function M.is_shown()
  return drawn ~= nil and not drawn.is_hint
end

---Take a hint away, unless it is one for this place.
---@param row? integer 0-based
---@param col? integer
function M.clear_hint(row, col)
  if drawn and drawn.is_hint and not (drawn.row == row and drawn.col == col) then
    M.clear()
  end
end

return M
