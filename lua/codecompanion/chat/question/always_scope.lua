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

---@class CodeCompanion.AlwaysScope: CodeCompanion.Wire.GrantScope
---@field hosts? string What every command may then reach
---@field family? boolean All commands that the question offers, not only this one

---Return the scope of a grant in full.
---@param scope CodeCompanion.AlwaysScope
---@return string
function M.text(scope)
  local text = scope.what
  for _, more in ipairs({ { ", ", scope["until"] }, { "; ", scope.still_asks }, { "; ", scope.hosts or "" } }) do
    text = more[2] ~= "" and text .. more[1] .. more[2] or text
  end
  return text
end

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
  return ("every command may then reach %s"):format(hosts ~= "" and visible.line(hosts).text or "any host")
end

---Return the calls of the narrowest scope; the block of the approval calls a file change by the same name.
---@param event table approval_requested event
---@return string
local function narrowest(event)
  local what = event.exact.what
  if event.filetype == "sh" then
    return what ~= "" and what or "exactly this command"
  elseif event.path == "" then
    return vim.trim(("every call of %s %s"):format(event.name, what))
  elseif what == event.path then
    return event.title
  end
  return vim.trim(("%s %s"):format(event.title:match("^%u%l+") or event.name, what))
end

---Return the scopes that "always" can allow, narrowest first.
---@param event table approval_requested event
---@return CodeCompanion.AlwaysScope[]
function M.scopes(event)
  local found = { vim.tbl_extend("force", event.exact, { what = shown(narrowest(event)) }) }
  local commands = visible.line(event.covers.what).text -- never cut: the block does not name them
  if commands ~= "" then
    found[2] = vim.tbl_extend("force", event.covers, { what = commands, family = true })
  end
  for _, scope in ipairs(found) do
    scope.hosts = hosts_of(event)
    scope["until"] = visible.line(scope["until"]).text
    scope.still_asks = visible.line(scope.still_asks).text
  end
  return found
end

---Return the confirmation of a grant without its conditions, longest form first.
---@param scope CodeCompanion.AlwaysScope
---@return string[]
function M.confirmation(scope)
  local given = "Allowed in this chat: " .. scope.what
  return { given .. " · /approvals revokes it", given }
end

---Return the scopes without the conditions that both have, and a sentence with these, or "".
---@param scopes CodeCompanion.AlwaysScope[]
---@return CodeCompanion.AlwaysScope[] scopes
---@return string sentence
local function without_shared(scopes)
  local first, second = scopes[1], scopes[2]
  local shared, said = {}, {}
  if second and first["until"] ~= "" and first["until"] == second["until"] then
    shared["until"], said[1] = "", "Both apply " .. first["until"]
  end
  if second and first.hosts ~= "" then
    shared.hosts, said[#said + 1] = "", #said == 0 and first.hosts:gsub("^e", "E") or first.hosts
  end
  local rows = vim.tbl_map(function(scope)
    return vim.tbl_extend("force", scope, shared)
  end, scopes)
  return rows, table.concat(said, "; ")
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
  local rows, shared = without_shared(scopes)
  local lines = vim.tbl_map(function(scope)
    return UNMARKED .. M.text(scope)
  end, rows)
  if shared ~= "" then
    lines[#lines + 1] = UNMARKED .. shared
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
    if shared ~= "" then
      local opts = { end_row = #lines, hl_group = "CodeCompanionHint" }
      api.nvim_buf_set_extmark(bufnr, api.nvim_create_namespace("codecompanion.chat.always_note"), #scopes, 0, opts)
    end
    follow_cursor(bufnr, #scopes)
  end)
end

return M
