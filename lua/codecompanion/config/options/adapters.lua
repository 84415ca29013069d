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

local fields = {
  entry("openai", "The OpenAI Chat Completions API. Key: environment variable OPENAI_API_KEY."),
  entry("openai_compatible", "Any endpoint that speaks the same language: Ollama, vLLM, llama.cpp, OpenRouter …"),
  entry("offline", "Embedded: no network, no key. For trying things out and for tests."),
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
}

return { fields = fields, other = entry("<name>", "An adapter of your own: see |codecompanion-adapters|.") }
