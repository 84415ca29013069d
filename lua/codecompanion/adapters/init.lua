---Adapters as the user configures them: `extend`, names, and what is known of them here and told to the host.

---@class CodeCompanion.AdapterInfo What functions of the configuration are told about an adapter
---@field name string
---@field formatted_name string
---@field type "http"
---@field kind "openai"|"openai_compatible"|"openai_responses"|"anthropic"|"copilot"|"chatgpt"|"offline"
---@field model string "" = not known yet

local M = {}

---An adapter based on another, for `adapters.http.<name> = function() return require(…).extend("openai", { … }) end`.
---@param name string The adapter to start from
---@param opts? CodeCompanion.AdapterEntry What is different
---@return CodeCompanion.AdapterEntry
function M.extend(name, opts)
  if type(name) ~= "string" or (opts ~= nil and type(opts) ~= "table") then
    error('extend() takes the name of an adapter and a table: extend("openai_compatible", { … })', 2)
  end
  return vim.tbl_extend("force", opts or {}, { extends = name })
end

---@param http table `adapters.http` of the options
---@return string[] names Sorted
function M.names(http)
  return require("codecompanion.adapters.adapter_entry").names(http)
end

---@param name string
---@param http table `adapters.http` of the options
---@return CodeCompanion.Resolving
function M.resolve(name, http)
  return require("codecompanion.adapters.adapter_entry").resolve(name, http)
end

---What functions in the configuration are told about an adapter.
---@param settings CodeCompanion.AdapterSettings
---@param model? string
---@return CodeCompanion.AdapterInfo
function M.info(settings, model)
  return {
    name = settings.name,
    formatted_name = settings.formatted_name,
    type = "http",
    kind = settings.kind,
    model = model and model ~= "" and model or settings.model,
  }
end

return M
