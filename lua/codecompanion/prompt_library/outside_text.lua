---Text from outside (a project's prompt, an MCP server's) on its way into the input: it gets none of the trust of what
---the user types. It is no slash command, chooses no tools, and mentions nothing beyond the project: a space is put
---into what does (`# {file:~/notes}`), in code as well, since what is typed later may end that. Whoever takes the space
---out has written it himself.

local M = {}

---Items that show what the user works on in the project.
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

---Whether an item of editor context may be in a text from outside.
---@param name string
---@param argument string
---@return boolean
local function is_harmless(name, argument)
  return name == "file" or HARMLESS[name] == true and (name ~= "buffer" or argument == "")
end

---The text with a space in what is an item of editor context and takes more along than the project.
---@param text string
---@param allows? fun(name: string, argument: string): boolean
---@return string
---@return string[] written
function M.items(text, allows)
  local found = {}
  text = text:gsub("#{([^{}]*)}", function(inside)
    local name, argument = inside:match("^%s*([%a_][%w_]*)%s*:?%s*(.-)%s*$")
    local item = name and require("codecompanion.editor_context").get(name)
    -- a server's resource is one, too, once a server has started: with the very message perhaps
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
  local reason = ("%s: %s %s: it is not sent"):format(label, written, why)
  return reason .. ("; write it without the space if you want it: %s."):format(spaced(written))
end

---Make a text from outside harmless; `done` gets it, and a sentence for each of its mentions that is none any more.
---@param text string
---@param label string Where it is from
---@param done fun(text: string, notes: string[])
---@param refuse fun(reason: string)
function M.text(text, label, done, refuse)
  local notes = {}
  text = text:gsub("@{", "@ {")
  text = text:find("^%s*/") and " " .. vim.trim(text) or text
  local items
  text, items = M.items(text, is_harmless)
  for _, written in ipairs(items) do
    notes[#notes + 1] = note(label, written, "may show more than the project")
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
