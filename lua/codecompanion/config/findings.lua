---Findings about the configuration and their presentation: a short line after startup, the full list in a float
---(`:CodeCompanion problems`) and in `:checkhealth`.

local M = {}

local MORE = ":CodeCompanion problems"

---@class CodeCompanion.Findings
---@field problems string[] Mistakes, each with its key path; the default applies
---@field used? table<string, string> Value used instead, by problem, if there is a single one
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

---Return the sentences about mistakes, longest first. Each names the first option with a mistake, if it fits.
---@param problems string[]
---@param is_all boolean Whether these are the only findings
---@return string[]
local function about_mistakes(problems, is_all)
  local first = problems[1]:gsub("^setup%(%): ", "")
  local option = first:match("^([^%s:]+): ")
  local stop = first:find("%p$") and "" or "."
  if #problems == 1 then
    local sentences = { "setup(): " .. first .. (is_all and "" or ("%s More: %s"):format(stop, MORE)), first }
    if option then
      local clause, short = first:sub(#option + 3):match("^[^:;]+"), option:match("[^.]+%.[^.]+$")
      sentences[#sentences + 1] = clause and ("%s: %s"):format(option, clause)
      sentences[#sentences + 1] = clause and short and ("%s: %s · %s"):format(short, clause, MORE)
      sentences[#sentences + 1] = clause and short and ("%s: %s"):format(short, clause)
      vim.list_extend(sentences, { ("%s is wrong: %s"):format(option, MORE), option .. " is wrong" })
    end
    return vim.list_extend(sentences, { "1 mistake in setup(): " .. MORE, "1 mistake: " .. MORE })
  end
  local count = ("%d mistakes"):format(#problems)
  local sentences = { ("%s in setup(). First: %s%s All: %s"):format(count, first, stop, MORE) }
  if option then
    sentences[2] = ("%s in setup(), first %s: %s"):format(count, option, MORE)
    sentences[3] = ("%s, first %s: %s"):format(count, option, MORE)
  end
  return vim.list_extend(sentences, { ("%s in setup(): %s"):format(count, MORE), ("%s: %s"):format(count, MORE) })
end

---Return the message shown right after startup in several lengths, longest first, to fit command lines of any width;
---empty if nothing was found.
---@param findings CodeCompanion.Findings
---@return string[]
function M.sentences(findings)
  local problems, old, foreign = #findings.problems, #findings.old_names, #findings.foreign
  if problems + old + foreign == 0 then
    return {}
  elseif problems > 0 then
    return vim.list_extend(about_mistakes(findings.problems, old + foreign == 0), { MORE })
  end
  local function sentence(...)
    local parts = {}
    for index = 1, select("#", ...) do
      parts[#parts + 1] = (select(index, ...))
    end
    return ("%s: %s"):format(table.concat(parts, ", "), MORE)
  end
  local names = counted(old, "old name", "old names")
  local unused = counted(foreign, "option does nothing here", "options do nothing here")
  return vim.list_extend(old + foreign == 1 and { findings.old_names[1] } or {}, {
    sentence(names and names .. " in setup()", unused),
    sentence(names, unused),
    sentence(names or counted(foreign, "unused option", "unused options")),
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

---Return the mistakes, each with the value used instead, if there is a single one.
---@param findings CodeCompanion.Findings
---@return string[]
function M.problems(findings)
  return vim.tbl_map(function(problem)
    local used = (findings.used or {})[problem]
    return used and ("%s (used instead: %s)"):format(problem, used) or problem
  end, findings.problems)
end

---Return all findings as Markdown.
---@param findings CodeCompanion.Findings
---@param of_prompts? string[] Problems with prompts
---@return string[] lines Empty if nothing was found
function M.report(findings, of_prompts)
  local lines = {}
  local problems, foreign = findings.problems, findings.foreign
  local ignored = #problems == 1 and "this option is ignored" or "these options are ignored"
  local heading = counted(#problems, "mistake in setup(): ", "mistakes in setup(): ")
  section(lines, heading and heading .. ignored, M.problems(findings))
  local failures = findings.failures or {}
  section(lines, counted(#failures, "failure in your own code", "failures in your own code"), failures)
  local prompts = of_prompts or {}
  section(lines, counted(#prompts, "problem in a prompt", "problems in prompts"), prompts)
  section(lines, counted(#findings.old_names, "old name: still works", "old names: still work"), findings.old_names)
  section(lines, counted(#foreign, "option does nothing here", "options do nothing here"), foreign)
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
      is_complete and none or none .. "; adapters and policies are checked in more detail when a chat opens",
      none,
    })
  end
  local float = require("codecompanion.screen.float")
  float.open({ title = "Configuration", lines = lines, filetype = "markdown", footer = "q close" })
end

return M
