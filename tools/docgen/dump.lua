---Writes everything that Lua knows and the generators need (help file, types, `settings_defaults.json`) as one JSON
---object to stdout: the option schema, the host's defaults, autocmds, highlight groups.
---Run as `nvim --clean --headless -l tools/docgen/dump.lua`.

local root = vim.fn.fnamemodify(arg[0], ":p:h:h:h")
vim.opt.runtimepath:prepend(root)

---A Lua literal of a default, with the keys of tables in order.
---@param value any
---@return string
local function literal(value)
  if type(value) ~= "table" then
    return type(value) == "string" and ('"%s"'):format(value) or tostring(value)
  end
  local parts = {}
  for key, element in require("codecompanion.values.sorted")(value) do
    local name = tostring(key):match("^[%a_][%w_]*$") or ('["%s"]'):format(key)
    parts[#parts + 1] = type(key) == "number" and literal(element) or ("%s = %s"):format(name, literal(element))
  end
  return #parts == 0 and "{}" or "{ " .. table.concat(parts, ", ") .. " }"
end

---@param node CodeCompanion.Option
---@return table
local function plain(node)
  local copy = {}
  for key, value in pairs(node) do
    if key == "fields" then
      copy.fields = vim.tbl_map(plain, node.fields)
    elseif key == "values" or key == "items" then
      copy[key] = plain(value)
    elseif key == "default" then
      copy.default_text = node.default_text or literal(value)
      copy.default = type(value) ~= "function" and value or nil
    elseif type(key) == "string" and type(value) ~= "function" then
      copy[key] = value
    end
  end
  return copy
end

io.stdout:write(
  vim.json.encode({
    schema = plain(require("codecompanion.config.schema")),
    for_host = require("codecompanion.config").for_host(),
    slash = vim.tbl_map(function(command)
      return {
        name = command.name,
        argument = command.argument,
        description = command.description,
      }
    end, require("codecompanion.chat.slash").list()),
    autocmds = require("codecompanion.chat.state.autocmds").list,
    policy_autocmds = require("codecompanion.chat.state.policy_autocmds").list,
    highlights = require("codecompanion.chat.buffer.chat_highlights").documented(),
  }),
  "\n"
)
