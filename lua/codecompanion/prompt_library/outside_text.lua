---Neutralises external text (a prompt from a project or an MCP server) before it is put into the input, because it is
---not trusted like typed text. It must not run slash commands, choose tools or mention anything beyond the project: a
---space is inserted into such mentions (`# {file:~/notes}`), even in code, because later typing may end the code. If
---the user removes the space, the mention counts as typed.

local M = {}

---Items that external text may mention, because they show only the user's work in the project.
local HARMLESS = {
  buffer = true,
  codebase = true,
  diagnostics = true,
  diff = true,
  lsp = true,
  quickfix = true,
  selection = true,
  viewport = true,
}

---@param written string
---@return string
local function spaced(written)
  return written:sub(1, 1) .. " " .. written:sub(2)
end

---Return whether external text may contain this item of editor context.
---@param name string
---@param argument string
---@return boolean
local function is_harmless(name, argument)
  return name == "file" or HARMLESS[name] == true and (name ~= "buffer" or argument == "")
end

---Return the text with a space inserted into every editor context mention that `allows` does not accept.
---@param text string
---@param allows? fun(name: string, argument: string): boolean
---@return string
---@return string[] written
function M.items(text, allows)
  local found = {}
  text = text:gsub("#{([^{}]*)}", function(inside)
    local name, argument = inside:match("^%s*([%a_][%w_]*)%s*:?%s*(.-)%s*$")
    local item = name and require("codecompanion.editor_context").get(name)
    -- an MCP resource is also an item once its server has started, which this very message may cause
    local means = item and item.name or name == "mcp" and name
    if means and not (allows and allows(means, argument)) then
      found[#found + 1] = ("#{%s}"):format(inside)
      return spaced(found[#found])
    end
  end)
  return text, found
end

---@param label string
---@param written string
---@param why string
---@return string
local function note(label, written, why)
  local reason = ("%s: %s %s, so it is not sent"):format(label, written, why)
  return reason .. ("; to send it, write it without the space: %s."):format(spaced(written))
end

---Neutralise external text; `done` receives it, with a sentence for each disabled mention.
---@param text string
---@param label string Source of the text
---@param done fun(text: string, notes: string[])
---@param refuse fun(reason: string)
function M.text(text, label, done, refuse)
  local notes = {}
  text = text:gsub("@{", "@ {")
  text = text:find("^%s*/") and " " .. vim.trim(text) or text
  local items
  text, items = M.items(text, is_harmless)
  for _, written in ipairs(items) do
    notes[#notes + 1] = note(label, written, "may include content from outside the project")
  end
  if not text:find("[@#]") then
    return done(text, notes)
  end
  local request = { cwd = vim.fn.getcwd(), text = text }
  require("codecompanion.host").request("check_mentions", request, function(err, beyond)
    if err then
      return refuse(err)
    end
    for written, why in require("codecompanion.values.sorted")(beyond) do
      text = text:gsub(vim.pesc(written), (spaced(written):gsub("%%", "%%%%")))
      notes[#notes + 1] = note(label, written, why)
    end
    done(text, notes)
  end)
end

return M
