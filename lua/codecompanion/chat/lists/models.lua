---Lists the adapters and models known to the host, for `/model`, `/adapter` and their completion.

local nearest = require("codecompanion.values.nearest")
local readiness = require("codecompanion.adapters.readiness")
local registry = require("codecompanion.chat.state.open_chats")
local session = require("codecompanion.chat.state.session")
local sorted = require("codecompanion.values.sorted")

local M = {}

---@class CodeCompanion.ModelChoice
---@field adapter string
---@field model string
---@field window? integer
---@field about? string Short report of a local server about the model

---The host's last result, cached because completion must not wait.
---@type CodeCompanion.ModelChoice[]
local known = {}
---@type table<string, { problem: string, brief: string }> Adapters without models, and the reason
local problems = {}
local asked
local FRESH_MS = 60000

---@return table http `adapters.http` of the options
local function http()
  return require("codecompanion.config").options.adapters.http
end

---@param result table[] Result of `list_models`
---@return CodeCompanion.ModelChoice[]
local function flatten(result)
  local choices = {}
  problems = {}
  for _, group in ipairs(result) do
    if #(group.models or { group }) == 0 then
      problems[group.adapter] = { problem = group.problem or "", brief = group.brief or "" }
    end
    for _, model in ipairs(group.models or { group }) do
      local name = type(model) == "table" and model.name or model
      local window = type(model) == "table" and model.window or nil
      local about = type(model) == "table" and (model.about or "") ~= "" and model.about or nil
      choices[#choices + 1] = { adapter = group.adapter, model = name, window = window, about = about }
    end
  end
  return choices
end

---Request all models of all adapters from the host.
---@param chat CodeCompanion.Chat
---@param callback fun(choices: CodeCompanion.ModelChoice[])
---@param on_error? fun(reason: string)
function M.list(chat, callback, on_error)
  session.request(chat, "list_models", { adapter = "" }, function(result)
    known, asked = flatten(result), vim.uv.now()
    callback(known)
  end, on_error)
end

---Refresh the result for the next call if it is a minute old, because some adapters ask a server.
local function refresh()
  local chat = registry.current()
  if chat and chat.attached == "yes" and (not asked or vim.uv.now() - asked > FRESH_MS) then
    asked = vim.uv.now()
    M.list(chat, function() end, function() end)
  end
end

---@param field "adapter"|"model"
---@param choices CodeCompanion.ModelChoice[]
---@return string[]
local function distinct(field, choices)
  local seen, found = {}, {}
  for _, choice in ipairs(choices) do
    if not seen[choice[field]] then
      seen[choice[field]] = true
      found[#found + 1] = choice[field]
    end
  end
  return found
end

---@param field "adapter"|"model"
---@param lead string
---@param adapter? string
---@return string[]
local function completed(field, lead, adapter)
  refresh()
  local choices = vim.tbl_filter(function(choice)
    return adapter == nil or choice.adapter == adapter
  end, known)
  return vim.tbl_filter(function(name)
    return name:find(lead, 1, true) ~= nil
  end, distinct(field, choices))
end

---Return model names that contain `lead`, from the host's last result.
---@param lead string
---@param adapter? string Only models of this adapter
---@return string[]
function M.names(lead, adapter)
  return completed("model", lead, adapter)
end

---Return adapter names that contain `lead`, from the host's last result.
---@param lead string
---@return string[]
function M.adapters(lead)
  return completed("adapter", lead)
end

---Switch to a model of an adapter, and install the adapter's official client if it needs one.
---@param chat CodeCompanion.Chat
---@param adapter string
---@param model? string Defaults to the adapter's default model
function M.use(chat, adapter, model)
  if readiness.of(adapter, http()).needs_client then
    require("codecompanion.host.install_extra").need("sdk")
  end
  session.set_model(chat, adapter, model, function()
    require("codecompanion.adapters.default_adapter").choose(require("codecompanion.config").options, adapter, model)
  end)
end

---Switch to a model of the chat's adapter, otherwise of the first adapter that lists it. An unlisted name is used as
---typed, because not every endpoint lists all of its models.
---@param chat CodeCompanion.Chat
---@param name string
---@param refuse fun(reason: string)
function M.use_model(chat, name, refuse)
  M.list(chat, function(choices)
    local elsewhere
    for _, choice in ipairs(choices) do
      if choice.model == name and choice.adapter == chat.adapter then
        return M.use(chat, choice.adapter, name)
      end
      elsewhere = elsewhere or (choice.model == name and choice) or nil
    end
    if elsewhere then
      return M.use(chat, elsewhere.adapter, name)
    end
    local near = nearest.word(name, distinct("model", choices))
    if near then
      return refuse(("No adapter lists the model %s; did you mean %s? The model was not changed."):format(name, near))
    end
    M.use(chat, chat.adapter, name)
  end)
end

---@param text string
---@return string
local function sentence(text)
  return text:find("[.!?]$") and text or (text .. ".")
end

---@class CodeCompanion.UnusableAdapter
---@field adapter string
---@field brief string Missing requirement, in a few words
---@field is_first boolean It is configured or current, so it is above the others

---Return the rows of the list: the configured adapters, the current one, the other models that can be used, then the
---adapters that cannot, with the reason.
---
---The host tries keys and addresses. Cloud credentials are used only by the official client, so they are checked here.
---@param choices CodeCompanion.ModelChoice[]
---@param current string Adapter of the chat
---@return (CodeCompanion.ModelChoice|CodeCompanion.UnusableAdapter)[]
function M.rows(choices, current)
  local lacking, entries = {}, http()
  for name, why in pairs(problems) do
    lacking[name] = readiness.needs(name, entries) or why.brief
  end
  for _, name in ipairs(distinct("adapter", choices)) do
    local one = readiness.of(name, entries)
    lacking[name] = one.state == "cloud" and one.text or nil
  end
  local first, second, third, usable, last = {}, {}, {}, {}, {}
  local function put(row, others)
    local is_own, is_current = readiness.is_own(row.adapter, entries), row.adapter == current
    table.insert(is_own and (is_current and first or second) or is_current and third or others, row)
  end
  for _, choice in ipairs(choices) do
    if not lacking[choice.adapter] then
      put(choice, usable)
    end
  end
  for name, needs in sorted(lacking) do
    local is_first = name == current or readiness.is_own(name, entries)
    put({ adapter = name, brief = needs, is_first = is_first }, last)
  end
  return vim.iter({ first, second, third, usable, last }):flatten():totable()
end

---Use an adapter that could not be used when the list was opened, if it can be used now.
---@param chat CodeCompanion.Chat
---@param row CodeCompanion.UnusableAdapter
---@param refuse fun(reason: string)
function M.try_again(chat, row, refuse)
  local name = row.adapter
  local is_current = name == chat.adapter
  local function no(why)
    refuse(sentence(why) .. (is_current and "" or " The adapter was not changed."))
  end
  if not problems[name] or readiness.is_template(name, http()) then
    return no(("%s: %s"):format(name, row.brief))
  end
  session.request(chat, "list_models", { adapter = name }, function(result)
    local group = result[1] or {}
    if #(group.models or {}) == 0 then
      return no((group.problem or "") ~= "" and group.problem or ("%s: %s"):format(name, row.brief))
    end
    M.use(chat, name, is_current and chat.model ~= "" and chat.model or nil)
  end, refuse)
end

---Switch to an adapter with its default model.
---@param chat CodeCompanion.Chat
---@param name string
---@param refuse fun(reason: string)
function M.use_adapter(chat, name, refuse)
  M.list(chat, function(choices)
    local names = distinct("adapter", choices)
    if vim.list_contains(names, name) then
      return M.use(chat, name)
    end
    if problems[name] and problems[name].problem ~= "" then
      return refuse(("%s The adapter was not changed."):format(sentence(problems[name].problem)))
    end
    local near = nearest.word(name, names)
    local advice = near and ("did you mean %s?"):format(near) or ("there are %s."):format(table.concat(names, ", "))
    refuse(("No adapter %s; %s The adapter was not changed."):format(name, advice))
  end)
end

return M
