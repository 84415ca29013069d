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
    description = 'When code is looked for. "auto": for every question about the project under the policy `codebuddy`,'
      .. " and under the others when a message has `#{codebase}` or names a file with `@`. True: under every policy."
      .. " False: never.",
  },
  {
    name = "pipeline",
    type = "string",
    enum = { "ranked", "document" },
    default = "ranked",
    description = 'How code is found and chosen. "ranked": all signals joined by fitted weights. "document": as the'
      .. " document of `codebuddy` has it, and as `/policy codebuddy strict` always does"
      .. " (|codecompanion-gather-pipeline|).",
  },
  {
    name = "classify",
    type = "boolean",
    default = true,
    description = "Look for code only when the question is about the project, as `utility` or the index says. False"
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
    description = "Context window that the budget of code is measured by, in tokens. By default the model's own. Code"
      .. " takes a quarter of it at most.",
  },
  {
    name = "budgets",
    type = "table",
    default = {},
    check = check_budgets,
    description = "The most tokens of code for a model, by its name or the beginning of it; `default` is for all"
      .. " others. They go before the built-in table.",
  },
  {
    name = "timeout",
    type = "integer",
    min = 100,
    default = 8000,
    description = "How long gathering may take, in milliseconds. What is found by then is sent.",
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
    description = "Larger files are left out, in megabytes. Of one that you name with `@` so much is read.",
  },
  {
    name = "supplement_when_files_selected",
    type = "boolean",
    default = true,
    description = "Look for more code also when files are named with `@`. False sends these files alone.",
  },
  {
    name = "hybrid",
    description = 'How the search weighs its results under `pipeline = "document"`. "ranked" reads none of these.',
    fields = {
      {
        name = "vector_weight",
        type = "number",
        default = 0.7,
        check = between(0, 1),
        description = "Weight of what is similar in meaning. Both weights are scaled to a sum of 1.",
      },
      {
        name = "text_weight",
        type = "number",
        default = 0.3,
        check = between(0, 1),
        description = "Weight of the words that occur.",
      },
      {
        name = "top_k",
        type = "integer",
        default = 10,
        check = between(1, 50),
        description = "How many results a search has.",
      },
      {
        name = "mmr",
        description = "Prefer results that differ from each other.",
        fields = {
          { name = "enabled", type = "boolean", default = false, description = "Do so." },
          {
            name = "lambda",
            type = "number",
            default = 0.7,
            check = between(0, 1),
            description = "1 minds only how well they answer, 0 only how much they differ.",
          },
        },
      },
      {
        name = "decay",
        description = "Prefer files that were changed lately.",
        fields = {
          { name = "enabled", type = "boolean", default = false, description = "Do so." },
          {
            name = "half_life_days",
            type = "integer",
            default = 30,
            check = between(1, 365),
            description = "After so many days without a change a result counts half.",
          },
        },
      },
    },
  },
  {
    name = "embedding",
    description = "Search by meaning: what turns code and questions into vectors. Without `url` and `onnx` words decide"
      .. " alone. See |codecompanion-embedding|.",
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
        description = "Where its key is: the name of an environment variable, `cmd:…` or `file:…`.",
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
        description = "Length of the vectors, for models that can shorten theirs.",
      },
      {
        name = "query_prefix",
        type = "string",
        optional = true,
        description = "What the model wants before a question. By default what its makers say, where that is known.",
      },
      {
        name = "document_prefix",
        type = "string",
        optional = true,
        description = "What the model wants before a piece of code. By default what its makers say, where that is"
          .. " known.",
      },
    },
  },
  {
    name = "memories",
    description = "What you want every question about a project to know, in Markdown files: `## [category] title`, then"
      .. " the text. Instructions of a kind that takes a model over are left out of them.",
    fields = {
      { name = "enabled", type = "boolean", default = true, description = "Send them along." },
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
    description = "What a question about your team may know: a file, or what a program prints.",
    fields = {
      {
        name = "enabled",
        type = "boolean",
        default = false,
        description = "Send it along when a question asks about people, stand-ups, sprints and the like.",
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
        description = "Program and arguments, run in the project's folder without a shell; it is asked once a minute at"
          .. " most. It goes before `file`.",
      },
    },
  },
}
