---Implements the user commands that `plugin/codecompanion.lua` declares.

local say = require("codecompanion.say")
local severity = require("codecompanion.severity")
local starting_with = require("codecompanion.values.starting_with")
local subcommands = require("codecompanion.commands.subcommands")

local M = {}

---Return whether no command can run now; if so, notify the user of the reason.
---@return boolean
local function is_refused()
  return require("codecompanion.commands.command_line_window").refuses()
    or require("codecompanion.commands.conflict").check()
end

---@param command string
---@param name string
---@param known string[]
local function refuse_name(command, name, known)
  local near = require("codecompanion.values.nearest").word(name:lower(), known)
  local all = table.concat(known, ", ")
  if near then
    local meant = ("No command %s; did you mean %s?"):format(name, near)
    return say.line({ ("%s :%s takes %s"):format(meant, command, all), meant }, severity.ERROR)
  end
  local none = ("No command %s"):format(name)
  local edits = command == "CodeCompanion" and ". To edit with one word, select lines first" or ""
  local lists = none .. "; <Tab> lists them"
  say.line({ ("%s; :%s takes %s"):format(none, command, all), lists .. edits, lists }, severity.ERROR)
end

---@param table_of_names table<string, any>
---@return string[]
local function sorted_names(table_of_names)
  local names = vim.tbl_keys(table_of_names)
  table.sort(names)
  return names
end

---Return whether the cursor is in the first argument.
---@param line string
---@param position integer
---@return boolean
local function is_first_argument(line, position)
  return line:sub(1, position):match("^.-CodeCompanion%a*!?%s+%S*$") ~= nil
end

---Return whether several words are an instruction for an edit in place. With a range they always are; without one, only
---if they do not begin with a subcommand or a misspelled subcommand.
---@param args { fargs: string[], range: integer }
---@return boolean
local function is_instruction(args)
  local words = args.fargs
  local name = words[1]:lower()
  if args.range > 0 then
    return true
  elseif subcommands[name] then
    return false
  end
  local near = #words == 2 and require("codecompanion.values.nearest").word(name, vim.tbl_keys(subcommands))
  local arguments = near and subcommands[near].arguments
  return type(arguments) ~= "table" or not vim.list_contains(arguments, words[2]:lower())
end

---@return string[] aliases Aliases of all currently known prompts
local function prompt_aliases()
  local aliases = {}
  for _, prompt in ipairs(require("codecompanion.prompt_library").list()) do
    aliases[#aliases + 1] = prompt.alias ~= "" and prompt.alias or nil
  end
  return aliases
end

---Run the prompt with this name, or else use the word as an instruction to edit the range in place. Report an error if
---there is no range, or if the word is probably a misspelled name.
---@param word string Not a subcommand
---@param args { range: integer, line1: integer, line2: integer }
local function run_word(word, args)
  local use_prompt, library = require("codecompanion.commands.use_prompt"), require("codecompanion.prompt_library")
  local edit = args.range > 0 and use_prompt.edit_here(args) or nil
  local function decide()
    if library.find(word) then
      return use_prompt.by_name(word, "", args)
    end
    local names = vim.list_extend(prompt_aliases(), vim.tbl_keys(subcommands))
    if not edit then
      table.sort(names)
      return refuse_name("CodeCompanion", word, vim.fn.uniq(names) --[[@as string[] ]])
    end
    local nearest = require("codecompanion.values.nearest")
    local near = nearest.word(word, names)
    if near and nearest.distance(word:lower(), near) == 1 then
      local meant = ("No prompt %s; did you mean %s?"):format(word, near)
      return say.line({ meant .. " To edit the lines, use two or more words", meant }, severity.ERROR)
    end
    edit(word)
  end
  if library.find(word) then
    return decide()
  end
  library.refresh_if_stale(decide)
end

---Run `:[range]CodeCompanion`: without arguments, open the palette; otherwise run a subcommand, a prompt by name,
---`/{prompt} words`, or an instruction for an edit in place.
---@param args { args: string, fargs: string[], range: integer, line1: integer, line2: integer }
function M.run(args)
  if is_refused() then
    return
  end
  local prompt, argument = (args.args .. " "):match("^%s*/(%a[%w_-]*)%s+(.-)%s*$")
  if prompt then
    return require("codecompanion.commands.use_prompt").by_name(prompt, argument, args)
  end
  local words = args.fargs
  if #words == 0 then
    return require("codecompanion.commands.palette").open(args)
  elseif #words > 1 and is_instruction(args) then
    local range = args.range > 0 and { args.line1, args.line2 } or nil
    return require("codecompanion.edit_in_place").start(vim.trim(args.args), range)
  end
  local subcommand = subcommands[words[1]:lower()]
  if subcommand then
    return subcommand.run(vim.list_slice(words, 2), args.range > 0 and { args.line1, args.line2 } or nil)
  elseif #words == 1 then
    return run_word(words[1], args)
  end
  refuse_name("CodeCompanion", words[1], sorted_names(subcommands))
end

---@param lead string
---@param line string
---@param position integer
---@return string[]
function M.complete(lead, line, position)
  local typed = line:sub(1, position):match("CodeCompanion%s+resume%s+(.*)$")
  if typed then
    return vim.tbl_map(function(name)
      return name:sub(#typed - #lead + 1)
    end, require("codecompanion.chat.lists.resume_list").names(typed))
  end
  if lead:sub(1, 1) == "/" and is_first_argument(line, position) then
    require("codecompanion.prompt_library").refresh_if_stale()
    local slashed = vim.tbl_map(function(alias)
      return "/" .. alias
    end, prompt_aliases())
    return starting_with(slashed, lead)
  end
  if is_first_argument(line, position) then
    require("codecompanion.prompt_library").refresh_if_stale()
    local names = vim.list_extend(prompt_aliases(), vim.tbl_keys(subcommands))
    table.sort(names)
    return starting_with(vim.fn.uniq(names) --[[@as string[] ]], lead)
  end
  local name = line:sub(1, position):match("CodeCompanion%s+(%S+)%s+%S*$")
  local subcommand = name and subcommands[name:lower()]
  local arguments = subcommand and subcommand.arguments or {}
  return type(arguments) == "function" and arguments(lead) or starting_with(arguments --[[@as string[] ]], lead)
end

---Run `:CodeCompanionComplete`.
function M.complete_now()
  if not is_refused() then
    require("codecompanion.inline").complete()
  end
end

---Run `:[range]CodeCompanionChat`, with `Add`, `New`, `Resume` or `Toggle`, or with options and a question.
---@param args { args: string, range: integer, line1: integer, line2: integer }
function M.chat(args)
  if not is_refused() then
    require("codecompanion.commands.chat_command").run(args)
  end
end

---@param ... any Arguments of a command-line completion function
---@return string[]
function M.complete_chat(...)
  return require("codecompanion.commands.chat_command").complete(...)
end

---Run `:[range]CodeCompanionActions`.
---@param args { range: integer, line1: integer, line2: integer }
function M.actions(args)
  if not is_refused() then
    require("codecompanion.commands.palette").open(args)
  end
end

---Run `:[range]CodeCompanionCmd [words]`.
---@param args { args: string, range: integer, line1: integer, line2: integer }
function M.command_line(args)
  if not is_refused() then
    require("codecompanion.commands.command_line").run(args.args, args.range > 0 and { args.line1, args.line2 } or nil)
  end
end

---@param show fun(chat: CodeCompanion.Chat)
local function with_chat(show)
  if is_refused() then
    return
  end
  local chat = require("codecompanion.chat").current()
  if not chat then
    return say.line("No chat is open; :CodeCompanionChat opens one")
  end
  show(chat)
end

---Run `:CodeCompanionContext [question]`.
---@param args { args: string }
function M.context(args)
  with_chat(function(chat)
    require("codecompanion.chat.lists.gathered_code").preview(chat, args.args, function(reason)
      say.line(reason, severity.WARN)
    end)
  end)
end

---Run `:CodeCompanionCost`.
function M.cost()
  with_chat(require("codecompanion.chat.reports").cost)
end

---Run `:CodeCompanionTrace [turn]`.
---@param args { args: string }
function M.trace(args)
  with_chat(function(chat)
    require("codecompanion.chat.reports").trace(chat, args.args)
  end)
end

---Run `:CodeCompanionRestore [id]`.
---@param args { args: string }
function M.restore(args)
  if is_refused() then
    return
  end
  require("codecompanion.chat").restore(vim.trim(args.args))
end

---Run `:CodeCompanionCompact[!] [instructions]`.
---@param args { args: string, bang: boolean }
function M.compact(args)
  if is_refused() then
    return
  end
  local instructions = vim.trim(args.args)
  require("codecompanion.chat").compact(instructions ~= "" and instructions or nil, { ask = not args.bang })
end

---@param direction "undo"|"redo"
local function change(direction)
  with_chat(function(chat)
    require("codecompanion.chat.wire.edit_view")[direction](chat)
  end)
end

---Run `:CodeCompanionUndo`.
function M.undo()
  change("undo")
end

---Run `:CodeCompanionRedo`.
function M.redo()
  change("redo")
end

---Run `:CodeCompanionRecall [words]`.
---@param args { args: string }
function M.recall(args)
  with_chat(function(chat)
    require("codecompanion.chat.lists.pinned_and_removed").recall(chat, vim.trim(args.args))
  end)
end

---Run `:CodeCompanionRevert [turn|path]`.
---@param args { args: string }
function M.revert(args)
  with_chat(function(chat)
    local what = vim.trim(args.args)
    if what == "" then
      return require("codecompanion.chat.changed_files.change_list").open(chat)
    end
    require("codecompanion.chat.changed_files.revert_changes").chosen(chat, what)
  end)
end

---@param lead string
---@return string[]
function M.complete_revert(lead)
  local files = require("codecompanion.system.literal_paths").beginning_with(lead, vim.fn.getcwd())
  return vim.list_extend(starting_with({ "turn" }, lead), files)
end

---Run `:CodeCompanionChanges[!]`.
---@param args { bang: boolean }
function M.changes(args)
  with_chat(function(chat)
    require("codecompanion.chat.changed_files.changes_quickfix").fill(chat, { all = args.bang })
  end)
end

return M
