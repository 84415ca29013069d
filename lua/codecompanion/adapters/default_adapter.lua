---Chooses the adapter of new chats if `interactions.chat.adapter` is not set: the first usable one. The user's own
---entries come before `adapters.http.opts.order`.
---
---An adapter is usable when its key is set, its login exists or its local server lists a model. Commands and functions
---that return keys are not run for this check. The automatic choice lasts for the session; it is repeated only while no
---adapter is usable. The user's choice is kept for later sessions (`kept_model.lua`). Every function takes the merged
---options, because the configuration depends on the choice.

local adapters = require("codecompanion.adapters")
local kept_model = require("codecompanion.adapters.kept_model")
local model_name = require("codecompanion.text.model_name")
local readiness = require("codecompanion.adapters.readiness")

---@class CodeCompanion.AdapterChoice
---@field name string
---@field model string "" = the adapter's default
---@field why string Why it is usable: `$OPENAI_API_KEY is set`; "" = the user chose it
---@field is_usable boolean false: no adapter is usable, and `offline` answers
---@field is_told? boolean The user has been notified of the choice

local M = {}

M.FALLBACK = "offline"
---@type CodeCompanion.AdapterChoice
local NOTHING = { name = M.FALLBACK, model = "", why = "no key, login or local server was found", is_usable = false }

---@class CodeCompanion.SessionChoice
---@field options? table The options that the choice belongs to
---@field choice? CodeCompanion.AdapterChoice
---@field waiting? fun(choice: CodeCompanion.AdapterChoice)[]

---@type CodeCompanion.SessionChoice
local state = {}

---Return the adapter that the user has configured for new chats.
---@param options table
---@return string? name
---@return string model
local function configured(options)
  local given = options.interactions.chat.adapter
  if type(given) == "table" then
    return given.name, given.model or ""
  end
  return given, ""
end

---Return whether the adapter is chosen here, because none is configured for new chats.
---@param options table
---@return boolean
function M.is_automatic(options)
  return configured(options) == nil
end

---Return the adapters in the order in which they are tried: the one that the user chose last is the first.
---@param http table `adapters.http` of the options
---@return string[]
local function candidates(http)
  local order = http.opts.order
  local own = vim.tbl_filter(function(name)
    return http[name] ~= nil and not require("codecompanion.adapters.builtin_adapters")[name]
  end, adapters.names(http))
  local kept = kept_model.read().adapter
  local names = vim.tbl_filter(function(name)
    return not vim.list_contains(order, name)
  end, own)
  names = vim.list_extend(names, order)
  return kept and vim.list_extend({ kept }, names) or names -- asking one twice does no harm
end

---@param one CodeCompanion.AdapterReadiness
---@return CodeCompanion.AdapterChoice?
local function choice_of(one)
  if one.state ~= "ready" then
    return nil
  end
  local kept = kept_model.read()
  local is_kept = kept.adapter == one.name
  local model = is_kept and kept.model or ""
  if one.asks and not vim.list_contains(one.models or {}, model) then
    model = one.model or "" -- a model of Ollama's cloud is not local: the user has to name it
    if model == "" or (readiness.is_cloud_model(model) and model ~= one.default_model) then
      return nil
    end
  elseif model == "" then
    model = one.model or one.default_model or ""
  end
  local why = is_kept and "" or one.why or one.text
  return { name = one.name, model = model, why = why, is_usable = true, is_told = is_kept }
end

---Return the adapters up to the first that is certainly usable, and the local servers among them.
---@param http table
---@return CodeCompanion.AdapterReadiness[] found
---@return CodeCompanion.AdapterReadiness[] servers
local function look(http)
  local found, servers, known = {}, {}, adapters.names(http)
  for _, name in ipairs(candidates(http)) do
    if vim.list_contains(known, name) then -- an unknown adapter is reported with the configuration
      local one = readiness.of(name, http)
      found[#found + 1] = one
      if one.asks then
        servers[#servers + 1] = one
      elseif one.state == "ready" then
        break
      end
    end
  end
  return found, servers
end

---@param one CodeCompanion.AdapterReadiness
---@return boolean
local function is_on_this_machine(one)
  local host = one.asks.host
  return host == "localhost" or host == "::1" or host:find("^127%.%d+%.%d+%.%d+$") ~= nil
end

---@param found CodeCompanion.AdapterReadiness[]
---@return CodeCompanion.AdapterChoice
local function first_usable(found)
  for _, one in ipairs(found) do
    local choice = choice_of(one)
    if choice then
      return choice
    end
  end
  return vim.deepcopy(NOTHING)
end

---Choose an adapter, unless one is already chosen.
---@param options table
---@param done fun(choice: CodeCompanion.AdapterChoice) Called at once if no server has to be asked, otherwise within
---0.3 s
---@param is_local? boolean Ask only servers on this machine
function M.make(options, done, is_local)
  if state.options ~= options then
    state = { options = options }
  end
  local chosen = state.choice
  if chosen and chosen.is_usable then
    return done(chosen)
  elseif state.waiting then
    table.insert(state.waiting, done)
    return
  end
  local of = state
  local found, servers = look(options.adapters.http)
  servers = is_local and vim.tbl_filter(is_on_this_machine, servers) or servers
  if #servers == 0 then
    of.choice = first_usable(found)
    return done(of.choice)
  end
  of.waiting = { done }
  readiness.ask(servers, function()
    of.choice = first_usable(found)
    local waiting = of.waiting --[=[@as fun(choice: CodeCompanion.AdapterChoice)[]]=]
    of.waiting = nil
    for _, callback in ipairs(waiting) do
      callback(of.choice)
    end
  end)
end

---Call a function once the adapter of new chats is known.
---@param options table
---@param go_on fun() Called immediately if the configuration names the adapter
function M.when_known(options, go_on)
  if not M.is_automatic(options) then
    return go_on()
  end
  M.make(options, function()
    go_on()
  end)
end

---Return the current choice, which may be incomplete.
---@param options table
---@return CodeCompanion.AdapterChoice?
function M.now(options)
  return state.options == options and state.choice or nil
end

---Return the adapter of new chats: the configured one, the chosen one, or `offline` before a choice is made.
---@param options table
---@return string name
---@return string model "" = the adapter's default
function M.reference(options)
  local name, model = configured(options)
  if name then
    return name, model
  end
  local choice = M.now(options) or NOTHING
  return choice.name, choice.model
end

---Return whether the configuration names an adapter, but no model for it.
---@param options table
---@param name string
---@return boolean
local function leaves_model_open(options, name)
  local given, model = configured(options)
  local entry = options.adapters.http[name]
  local is_open = type(entry) == "table" and vim.tbl_get(entry, "schema", "model", "default") == nil
  return is_open and given == name and model == ""
end

---Use the adapter and model that the user picked for new chats too, now and in later sessions, as far as the
---configuration does not name them, and tell the user.
---@param options table
---@param name string
---@param model? string
function M.choose(options, name, model)
  local is_automatic, shown = M.is_automatic(options), model_name(name, model)
  local say = require("codecompanion.say")
  if not is_automatic and not leaves_model_open(options, name) then
    local of_new = model_name(configured(options))
    if of_new == shown then
      return
    end
    local line = ("Using %s in this chat. For new ones: %s"):format(shown, M.lua_line(name, model))
    local brief = ("Using %s in this chat; new ones use %s, as in setup()"):format(shown, of_new)
    return say.line({ line, brief, "New chats use the model in setup()" })
  end
  kept_model.write(name, model)
  if is_automatic then
    state.options = options
    state.choice = { name = name, model = model or "", why = "", is_usable = true, is_told = true }
  end
  say.line({ ("Using %s, also in new chats"):format(shown), "New chats use it too" })
end

---Return the configuration line that names the adapter and model of new chats.
---@param name string
---@param model? string
---@return string
function M.lua_line(name, model)
  if model then
    return ('interactions = { chat = { adapter = { name = "%s", model = "%s" } } },'):format(name, model)
  end
  return ('interactions = { chat = { adapter = "%s" } },'):format(name)
end

---Return the adapter and model for a new chat, or nothing if the host knows them from the configuration. If no adapter
---was usable, check again, because the user may have logged in since.
---@param options table
---@return string? name
---@return string? model
function M.for_new_chat(options)
  if not M.is_automatic(options) then
    local name = configured(options)
    local kept = kept_model.read()
    if kept.adapter == name and kept.model ~= "" and leaves_model_open(options, name) then
      return name, kept.model
    end
    return nil, nil
  end
  local choice = M.now(options)
  if not choice then
    return nil, nil
  elseif not choice.is_usable then
    local found = look(options.adapters.http)
    choice = #found > 0 and choice_of(found[#found]) or choice
    state.choice = choice
  end
  return choice.name, choice.model ~= "" and choice.model or nil
end

---Return the notification about a choice.
---@param choice CodeCompanion.AdapterChoice
---@param key? string Key that changes the choice, shown in place of the command
---@return string
function M.sentence(choice, key)
  local name = model_name(choice.name, choice.model)
  local why = choice.why ~= "" and ": " .. choice.why or ""
  return ("%s chosen%s · %s changes it"):format(name, why, key or ":CodeCompanion adapter")
end

---Announce the choice on the command line, once, before the first request made outside a chat.
---@param options table
function M.tell(options)
  if not M.is_automatic(options) then
    return
  end
  M.make(options, function(choice)
    if choice.is_usable and not choice.is_told then
      choice.is_told = true
      local brief = ("%s chosen: %s"):format(choice.name, choice.why)
      require("codecompanion.say").line({ M.sentence(choice), brief, choice.name .. " chosen" })
    end
  end)
end

return M
