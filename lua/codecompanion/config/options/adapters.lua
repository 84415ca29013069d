---Options of adapters: `adapters.http`. The entries themselves are checked by `codecompanion.adapters`.

---@param name string
---@param description string
---@return CodeCompanion.Option
local function entry(name, description)
  return {
    name = name,
    type = { "string", "table", "function" },
    optional = true,
    entry = true,
    signature = "fun(): table",
    description = description,
  }
end

local fields = {}
for name, adapter in require("codecompanion.config.sorted")(require("codecompanion.adapters.builtin")) do
  fields[#fields + 1] = entry(name, adapter.about)
end
vim.list_extend(fields, {
  {
    name = "extend",
    type = "table",
    default = {},
    entries = true,
    description = "Overrides by adapter name, merged over the entry: { openai = { env = { api_key = … } } }.",
  },
  {
    name = "opts",
    description = "Options of all adapters.",
    fields = {
      {
        name = "proxy",
        type = "string",
        optional = true,
        check = function(value)
          return not value:match("^%w+://.") and "a proxy looks like [protocol]://[host]:[port]" or nil, value
        end,
        description = "Proxy for all requests: protocol://host:port.",
      },
    },
  },
})

return { fields = fields, other = entry("<name>", "Your own adapter, see |codecompanion-adapters|.") }
