---`:CodeCompanion help [topic]`: opens the manual, with or without help tags, at an option or another topic.

local api = vim.api
local say = require("codecompanion.say")
local severity = require("codecompanion.severity")

local M = {}

---@class CodeCompanion.ManualTopic
---@field name string Key path of an option, or a tag without `codecompanion-`
---@field line integer

---@param lines string[]
---@return CodeCompanion.ManualTopic[] In the order of the manual
local function topics(lines)
  local found, section = {}, nil
  for number, line in ipairs(lines) do
    for tag in (line:match("%*%S+%*%s*>?%a*$") and line or ""):gmatch("%*(%S+)%*") do
      local path = tag:match("^codecompanion%.(.+)$")
      if path and not line:find("^%s") then
        section = path
      elseif not path then
        section = nil
      end
      found[#found + 1] = { name = path or tag:gsub("^codecompanion%-", ""), line = number }
    end
    local option = section and line:match("^    `([%w_.<>]+)`")
    if option then
      found[#found + 1] = { name = section .. "." .. option, line = number }
    end
  end
  return found
end

---@return string? path Path of the manual
local function path()
  return api.nvim_get_runtime_file("doc/codecompanion.txt", false)[1]
end

---Return the topics that contain the typed text, for completion.
---@param lead string
---@return string[]
function M.topics(lead)
  local file, names = path(), {}
  for _, topic in ipairs(file and topics(vim.fn.readfile(file)) or {}) do
    if topic.name:find(lead, 1, true) then
      names[#names + 1] = topic.name
    end
  end
  table.sort(names)
  return vim.fn.uniq(names) --[[@as string[] ]]
end

---Return the line number of a topic: match its name first, then the end of its key path, then the text of the manual.
---@param lines string[]
---@param wanted string
---@return integer?
local function line_of(lines, wanted)
  local lower = wanted:lower():gsub("^codecompanion[.-]", "")
  local ending
  for _, topic in ipairs(topics(lines)) do
    local name = topic.name:lower()
    if name == lower or name == ":" .. lower then
      return topic.line
    end
    ending = ending or (vim.endswith(name, "." .. lower) and topic.line or nil)
  end
  if ending then
    return ending
  end
  for number, line in ipairs(lines) do
    if line:lower():find(lower, 1, true) then
      return number
    end
  end
end

---Open the manual.
---@param topic? string Option, tag or words; defaults to the beginning of the manual
function M.open(topic)
  local file = path()
  if not file then
    return say.line("doc/codecompanion.txt is missing; reinstall the plugin", severity.ERROR)
  end
  local line
  if topic and topic ~= "" then
    line = line_of(vim.fn.readfile(file), topic)
    if not line then
      return say.line(("The manual has nothing about %s"):format(topic), severity.WARN)
    end
  end
  require("codecompanion.system.manual_tags").create()
  -- The text can be shown without help tags, which are missing if their folder is not writable.
  if not pcall(vim.cmd.help, "codecompanion") then
    require("codecompanion.system.literal_paths").open(file, "split")
    vim.bo.filetype, vim.bo.readonly, vim.bo.modifiable = "help", true, false
  end
  if line then
    vim.cmd("normal! m'")
    api.nvim_win_set_cursor(0, { line, 0 })
    vim.cmd("normal! zt")
  end
end

return M
