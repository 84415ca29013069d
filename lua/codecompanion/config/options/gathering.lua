---Options of gathering code for a question: `context` (R-263 … R-265, R-240, R-267). They are implemented in
---python/codecompanion/session/gather; the models' budgets are in python/codecompanion/retrieval/budgets.toml.

local tokens = require("codecompanion.config.tokens")

---@param least number
---@param most number
---@return fun(value: number): string?, number?
local function between(least, most)
  return function(value)
    if value < least or value > most then
      return ("expected a number from %s to %s, got %s"):format(least, most, value)
    end
    return nil, value
  end
end

---@param value any
---@return string? problem
---@return boolean|string? normalised
local function check_enabled(value)
  if type(value) == "string" and value ~= "auto" then
    return ('expected true, false or "auto", got %q'):format(value)
  end
  return nil, value
end

---@param value table<any, any>
---@return string? problem
---@return table<string, integer>? normalised
local function check_budgets(value)
  for model, budget in pairs(value) do
    if type(model) ~= "string" or type(budget) ~= "number" or budget < 0 or budget % 1 ~= 0 then
      local text = '%s = %s; expected names of models with numbers of tokens: { ["gpt-4o"] = 30000 }'
      return text:format(tostring(model), tostring(budget))
    end
  end
  return nil, value
end

---@param value string
---@return string? problem
---@return string? normalised
local function check_address(value)
  if not value:match("^https?://[^/%s]+") then
    return "expected http://… or https://…", value
  end
  return nil, value
end

---Reject a literal key, without showing it.
---@param value string
---@return string? problem
---@return string? normalised
local function check_key(value)
  local is_name = value:match("^[%a_][%w_]*$") and (value == value:upper() or not value:match("%d"))
  if not is_name and not value:match("^cmd:") and not value:match("^file:") then
    return "expected the name of an environment variable, cmd:… or file:…, not the key itself"
  end
  return nil, value
end

---@param value string[]
---@return string? problem
---@return string[]? normalised
local function check_command(value)
  if #value == 0 then
    return "expected a program and its arguments", value
  end
  return nil, value
end

return {
  {
    name = "enabled",
    type = { "boolean", "string" },
    default = "auto",
    check = check_enabled,
    description = 'When to look for code. "auto": for every question about the project under the policy `codebuddy`,'
      .. " and under the others when a message has `#{codebase}` or names a file with `@`. True: under every policy."
      .. " False: never.",
  },
  {
    name = "pipeline",
    type = "string",
    enum = { "ranked", "document" },
    default = "ranked",
    description = 'How code is found and chosen. "ranked": all signals joined by fitted weights. "document": as in'
      .. " the document of `codebuddy`; `/policy codebuddy strict` always uses it"
      .. " (|codecompanion-gather-pipeline|).",
  },
  {
    name = "classify",
    type = "boolean",
    default = true,
    description = "Look for code only when the question is about the project, judged by `utility` or the index. False"
      .. " looks for code for every question.",
  },
  {
    name = "utility",
    type = { "string", "table" },
    optional = true,
    adapter = true,
    description = "Adapter that classifies questions and finds search terms: its name, or { name = …, model = … }; a"
      .. " small and fast model will do. Without it the project's index decides, and nothing is asked over the"
      .. " network.",
  },
  {
    name = "window",
    type = { "integer", "string" },
    check = tokens.check(),
    optional = true,
    description = "Context window that the code budget is measured against, in tokens. By default the model's own. Code"
      .. " takes at most a quarter of it.",
  },
  {
    name = "budgets",
    type = "table",
    default = {},
    check = check_budgets,
    description = "Maximum tokens of code for a model, by its name or the beginning of it; `default` is for all"
      .. " others. They override the built-in table.",
  },
  {
    name = "timeout",
    type = "integer",
    min = 100,
    default = 8000,
    description = "How long gathering may take, in milliseconds. The code found in this time is sent.",
  },
  {
    name = "include_hidden",
    type = "boolean",
    default = false,
    description = "Look into hidden files too. A hidden file that you name with `@` is always read.",
  },
  {
    name = "max_file_size_mb",
    type = "number",
    default = 1,
    check = between(0, 100),
    description = "Larger files are left out, in megabytes. Of a file that you name with `@` this much is read.",
  },
  {
    name = "supplement_when_files_selected",
    type = "boolean",
    default = true,
    description = "Look for more code also when files are named with `@`. False sends these files alone.",
  },
  {
    name = "hybrid",
    description = 'Weights of the search under `pipeline = "document"`. "ranked" ignores them.',
    fields = {
      {
        name = "vector_weight",
        type = "number",
        default = 0.7,
        check = between(0, 1),
        description = "Weight of similarity in meaning. Both weights are scaled to a sum of 1.",
      },
      {
        name = "text_weight",
        type = "number",
        default = 0.3,
        check = between(0, 1),
        description = "Weight of matching words.",
      },
      {
        name = "top_k",
        type = "integer",
        default = 10,
        check = between(1, 50),
        description = "Number of results of a search.",
      },
      {
        name = "mmr",
        description = "Prefer results that differ from each other.",
        fields = {
          { name = "enabled", type = "boolean", default = false, description = "Enable it." },
          {
            name = "lambda",
            type = "number",
            default = 0.7,
            check = between(0, 1),
            description = "1 ranks by relevance alone, 0 by difference alone.",
          },
        },
      },
      {
        name = "decay",
        description = "Prefer recently changed files.",
        fields = {
          { name = "enabled", type = "boolean", default = false, description = "Enable it." },
          {
            name = "half_life_days",
            type = "integer",
            default = 30,
            check = between(1, 365),
            description = "After this many days without a change a result counts half.",
          },
        },
      },
    },
  },
  {
    name = "embedding",
    description = "Search by meaning, with vectors of code and questions. Without `url` and `onnx` the search uses"
      .. " words alone. See |codecompanion-embedding|.",
    fields = {
      {
        name = "url",
        type = "string",
        optional = true,
        check = check_address,
        description = "Address of an OpenAI-compatible endpoint for embeddings, such as `http://localhost:11434/v1`"
          .. " (Ollama). Your code is sent there.",
      },
      {
        name = "model",
        type = "string",
        optional = true,
        description = "Its embedding model, such as `nomic-embed-text`.",
      },
      {
        name = "key",
        type = "string",
        optional = true,
        check = check_key,
        description = "Location of its key: the name of an environment variable, `cmd:…` or `file:…`.",
      },
      {
        name = "onnx",
        type = "string",
        optional = true,
        description = "Instead of an endpoint: a folder with `model.onnx` and `tokenizer.json`, run on this machine. It"
          .. " needs `:CodeCompanion install semantic`, once.",
      },
      {
        name = "dimensions",
        type = "integer",
        min = 1,
        optional = true,
        description = "Length of the vectors, for models that support shorter ones.",
      },
      {
        name = "query_prefix",
        type = "string",
        optional = true,
        description = "Prefix that the model expects before a question. By default the documented one, if known.",
      },
      {
        name = "document_prefix",
        type = "string",
        optional = true,
        description = "Prefix that the model expects before a piece of code. By default the documented one, if"
          .. " known.",
      },
    },
  },
  {
    name = "memories",
    description = "Facts for every question about a project, in Markdown files: `## [category] title`, then"
      .. " the text. Instructions that try to take over the model are removed from them.",
    fields = {
      { name = "enabled", type = "boolean", default = true, description = "Send them with questions." },
      {
        name = "user",
        type = "string",
        default = "~/.codecompanion/memories.md",
        description = "Your preferences, for all projects.",
      },
      {
        name = "project",
        type = "string",
        default = ".codecompanion/memories.md",
        description = "Knowledge of one project, relative to its folder.",
      },
    },
  },
  {
    name = "team",
    description = "Facts for questions about your team: a file, or the output of a program.",
    fields = {
      {
        name = "enabled",
        type = "boolean",
        default = false,
        description = "Send it when a question asks about people, stand-ups, sprints or similar.",
      },
      {
        name = "file",
        type = "string",
        optional = true,
        description = "Markdown file, absolute or relative to the project.",
      },
      {
        name = "command",
        type = "list",
        items = { type = "string" },
        optional = true,
        check = check_command,
        description = "Program and arguments, run in the project's folder without a shell, at most once a"
          .. " minute. It overrides `file`.",
      },
    },
  },
}
