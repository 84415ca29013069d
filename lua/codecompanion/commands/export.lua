---`:CodeCompanion export [html|md] [path]`: exports the current chat to a file. The host writes it.

local host = require("codecompanion.host")
local say = require("codecompanion.say")

local M = {}

M.FORMS = { "html", "md" }

---Parse the format and path arguments. Without a format, the path extension determines it.
---@param arguments string[]
---@return "html"|"md" form
---@return string path Absolute, or "" if none was given
local function read(arguments)
  local rest, form = vim.list_slice(arguments), nil
  if vim.tbl_contains(M.FORMS, rest[1]) then
    form = table.remove(rest, 1)
  end
  local path = table.concat(rest, " ")
  if not form then
    form = path:lower():match("%.md$") and "md" or "html"
  end
  return form, path ~= "" and require("codecompanion.system.literal_paths").absolute(path) or ""
end

---@param chat { id: string }
---@param arguments string[]
function M.run(chat, arguments)
  local form, path = read(arguments)
  local payload = { chat = chat.id, form = form, path = path, cwd = vim.fn.getcwd() }
  host.ask("export_chat", payload, function(result)
    local shown = vim.fn.fnamemodify(result.path, ":~:.")
    local said = ("Exported to %s (%d kB)"):format(shown, result.kilobytes)
    say.line({ said .. ". Keys are hidden; read it before you share it.", said })
  end)
end

return M
