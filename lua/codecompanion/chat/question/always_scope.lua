---Asks for the scope of an "always" answer: which calls to allow from now on. A single scope is a yes/no question.

local choose = require("codecompanion.screen.choose")
local fit = require("codecompanion.text.fit")
local visible = require("codecompanion.text.visible_characters")

local M = {}

---Maximum number of cells of a command; the block shows all of it.
local MAX_WHAT = 120
local TITLE = "In this chat%s, always allow"
---Cells beside the title of a list.
local TITLE_FRAME = 6
local REVOKE = "/approvals revokes this."

---@class CodeCompanion.AlwaysScope
---@field text string
---@field family? boolean All commands that the question offers, not only this one

---@param text string
---@return string
local function shown(text)
  return fit.squeeze(visible.line((text:gsub("%s*\n%s*", " "))).text, MAX_WHAT)
end

---Return what else the answer allows: hosts, which every command of the chat may reach from then on.
---@param event table approval_requested event
---@return string
local function hosts_of(event)
  if event.place ~= "network" then
    return ""
  end
  local hosts = table.concat(event.hosts or {}, ", ")
  return ("; every command may then reach %s"):format(hosts ~= "" and visible.line(hosts).text or "any host")
end

---Return the scopes that "always" can allow, narrowest first.
---@param event table approval_requested event
---@return CodeCompanion.AlwaysScope[]
function M.scopes(event)
  local what = event.exact == event.path and vim.fn.fnamemodify(event.exact, ":~:.") or event.exact
  if event.filetype ~= "sh" then
    what = event.name .. (what ~= "" and " " .. what or "")
  elseif what == "" then
    what = "exactly this command"
  end
  local found = { { text = shown(what) } }
  if event.covers ~= "" then
    found[2] = { text = visible.line(event.covers).text, family = true }
  end
  for _, scope in ipairs(found) do
    scope.text = scope.text .. hosts_of(event)
  end
  return found
end

---Return the condition that ends the texts of both scopes if the title has room for it, otherwise "".
---@param scopes CodeCompanion.AlwaysScope[]
---@return string
local function shared_condition(scopes)
  local condition = scopes[1].text:match("^.+(, until .-)$")
  local other = scopes[2].text
  local is_shared = condition and vim.endswith(other, condition) and not other:find("; ", 1, true)
  local fits = is_shared and vim.api.nvim_strwidth(TITLE:format(condition)) + TITLE_FRAME <= vim.o.columns
  return fits and condition or ""
end

---Return the question about the only scope.
---@param event table approval_requested event
---@param scope CodeCompanion.AlwaysScope
---@return string
local function question_of(event, scope)
  local is_any_file = event.path ~= "" and event.exact == ""
  local but = is_any_file and "Guarded files (Makefile, .git, CI …) still ask; " or ""
  local what = scope.text .. (is_any_file and " on any file" or "")
  return ("%s %s? %s%s"):format(TITLE:format(""), what, but, REVOKE)
end

---Ask for the scope of "always".
---@param event table approval_requested event
---@param clear_of fun(): CodeCompanion.Rows? Returns the rows of the screen that show the approval
---@param chosen fun(scope: CodeCompanion.AlwaysScope)
function M.ask(event, clear_of, chosen)
  local scopes = M.scopes(event)
  if #scopes == 1 then
    local answers = { { key = "y", label = "yes", enter = true }, { key = "n", label = "no" } }
    return require("codecompanion.screen.confirm").ask(question_of(event, scopes[1]), answers, function(key)
      if key == "y" then
        chosen(scopes[1])
      end
    end, clear_of)
  end
  local condition = shared_condition(scopes) -- said once, in the title
  choose.select(scopes, {
    prompt = TITLE:format(condition),
    kind = "codecompanion.always",
    clear_of = clear_of,
    format_item = function(scope)
      return scope.text:sub(1, -#condition - 1)
    end,
  }, function(scope)
    if scope then
      chosen(scope)
    end
  end)
end

return M
