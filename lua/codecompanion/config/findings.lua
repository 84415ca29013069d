---Findings about the configuration and their presentation: a short line after startup, the full list in a float
---(`:CodeCompanion problems`) and in `:checkhealth`.

local M = {}

local MORE = ":CodeCompanion problems"

---@class CodeCompanion.Findings
---@field problems string[] Mistakes, each with its key path; the default applies
---@field old_names string[] Deprecated names that still work
---@field foreign string[] Options of codecompanion.nvim that have no effect here
---@field moves CodeCompanion.Move[] Options of codecompanion.nvim that were renamed
---@field failures? string[] Failures of user-defined tools and strategies at run time

---@param count integer
---@param one string
---@param many string
---@return string?
local function counted(count, one, many)
  return count > 0 and ("%d %s"):format(count, count == 1 and one or many) or nil
end

---Return the message shown right after startup in several lengths, longest first, to fit command lines of any width;
---empty if nothing was found.
---@param findings CodeCompanion.Findings
---@return string[]
function M.sentences(findings)
  local problems, old, foreign = #findings.problems, #findings.old_names, #findings.foreign
  if problems + old + foreign == 0 then
    return {}
  end
  local function sentence(...)
    local parts = {}
    for index = 1, select("#", ...) do
      parts[#parts + 1] = (select(index, ...))
    end
    return ("%s: %s"):format(table.concat(parts, ", "), MORE)
  end
  local mistakes = problems > 0 and "mistakes" or nil -- without a number, because the host checks the rest later
  local theirs = "%s of codecompanion.nvim %s nothing here"
  local names = counted(old, "old name", "old names")
  local whole = {}
  if problems + old + foreign == 1 and foreign == 0 then
    whole[1] = findings.problems[1] or findings.old_names[1]
  end
  return vim.list_extend(whole, {
    sentence(
      mistakes and mistakes .. " in setup()",
      names and names .. " in setup()",
      counted(foreign, theirs:format("option", "does"), theirs:format("options", "do"))
    ),
    sentence(mistakes, names, counted(foreign, "option does nothing here", "options do nothing here")),
    sentence(mistakes or names or counted(foreign, "unused option", "unused options")),
    MORE,
  })
end

---@param lines string[]
---@param heading string?
---@param entries string[]
local function section(lines, heading, entries)
  if not heading then
    return
  end
  if #lines > 0 then
    lines[#lines + 1] = ""
  end
  lines[#lines + 1] = "# " .. heading
  lines[#lines + 1] = ""
  for _, entry in ipairs(entries) do
    lines[#lines + 1] = "- " .. entry:gsub("%s*\n%s*", " ")
  end
end

---Return all findings as Markdown.
---@param findings CodeCompanion.Findings
---@param of_prompts? string[] Problems with prompts
---@return string[] lines Empty if nothing was found
function M.report(findings, of_prompts)
  local lines = {}
  local problems, foreign = findings.problems, findings.foreign
  section(lines, counted(#problems, "mistake: ignored", "mistakes: ignored"), problems)
  local failures = findings.failures or {}
  section(lines, counted(#failures, "failure in your own code", "failures in your own code"), failures)
  local prompts = of_prompts or {}
  section(lines, counted(#prompts, "problem in a prompt", "problems in prompts"), prompts)
  section(lines, counted(#findings.old_names, "old name: still works", "old names: still work"), findings.old_names)
  local unused =
    counted(#foreign, "option of codecompanion.nvim does nothing here", "options of codecompanion.nvim do nothing here")
  section(lines, unused, foreign)
  local moves = findings.moves
  local taken = counted(#moves, "option of codecompanion.nvim works", "options of codecompanion.nvim work")
  section(lines, taken and taken .. " under another name", M.moves(findings))
  return lines
end

---@param findings CodeCompanion.Findings
---@return string[]
function M.moves(findings)
  return vim.tbl_map(function(move)
    return ("%s → %s"):format(move.from, move.to)
  end, findings.moves)
end

---Show all findings in a float.
---@param findings CodeCompanion.Findings
---@param is_complete boolean Whether the host has run its checks
---@param of_prompts? string[] Problems with prompts
function M.open(findings, is_complete, of_prompts)
  local lines = M.report(findings, of_prompts)
  if #lines == 0 then
    local none = "no mistakes in the configuration"
    return require("codecompanion.say").line({
      is_complete and none or none .. "; adapters and policies are checked further when a chat opens",
      none,
    })
  end
  local float = require("codecompanion.screen.float")
  float.open({ title = "Configuration", lines = lines, filetype = "markdown", footer = "q close" })
end

return M
