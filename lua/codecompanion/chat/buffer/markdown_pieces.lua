---Splits Markdown into pieces that can be highlighted one at a time, line by line.
---
---A piece ends at a blank line outside a fence, after a fence, and within a fence every MAX_CODE lines, so its cost
---does not depend on the length of the chat (lessons 46 and 50). Pure: takes lines, returns row counts and languages.

local M = {}

local MAX_CODE = 60
local MAX_TEXT = 80

---@class CodeCompanion.Scanner
---@field fence? { mark: string, size: integer, lang: string } The open fence
---@field lines integer Number of lines in the current piece
---@field blank boolean The previous line was blank
---@field lang? string The piece is code of this language, without its opening fence
---@field code integer Number of code lines since the fence or the last cut

---@return CodeCompanion.Scanner
function M.new()
  return { lines = 0, blank = false, code = 0 }
end

---@param line string
---@return string? mark, integer? size, string? info
local function fence_of(line)
  local ticks, info = line:match("^ ? ? ?(```+)%s*([^`]*)$")
  if not ticks then
    ticks, info = line:match("^ ? ? ?(~~~+)%s*(.*)$")
  end
  if ticks then
    return ticks:sub(1, 1), #ticks, info
  end
end

---@param scanner CodeCompanion.Scanner
---@param lang? string
---@param lines integer
local function begin(scanner, lang, lines)
  scanner.lang, scanner.lines, scanner.code = lang, lines, 0
end

---@alias CodeCompanion.LineKind "blank"|"text"|"heading"|"fence"|"code"

---Process the next line.
---@param scanner CodeCompanion.Scanner
---@param line string
---@return CodeCompanion.LineKind kind
---@return { lines: integer, lang?: string, fence?: boolean }[] ended Pieces that end before or with this line
function M.line(scanner, line)
  local mark, size, info = fence_of(line)
  local open = scanner.fence
  local ended = {}
  if open then
    if mark == open.mark and size >= open.size and info:match("^%s*$") then
      scanner.fence = nil
      scanner.blank = false
      if scanner.lang then
        ended[1] = { lines = scanner.lines, lang = scanner.lang }
        ended[2] = { lines = 1, fence = true }
      else
        ended[1] = { lines = scanner.lines + 1 }
      end
      begin(scanner, nil, 0)
      return "fence", ended
    end
    if scanner.code >= MAX_CODE then
      ended[1] = { lines = scanner.lines, lang = scanner.lang }
      begin(scanner, open.lang, 0)
    end
    scanner.lines, scanner.code = scanner.lines + 1, scanner.code + 1
    return "code", ended
  end
  local blank = line:find("^%s*$") ~= nil
  local cut = scanner.blank and not blank and not line:find("^%s") or scanner.lines >= MAX_TEXT
  if cut and scanner.lines > 0 then
    ended[1] = { lines = scanner.lines }
    begin(scanner, nil, 0)
  end
  scanner.lines = scanner.lines + 1
  scanner.blank = blank
  if mark then
    scanner.fence = { mark = mark, size = size, lang = (info or ""):match("^[%w_+#-]*") or "" }
    scanner.code = 0
    return "fence", ended
  end
  if blank then
    return "blank", ended
  end
  return line:find("^#+ ") and "heading" or "text", ended
end

---Return the remaining piece at the end of the text.
---@param scanner CodeCompanion.Scanner
---@return { lines: integer, lang?: string }?
function M.rest(scanner)
  if scanner.lines > 0 then
    return { lines = scanner.lines, lang = scanner.lang }
  end
end

---Split complete text into pieces.
---@param lines string[]
---@return { lines: integer, lang?: string, fence?: boolean }[]
function M.split(lines)
  local scanner, pieces = M.new(), {}
  for _, line in ipairs(lines) do
    local _, ended = M.line(scanner, line)
    vim.list_extend(pieces, ended)
  end
  pieces[#pieces + 1] = M.rest(scanner)
  return pieces
end

return M
