---Asks for the scope of an "always" answer: which calls to allow from now on. The list is the same for one scope as for
---two: `<CR>` or `y` allows the marked row, `q` or `n` closes it.

local api = vim.api
local choose = require("codecompanion.screen.choose")
local fit = require("codecompanion.text.fit")
local visible = require("codecompanion.text.visible_characters")

local M = {}

---Maximum number of cells of a command; the block shows all of it.
local MAX_WHAT = 120
local TITLE = "Always allow in this chat"
local MARK, UNMARKED = "› ", "  "
local FOOTER = { "<CR> allow", "q close" }

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

---Return the narrowest scope; the block of the approval calls a file change by the same name.
---@param event table approval_requested event
---@return string
local function narrowest(event)
  if event.filetype == "sh" then
    return event.exact ~= "" and event.exact or "exactly this command"
  elseif event.path == "" then
    return vim.trim(("every call of %s %s"):format(event.name, event.exact))
  elseif event.exact == event.path then
    return event.title
  end
  return vim.trim(("%s %s"):format(event.title:match("^%u%l+") or event.name, event.exact))
end

---Return the scopes that "always" can allow, narrowest first.
---@param event table approval_requested event
---@return CodeCompanion.AlwaysScope[]
function M.scopes(event)
  local found = { { text = shown(narrowest(event)) } }
  if event.covers ~= "" then
    found[2] = { text = visible.line(event.covers).text, family = true }
  end
  for _, scope in ipairs(found) do
    scope.text = scope.text .. hosts_of(event)
  end
  return found
end

---Return the confirmation of a grant without its conditions, longest form first.
---@param scope CodeCompanion.AlwaysScope
---@return string[]
function M.confirmation(scope)
  local what = scope.text
  for _, start in ipairs({ "; every command ", ", until ", " until the server ", ", except ", " (those " }) do
    what = what:sub(1, (what:find(start, 1, true) or 0) - 1)
  end
  local given = "Allowed in this chat: " .. what
  return { given .. " · /approvals revokes it", given }
end

---Return the condition that ends the texts of both scopes, or "".
---@param scopes CodeCompanion.AlwaysScope[]
---@return string
local function shared_condition(scopes)
  for _, start in ipairs(scopes[2] and { ", until ", "; every command " } or {}) do
    local at = scopes[1].text:find(start, 1, true)
    local condition = at and scopes[1].text:sub(at)
    if condition and vim.endswith(scopes[2].text, condition) then
      return condition
    end
  end
  return ""
end

---Mark the row of the cursor.
---@param bufnr integer
---@param count integer Number of scopes
local function follow_cursor(bufnr, count)
  local ns, id = api.nvim_create_namespace("codecompanion.chat.always"), nil
  local function mark()
    local row = math.min(api.nvim_win_get_cursor(0)[1], count)
    local virt_text = { { MARK, "CodeCompanionApprovalKey" } }
    api.nvim_win_set_cursor(0, { row, 0 })
    id = api.nvim_buf_set_extmark(bufnr, ns, row - 1, 0, { id = id, virt_text = virt_text, virt_text_pos = "overlay" })
  end
  api.nvim_create_autocmd("CursorMoved", { buffer = bufnr, callback = mark })
  mark()
end

---Ask for the scope of "always".
---@param event table approval_requested event
---@param clear_of fun(): CodeCompanion.Rows? Returns the rows of the screen that show the approval
---@param chosen fun(scope: CodeCompanion.AlwaysScope)
function M.ask(event, clear_of, chosen)
  local scopes = M.scopes(event)
  local condition = shared_condition(scopes) -- shown once, below the scopes
  local lines = vim.tbl_map(function(scope)
    return UNMARKED .. scope.text:sub(1, -#condition - 1)
  end, scopes)
  if condition ~= "" then
    local note = condition:gsub("^, until", "Both apply until"):gsub("^; e", "E")
    lines[#lines + 1] = UNMARKED .. note
  end
  choose.in_normal_mode(function()
    local bufnr = choose.list(lines, function(line)
      return scopes[line]
    end, { title = TITLE, wrap = true, footer = FOOTER, clear_of = clear_of }, function(found)
      if found then
        chosen(found[1])
      end
    end)
    vim.keymap.set("n", "y", "<CR>", { buffer = bufnr, remap = true, nowait = true, desc = "Choose" })
    vim.keymap.set("n", "n", "q", { buffer = bufnr, remap = true, nowait = true, desc = "Cancel" })
    if condition ~= "" then
      local opts = { end_row = #lines, hl_group = "CodeCompanionHint" }
      api.nvim_buf_set_extmark(bufnr, api.nvim_create_namespace("codecompanion.chat.always_note"), #scopes, 0, opts)
    end
    follow_cursor(bufnr, #scopes)
  end)
end

return M
