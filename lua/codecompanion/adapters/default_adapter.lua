---Chooses the adapter of new chats where `interactions.chat.adapter` is not set: the first usable one, the user's own
---entries before `adapters.http.opts.order`.
---
---An adapter is usable when its key is set, its login exists or its server on this machine lists a model. Commands and
---functions that give keys are not run to find out. A choice lasts for the session; only while nothing is usable is it
---made again. Every function takes the merged options, because the configuration needs the choice.

local adapters = require("codecompanion.adapters")
local readiness = require("codecompanion.adapters.readiness")

---@class CodeCompanion.AdapterChoice
---@field name string
---@field model string "" = the adapter's default
---@field why string Why it can be used: `$OPENAI_API_KEY is set`; "" = the user chose it
---@field is_usable boolean false: nothing is, and `offline` answers
---@field is_told? boolean The user has been told of it

local M = {}

---@type CodeCompanion.AdapterChoice
local NOTHING = { name = "offline", model = "", why = "no key, login or local server was found", is_usable = false }

---@type { options: table?, choice: CodeCompanion.AdapterChoice?, waiting: fun(choice: CodeCompanion.AdapterChoice)[]? }
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

---Return whether the choice is made here: no adapter is configured for new chats.
---@param options table
---@return boolean
function M.is_automatic(options)
  return configured(options) == nil
end

---Return the adapters in the order in which they are tried.
---@param http table `adapters.http` of the options
---@return string[]
local function candidates(http)
  local order = http.opts.order
  local own = vim.tbl_filter(function(name)
    return http[name] ~= nil and not require("codecompanion.adapters.builtin_adapters")[name]
  end, adapters.names(http))
  local names = vim.tbl_filter(function(name)
    return not vim.list_contains(order, name)
  end, own)
  return vim.list_extend(names, order)
end

---@param one CodeCompanion.AdapterReadiness
---@return CodeCompanion.AdapterChoice?
local function choice_of(one)
  if one.state ~= "ready" then
    return nil
  elseif one.asks then
    local model = one.model -- one of Ollama's cloud is not a local model: the user has to name it
    if not model or (readiness.is_cloud_model(model) and model ~= one.default_model) then
      return nil
    end
  end
  return { name = one.name, model = one.model or one.default_model or "", why = one.why or one.text, is_usable = true }
end

---Return the adapters up to the first that is usable for certain, and the servers among them.
---@param http table
---@return CodeCompanion.AdapterReadiness[] found
---@return CodeCompanion.AdapterReadiness[] servers
local function look(http)
  local found, servers, known = {}, {}, adapters.names(http)
  for _, name in ipairs(candidates(http)) do
    if vim.list_contains(known, name) then -- one that does not exist is reported with the configuration
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

---Make the choice, unless it stands.
---@param options table
---@param done fun(choice: CodeCompanion.AdapterChoice) Called at once when no server has to be asked, else within 0.3 s
function M.make(options, done)
  if state.options ~= options then
    state = { options = options }
  end
  local standing = state.choice
  if standing and standing.is_usable then
    return done(standing)
  elseif state.waiting then
    table.insert(state.waiting, done)
    return
  end
  local of = state
  local found, servers = look(options.adapters.http)
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

---Go on once the adapter of new chats is known.
---@param options table
---@param go_on fun() Called at once where the configuration names it
function M.when_known(options, go_on)
  if not M.is_automatic(options) then
    return go_on()
  end
  M.make(options, function()
    go_on()
  end)
end

---Return the choice as far as it is made.
---@param options table
---@return CodeCompanion.AdapterChoice?
function M.now(options)
  return state.options == options and state.choice or nil
end

---Return the adapter of new chats: the configured one, the chosen one, `offline` before a choice is made.
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

---Let new chats use what the user chose from the list of adapters, for this Neovim; a configured adapter stays.
---@param options table
---@param name string
---@param model? string
function M.choose(options, name, model)
  if M.is_automatic(options) then
    state.options = options
    state.choice = { name = name, model = model or "", why = "", is_usable = true, is_told = true }
  end
end

---Return what a new chat is opened with: nothing where the host knows it from the configuration. A login that was made
---since nothing was usable counts.
---@param options table
---@return string? name
---@return string? model
function M.for_new_chat(options)
  local choice = M.is_automatic(options) and M.now(options) or nil
  if not choice then
    return nil, nil
  elseif not choice.is_usable then
    local found = look(options.adapters.http)
    choice = #found > 0 and choice_of(found[#found]) or choice
    state.choice = choice
  end
  return choice.name, choice.model ~= "" and choice.model or nil
end

---Return what the user is told of a choice.
---@param choice CodeCompanion.AdapterChoice
---@param key? string What changes it, in place of the command
---@return string
function M.sentence(choice, key)
  local name = choice.model ~= "" and ("%s · %s"):format(choice.name, choice.model) or choice.name
  local why = choice.why ~= "" and ": " .. choice.why or ""
  return ("%s chosen%s · %s changes it"):format(name, why, key or ":CodeCompanion adapter")
end

---Tell the user of the choice on the command line, once, before a request that no chat shows is sent.
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
