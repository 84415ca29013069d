---Parses editor context mentions in a message: `#{name}` and `#{name:argument}`, outside fenced code and backticks. The
---rules match those of the host (`codecompanion.retrieval.mentions`); a test compares the two.

local M = {}

---@class CodeCompanion.EditorContext.Mention
---@field written string As written in the message
---@field name string In lower case
---@field argument string "" if there is none

---Return the text without fenced code; an unclosed fence extends to the end.
---@param text string
---@return string
local function without_fenced(text)
  if not text:find("```", 1, true) and not text:find("~~~", 1, true) then
    return text
  end
  local kept, fence = {}, nil
  for _, line in ipairs(vim.split(text, "\n", { plain = true })) do
    local indent, run = line:match("^( *)(```+)")
    if not run then
      indent, run = line:match("^( *)(~~~+)")
    end
    local opens = run ~= nil and #indent <= 3
    if opens and not fence then
      fence = run
    elseif not fence then
      kept[#kept + 1] = line
    elseif opens and vim.startswith(run, fence) and line:sub(#indent + #run + 1):find("^%s*$") then
      fence = nil
    end
  end
  return table.concat(kept, "\n")
end

---Return the mentions in a message without duplicates, in order.
---@param text string
---@return CodeCompanion.EditorContext.Mention[]
function M.of(text)
  if not text:find("#{", 1, true) then
    return {}
  end
  local found, seen = {}, {}
  for line in vim.gsplit(without_fenced(text):gsub("`[^`\n]+`", " "), "\n", { plain = true }) do
    for before, written, inside in line:gmatch("()(#{([^{}]+)})") do
      local preceding = before > 1 and line:sub(before - 1, before - 1) or " "
      local name, argument = inside:match("^%s*([%a_][%w_]*)%s*:?(.*)$")
      local colon = inside:match("^%s*[%a_][%w_]*%s*(:?)")
      argument = vim.trim(argument or "")
      local _, quotes = line:sub(1, before - 1):gsub('"', "")
      local is_plain = name and (colon == ":" or argument == "") and quotes % 2 == 0 -- otherwise it is part of a string
      if is_plain and not preceding:find("[%w_\\#$/]") and not seen[written] then
        seen[written] = true
        found[#found + 1] = { written = written, name = name:lower(), argument = argument }
      end
    end
  end
  return found
end

return M
