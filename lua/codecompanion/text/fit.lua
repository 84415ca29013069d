---Fits text into the available width: measures a chat's windows and shortens text.

local api = vim.api

local M = {}

local MIN_PART = 18 -- in cells, including the separator
local MIN_NAME = 6 -- cells of a name's beginning that still identify it

---Return the number of text columns in a window.
---@param win integer
---@return integer
function M.room(win)
  local info = vim.fn.getwininfo(win)[1]
  return info and math.max(1, info.width - info.textoff) or vim.o.columns
end

---Return the number of text columns in the narrowest window that shows the chat, or in the whole editor if none does.
---@param chat CodeCompanion.Chat
---@return integer
function M.narrowest(chat)
  local width
  for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
    width = math.min(width or math.huge, M.room(win))
  end
  return width or vim.o.columns
end

---Maximum width, in cells, of the columns for signs, folds and numbers.
local MAX_BESIDE = 50

---Return whether a string fits beside the sign, fold and number columns at any width: measuring the columns takes
---longer than drawing the string.
---@param chat CodeCompanion.Chat
---@param cells integer
---@return boolean
function M.certainly_fits(chat, cells)
  for _, win in ipairs(vim.fn.win_findbuf(chat.bufnr)) do
    if api.nvim_win_get_width(win) - MAX_BESIDE < cells then
      return false
    end
  end
  return true
end

---Return a string for Vim functions, which would treat one with a NUL as a blob.
---@param text string
---@return string
function M.without_nul(text)
  return (text:gsub("%z", "^@"))
end

---Return the beginning of a string, at most `width` cells.
---@param text string
---@param width integer
---@return string
function M.head(text, width)
  local taken = vim.fn.strcharpart(M.without_nul(text), 0, math.max(width, 0), true)
  while taken ~= "" and api.nvim_strwidth(taken) > width do
    taken = vim.fn.strcharpart(taken, 0, vim.fn.strchars(taken, true) - 1, true)
  end
  return taken
end

---Return the end of a string, at most `width` cells.
---@param text string
---@param width integer
---@return string
function M.tail(text, width)
  text = M.without_nul(text)
  local count = vim.fn.strchars(text, true)
  local taken = vim.fn.strcharpart(text, math.max(0, count - math.max(width, 0)), count, true)
  while taken ~= "" and api.nvim_strwidth(taken) > width do
    taken = vim.fn.strcharpart(taken, 1, count, true)
  end
  return taken
end

---Shorten a string at its end.
---@param text string
---@param width integer
---@return string
function M.cut(text, width)
  if api.nvim_strwidth(text) <= width then
    return text
  end
  return width < 1 and "" or (M.head(text, width - 1) .. "…")
end

---Shorten a string at its end, at a word boundary unless less than a third of the width would remain.
---@param text string
---@param width integer
---@return string
function M.cut_words(text, width)
  local cut = M.cut(text, width)
  if cut == text or cut == "" then
    return cut
  end
  local whole = M.head(text, width - 2)
  local words = text:sub(#whole + 1, #whole + 1):find("^%s") and whole or whole:match("^(.*%S)%s+%S*$")
  if not words or api.nvim_strwidth(words) * 3 < width then
    return cut
  end
  return (words:gsub("[%s,;:]+$", ""):gsub(" ·$", "")) .. " …"
end

---Shorten a string in its middle: its beginning and end are the most informative.
---@param text string
---@param width integer
---@return string
function M.squeeze(text, width)
  if api.nvim_strwidth(text) <= width then
    return text
  elseif width < 12 then
    return M.cut(text, width)
  end
  local last = math.floor((width - 1) / 3)
  local ending = M.tail(text, last)
  return M.head(text, width - 1 - api.nvim_strwidth(ending)) .. "…" .. ending
end

---Shorten a string of two parts joined by ` · `, the second of which is a reason: the first part is shortened, then
---omitted. If the second part is a file name, its beginning and end are kept.
---@param text string
---@param width integer
---@return string
function M.reason(text, width)
  local what, why = text:match("^(.-) · (.*)$")
  if not what or why:find("^%S*[/.]%w") or api.nvim_strwidth(text) <= width then
    return M.squeeze(text, width)
  end
  local left = width - api.nvim_strwidth(" · " .. why)
  return left >= MIN_NAME and M.cut(what, left) .. " · " .. why or M.cut(why, width)
end

---Shorten a path by omitting folders in its middle; the file name matters most and is never shortened.
---@param path string
---@param width integer
---@return string
function M.path(path, width)
  if api.nvim_strwidth(path) <= width then
    return path
  end
  local parts = vim.split(path, "/", { plain = true })
  for kept = #parts - 2, 0, -1 do
    local first = math.floor(kept / 2)
    local shown = vim.list_slice(parts, 1, first)
    shown[first + 1] = "…"
    vim.list_extend(shown, parts, #parts - kept + first)
    local text = table.concat(shown, "/")
    if api.nvim_strwidth(text) <= width then
      return text
    end
  end
  return parts[#parts]
end

---Shorten the title of a tool call at its end: the name of the tool is kept whole. A path loses its folders first, then
---the beginning of the file's name.
---@param title string `run_command npm test`
---@param width integer
---@return string
function M.call(title, width)
  local name, argument = title:match("^(%S+ )(.+)$")
  if not name or api.nvim_strwidth(title) <= width or api.nvim_strwidth(name) >= width then
    return M.cut(title, width)
  end
  local left = width - api.nvim_strwidth(name)
  if not argument:find("^%S*/%S*$") and not argument:find("^%S+%.%w+$") then
    return name .. M.cut(argument, left)
  end
  local path = M.path(argument, left)
  return name .. (api.nvim_strwidth(path) <= left and path or "…" .. M.tail(path, left - 1))
end

---Join parts with ` · `; the last one is shortened if enough of it remains to be useful, otherwise omitted.
---@param parts string[] The first one is always included
---@param width integer
---@return string
function M.parts(parts, width)
  local text = parts[1]
  for index = 2, #parts do
    local more = text .. " · " .. parts[index]
    if api.nvim_strwidth(more) > width then
      local is_worth_it = width - api.nvim_strwidth(text) >= MIN_PART
      return is_worth_it and M.cut(more, width) or text
    end
    text = more
  end
  return text
end

---@param chunks { [1]: string, [2]: string }[]
---@return integer
function M.width(chunks)
  local width = 0
  for _, chunk in ipairs(chunks) do
    width = width + api.nvim_strwidth(chunk[1])
  end
  return width
end

---Shorten chunks at their end.
---@param chunks { [1]: string, [2]: string }[]
---@param width integer
---@return { [1]: string, [2]: string }[]
function M.cut_chunks(chunks, width)
  local found = {}
  for index, chunk in ipairs(chunks) do
    local text = api.nvim_strwidth(chunk[1])
    if text > width or (text == width and index < #chunks) then
      found[#found + 1] = { M.cut(chunk[1] .. " ", width), chunk[2] }
      break
    end
    found[#found + 1], width = chunk, width - text
  end
  return found
end

---Wrap a sentence into lines of at most `width` cells.
---@param text string
---@param width integer
---@return string[]
function M.wrap(text, width)
  local lines, line = {}, ""
  for word in text:gmatch("%S+") do
    if line ~= "" and api.nvim_strwidth(line) + 1 + api.nvim_strwidth(word) > width then
      lines[#lines + 1], line = line, word
    else
      line = line == "" and word or (line .. " " .. word)
    end
  end
  lines[#lines + 1] = line
  return lines
end

---Split a line into rows of at most `width` cells, like a wrapping window: virtual lines do not wrap by themselves.
---@param line string Without tabs
---@param width integer
---@return string[]
function M.rows(line, width)
  if #line <= width or vim.fn.strdisplaywidth(line) <= width then
    return { line }
  end
  local rows, row, used = {}, {}, 0
  for _, char in ipairs(vim.fn.split(line, "\\zs")) do
    local cells = vim.fn.strdisplaywidth(char)
    if used + cells > width then
      rows[#rows + 1], row, used = table.concat(row), {}, 0
    end
    row[#row + 1], used = char, used + cells
  end
  rows[#rows + 1] = table.concat(row)
  return rows
end

---Return the maximum number of rows that a line can take in a window with 'wrap', possibly with 'linebreak': a word
---longer than a row starts a row, and a wide character may leave the last cell of a row empty.
---@param text string
---@param width integer
---@return integer
function M.height(text, width)
  if api.nvim_strwidth(text) <= width then
    return 1
  end
  local rows, used, most = 1, 0, text:find("[\128-\255]") and width - 1 or width
  for word, after in text:gmatch("([^%s!@*+;:,./?-]*)([%s!@*+;:,./?-]*)") do
    local cells = api.nvim_strwidth(word)
    if used > 0 and used + cells > width then
      rows, used = rows + 1, 0
    end
    used = used + api.nvim_strwidth(word .. after)
    rows = rows + math.floor(math.max(0, used - 1) / most)
    used = used > 0 and (used - 1) % most + 1 or 0
  end
  return rows
end

---Return the position of a note beside a line: at the right edge if there is space, otherwise after its text; a note
---that would be split inside a word begins on the next row.
---@param line string
---@param chunks { [1]: string, [2]: string }[]
---@param room integer
---@return "right_align"|"inline" position
---@return { [1]: string, [2]: string }[] chunks
function M.beside(line, chunks, room)
  if api.nvim_strwidth(line) + 2 + M.width(chunks) <= room then
    return "right_align", chunks
  end
  local after, width = vim.list_slice(chunks), M.width(chunks)
  local used = api.nvim_strwidth(line) % room
  local gap = used + 2 + width <= room and 2 or width <= room and used > 0 and room - used or 2
  after[1] = { (" "):rep(gap) .. after[1][1], after[1][2] }
  return "inline", after
end

return M
