---Options for gathering code for a question: `context` (R-263 … R-265, R-240, R-267). They are implemented in
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
      local text = '%s = %s; expected model names with token counts: { ["gpt-4o"] = 30000 }'
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
    description = '"auto": for `#{codebase}` or `@file`, and for project questions under `codebuddy`; true: for every'
      .. " project question; false: never.",
  },
  {
    name = "pipeline",
    type = "string",
    enum = { "ranked", "document" },
    default = "ranked",
    description = "How code is found, see |codecompanion-gather-pipeline|.",
  },
  {
    name = "classify",
    type = "boolean",
    default = true,
    description = "Add code only to questions about the project.",
  },
  {
    name = "utility",
    type = { "string", "table" },
    optional = true,
    adapter = true,
    description = "Adapter that classifies questions and finds search terms; by default the index decides.",
  },
  {
    name = "window",
    type = { "integer", "string" },
    check = tokens.check(),
    optional = true,
    description = "Context window for the code budget, in tokens; by default the model's. Code gets at most a quarter.",
  },
  {
    name = "budgets",
    type = "table",
    default = {},
    check = check_budgets,
    description = "Maximum tokens of code by model name or name prefix; `default` for others.",
  },
  {
    name = "timeout",
    type = "integer",
    min = 100,
    default = 8000,
    description = "Time limit for gathering code.",
  },
  {
    name = "include_hidden",
    type = "boolean",
    default = false,
    description = "Include hidden files.",
  },
  {
    name = "max_file_size_mb",
    type = "number",
    default = 1,
    check = between(0, 100),
    description = "Leave out files larger than this, in megabytes; only this much of a file named with `@` is read.",
  },
  {
    name = "supplement_when_files_selected",
    type = "boolean",
    default = true,
    description = "Search beyond the named files.",
  },
  {
    name = "hybrid",
    description = 'Weights of `pipeline = "document"`.',
    fields = {
      {
        name = "vector_weight",
        type = "number",
        default = 0.7,
        check = between(0, 1),
        description = "Weight of semantic similarity.",
      },
      {
        name = "text_weight",
        type = "number",
        default = 0.3,
        check = between(0, 1),
        description = "Weight of keyword matches.",
      },
      {
        name = "top_k",
        type = "integer",
        default = 10,
        check = between(1, 50),
        description = "Number of results.",
      },
      {
        name = "mmr",
        description = "Diversity of the results.",
        fields = {
          { name = "enabled", type = "boolean", default = false, description = "Prefer varied results." },
          {
            name = "lambda",
            type = "number",
            default = 0.7,
            check = between(0, 1),
            description = "1 ranks by relevance only, 0 by diversity only.",
          },
        },
      },
      {
        name = "decay",
        description = "Recency of the files.",
        fields = {
          { name = "enabled", type = "boolean", default = false, description = "Prefer recently changed files." },
          {
            name = "half_life_days",
            type = "integer",
            default = 30,
            check = between(1, 365),
            description = "Age in days at which the weight halves.",
          },
        },
      },
    },
  },
  {
    name = "embedding",
    description = "Semantic search, see |codecompanion-embedding|; without `url` or `onnx`, keywords are used.",
    fields = {
      {
        name = "url",
        type = "string",
        optional = true,
        check = check_address,
        description = "Address of an OpenAI-compatible endpoint, such as `http://localhost:11434/v1`. Your code is sent"
          .. " there.",
      },
      {
        name = "model",
        type = "string",
        optional = true,
        description = "Embedding model, such as `nomic-embed-text`.",
      },
      {
        name = "key",
        type = "string",
        optional = true,
        check = require("codecompanion.values.key_source").check,
        description = "Source of its API key, see |codecompanion-keys|.",
      },
      {
        name = "onnx",
        type = "string",
        optional = true,
        description = "Local folder with `model.onnx` and `tokenizer.json`.",
      },
      {
        name = "dimensions",
        type = "integer",
        min = 1,
        optional = true,
        description = "Number of dimensions of the vectors.",
      },
      {
        name = "query_prefix",
        type = "string",
        optional = true,
        description = "Prefix of a question; by default the model's.",
      },
      {
        name = "document_prefix",
        type = "string",
        optional = true,
        description = "Prefix of code; by default the model's.",
      },
    },
  },
  {
    name = "memories",
    description = "Notes sent with every question, see |codecompanion-gather-memories|.",
    fields = {
      { name = "enabled", type = "boolean", default = true, description = "Send the notes." },
      {
        name = "user",
        type = "string",
        default = "~/.codecompanion/memories.md",
        description = "File with your preferences.",
      },
      {
        name = "project",
        type = "string",
        default = ".codecompanion/memories.md",
        description = "File with notes on a project.",
      },
    },
  },
  {
    name = "team",
    description = "Text to send with questions about people, meetings or sprints.",
    fields = {
      {
        name = "enabled",
        type = "boolean",
        default = false,
        description = "Send the text.",
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
        description = "Program and arguments, run in the project's folder at most once a minute; replaces `file`.",
      },
    },
  },
}
