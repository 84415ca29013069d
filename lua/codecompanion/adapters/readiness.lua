---Determines what each adapter still needs before it can be used, without a request: its key variable, its login.
---`local_servers` asks the servers on this machine.

local adapters = require("codecompanion.adapters")
local builtin = require("codecompanion.adapters.builtin_adapters")
local clouds = require("codecompanion.adapters.clouds")
local logins = require("codecompanion.adapters.logins")
local servers = require("codecompanion.adapters.local_servers")
local short_model = require("codecompanion.text.short_model")

---@class CodeCompanion.AdapterReadiness
---@field name string
---@field state "ready"|"server"|"key"|"login"|"cloud"|"template"|"broken"|"offline"
---@field text string Short status: the credentials it has, or the requirement it lacks
---@field why? string Why it is ready, as a short sentence: `$OPENAI_API_KEY is set`
---@field default_model? string Default model of its entry
---@field model? string The first chat model that its local server lists, preferably one that runs locally
---@field models? string[] All models that its local server lists
---@field advice? string Suggestion for improving the setup of that server
---@field missing? string The missing variable or file
---@field page? string Page where users get a key
---@field needs_client? boolean It uses an official client, which must be installed
---@field start_command? string Command that starts its server
---@field asks? CodeCompanion.ServerAddress Server to ask before the readiness is known

local M = {}

local TEMPLATE = "openai_compatible" -- a base for `extends`, not a service
local TEMPLATE_NEEDS = "any other server: set its url in setup()"
local OLLAMA_PORT, HTTP_PORT = 11434, 80
local SHOWN_MODELS = 2
local NO_CHAT = { "embed", "rerank", "minilm", "bge-", "whisper" } -- in names of models that cannot chat

---@param path string
---@return boolean
local function exists(path)
  return vim.uv.fs_stat(path) ~= nil
end

---@param key string Source of a key
---@return string? missing The unset variable
---@return string has
---@return string why
local function look_for_key(key)
  if key == "function" then
    return nil, "key from a function", "its key comes from a function"
  elseif key:match("^cmd:") then
    return nil, "key from a command", "its key comes from a command"
  elseif key:match("^file:") then
    return not exists(vim.fs.normalize(key:sub(6))) and key:sub(6) or nil, "key in a file", "its key file exists"
  end
  return (vim.env[key] or "") == "" and key or nil, "key in " .. key, ("$%s is set"):format(key)
end

---Return the variable that names the address, if it is not set.
---@param about table The built-in entry
---@param entry table
---@return string?
local function missing_address(about, entry)
  for name, variable in pairs((about.entry or {}).env or {}) do
    if (entry.env or {})[name] == variable and (vim.env[variable] or "") == "" then
      return variable
    end
  end
end

---@param resolved CodeCompanion.Resolving
---@return CodeCompanion.AdapterReadiness
local function of_resolved(resolved)
  local name, settings = resolved.name, resolved.settings
  local about = builtin[name] or {}
  if not settings or #resolved.problems > 0 then
    return { name = name, state = "broken", text = resolved.problems[1] or "misconfigured" }
  elseif settings.kind == "offline" then
    return { name = name, state = "offline", text = "no model, for testing" }
  elseif logins[settings.kind] then
    local login = logins[settings.kind]
    local found = login.is_there()
    return {
      name = name,
      state = found and "ready" or "login",
      text = found and "login found" or login.needs,
      why = "a login was found",
      default_model = settings.model,
    }
  elseif clouds.of(settings.client) then
    local cloud = clouds.of(settings.client) --[[@as CodeCompanion.Cloud]]
    local found, missing = clouds.has_credentials(cloud), missing_address(about, resolved.entry)
    return {
      name = name,
      state = (found and not missing) and "ready" or "cloud",
      text = missing and ("needs " .. missing) or found and cloud.whose or cloud.needs,
      why = cloud.whose .. " were found",
      default_model = settings.model,
      needs_client = true,
    }
  elseif settings.key ~= "" then
    local missing, has, why = look_for_key(settings.key)
    missing = missing or missing_address(about, resolved.entry)
    return {
      name = name,
      state = missing and "key" or "ready",
      text = missing and ("needs " .. missing) or has,
      why = why,
      default_model = settings.model,
      missing = missing,
      page = about.key_page,
      needs_client = settings.transport == "sdk",
    }
  end
  local port = name == "ollama" and OLLAMA_PORT or HTTP_PORT
  local asks = servers.parse(settings.address, port)
  return {
    name = name,
    state = asks and "server" or "ready",
    text = settings.address,
    why = "it is configured",
    default_model = settings.model,
    start_command = about.start_command,
    asks = asks,
  }
end

---Return the readiness of one adapter, without asking a server.
---@param name string
---@param http table `adapters.http` of the options
---@return CodeCompanion.AdapterReadiness
function M.of(name, http)
  return of_resolved(adapters.resolve(name, http))
end

---Return whether the adapter should work without further setup, as far as can be seen without a request.
---@param name string
---@param http table
---@return boolean
function M.seems_ready(name, http)
  local state = M.of(name, http).state
  return state == "ready" or state == "server"
end

---@param adapter string
---@param names string[]
---@return string
local function model_names(adapter, names)
  if #names == 0 then
    return "running, without a model" .. (adapter == "ollama" and ": ollama pull downloads one" or "")
  end
  local shown = table.concat(vim.tbl_map(short_model, vim.list_slice(names, 1, SHOWN_MODELS)), ", ")
  return #names > SHOWN_MODELS and ("running: %s and %d more"):format(shown, #names - SHOWN_MODELS)
    or "running: " .. shown
end

---Return whether Ollama forwards requests for this model to its cloud service.
---@param model string
---@return boolean
function M.is_cloud_model(model)
  return model:find("[:-]cloud$") ~= nil
end

---Return the model to chat with: not an embedding model, judging by its name, and preferably one that runs locally.
---@param names string[]
---@return string?
local function chat_model(names)
  local chat = vim.tbl_filter(function(name)
    local lower = name:lower()
    return not vim.iter(NO_CHAT):any(function(word)
      return lower:find(word, 1, true) ~= nil
    end)
  end, names)
  local here = vim.iter(chat):find(function(name)
    return not M.is_cloud_model(name)
  end)
  return here or chat[1]
end

---Update the readiness of an adapter with the response of its server.
---@param one CodeCompanion.AdapterReadiness
---@param models? string[] nil when it did not answer
---@param is_loading? boolean The server responds but is still loading its model: a chat waits for it
local function take(one, models, is_loading)
  local place = ("%s:%d"):format(one.asks.host, one.asks.port)
  local configured = (one.default_model or "") ~= "" and one.default_model or nil
  one.state, one.model = (models or is_loading) and "ready" or "server", models and (configured or chat_model(models))
  one.models = models
  if is_loading then
    one.text = "running: loading the model"
  else
    one.text = models and model_names(one.name, models) or "local server, not running at " .. place
  end
  one.why = ("it is running at %s"):format(place)
end

---Query the servers of several adapters at once.
---@param some CodeCompanion.AdapterReadiness[] Adapters with `asks`
---@param done fun() Called once their status is known, within 0.3 s
function M.ask(some, done)
  local asked = {}
  for _, one in ipairs(some) do
    asked[one.name] = one.asks
  end
  servers.ask(asked, function(models, loading)
    for _, one in ipairs(some) do
      take(one, models[one.name], loading[one.name])
    end
    done()
  end)
end

local ORDER = { ready = 1, login = 2, key = 3, cloud = 4, server = 5, template = 6, broken = 7, offline = 8 }

---Return whether this is the built-in entry that the user's own servers extend.
---@param name string
---@param http table
---@return boolean
function M.is_template(name, http)
  return name == TEMPLATE and http[name] == nil
end

---Return whether the user has configured the adapter.
---@param name string
---@param http table `adapters.http` of the options
---@return boolean
function M.is_own(name, http)
  return http[name] ~= nil or (http.extend or {})[name] ~= nil
end

---Return the step that a user must take before an adapter can be used, or nil if nothing is known to be missing.
---@param name string
---@param http table
---@return string?
function M.needs(name, http)
  if M.is_template(name, http) then
    return TEMPLATE_NEEDS
  end
  local one = M.of(name, http)
  local lacks = one.state == "key" or one.state == "login" or one.state == "cloud"
  return lacks and one.text or nil
end

---Return all adapters, usable ones first.
---@param http table `adapters.http` of the options
---@param done fun(found: CodeCompanion.AdapterReadiness[])
function M.all(http, done)
  local found = {}
  for _, name in ipairs(adapters.names(http)) do
    local is_template = M.is_template(name, http)
    found[#found + 1] = is_template and { name = name, state = "template", text = TEMPLATE_NEEDS } or M.of(name, http)
  end
  local asked = vim.tbl_filter(function(one)
    return one.asks ~= nil
  end, found)
  M.ask(asked, function()
    table.sort(found, function(left, right)
      local first, second = ORDER[left.state], ORDER[right.state]
      return first == second and left.name < right.name or first < second
    end)
    done(found)
  end)
end

return M
