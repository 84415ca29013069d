---Slash commands that attach sources other than files: pages, outlines, diffs, terminals, the time.

---@param run string Name of a function in `codecompanion.chat.sources.attach_source`
---@return CodeCompanion.SlashRun
local function attach(run)
  return function(chat, argument, refuse)
    require("codecompanion.chat.sources.attach_source")[run](chat, argument, refuse)
  end
end

---@param words string[]
---@return fun(lead: string): string[]
local function among(words)
  return function(lead)
    return vim.tbl_filter(function(word)
      return vim.startswith(word, lead)
    end, words)
  end
end

---@type CodeCompanion.SlashCommand[]
return {
  {
    name = "fetch",
    description = "Attach the text of a web page",
    argument = "[--again] <address>",
    many = true,
    complete = among({ "--again" }),
    run = attach("page"),
  },
  {
    name = "paste",
    description = "Attach the image in the clipboard",
    run = function(chat, argument, refuse)
      require("codecompanion.chat.sources.clipboard").paste(chat, argument, refuse)
    end,
  },
  {
    name = "symbols",
    description = "Attach the outline of a file",
    argument = "[path]",
    complete = function(lead)
      return require("codecompanion.chat.slash.attach_paths").complete(lead)
    end,
    run = attach("symbols"),
  },
  {
    name = "diff",
    description = "Attach a diff: staged, branch, a commit …",
    argument = "[which]",
    complete = among({ "branch", "staged", "unstaged" }),
    run = attach("diff"),
  },
  {
    name = "terminal",
    description = "Attach the end of a terminal's output",
    argument = "[lines] [program]",
    complete = function(lead)
      return require("codecompanion.chat.sources.attach_source").complete_terminals(lead)
    end,
    run = attach("terminal"),
  },
  {
    name = "now",
    description = "Attach the date and time",
    run = attach("now"),
  },
}
