---Options of adapters: `adapters.http`. `codecompanion.adapters` checks the entries themselves.

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

---Default order of adapters, from the most to the least explicit setup: a login made through this plugin, keys, a login
---from another plugin, local servers. A test compares the list with the built-in adapters.
local ORDER = {
  "chatgpt",
  "anthropic",
  "openai",
  "azure_openai",
  "gemini",
  "openrouter",
  "mistral",
  "deepseek",
  "xai",
  "groq",
  "kimi",
  "zai",
  "minimax",
  "cerebras",
  "together",
  "fireworks",
  "nebius",
  "novita",
  "huggingface",
  "copilot",
  "ollama",
  "lmstudio",
  "llama_cpp",
  "vllm",
}

local fields = {}
for name, adapter in require("codecompanion.values.sorted")(require("codecompanion.adapters.builtin_adapters")) do
  fields[#fields + 1] = entry(name, adapter.about)
end
vim.list_extend(fields, {
  {
    name = "extend",
    type = "table",
    default = {},
    entries = true,
    description = "Overrides by name: { openai = { env = { … } } }.",
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
          return not value:match("^%w+://.") and "expected [protocol]://[host]:[port]" or nil, value
        end,
        description = "Proxy for all requests: protocol://host:port.",
      },
      {
        name = "order",
        type = "list",
        items = { type = "string" },
        default = ORDER,
        description = "New chats use the first usable adapter in this list, see |codecompanion-choose|; {} = none.",
      },
    },
  },
})

return { fields = fields, other = entry("<name>", "Your own adapter, see |codecompanion-adapters|.") }
