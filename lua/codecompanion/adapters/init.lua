---Resolves the configured adapters: `extend`, their names, the editor's settings for them and the settings sent to the
---host.

---@class CodeCompanion.AdapterInfo Adapter details passed to functions of the configuration
---@field name string
---@field formatted_name string
---@field type "http"
---@field kind "openai"|"openai_compatible"|"openai_responses"|"anthropic"|"copilot"|"chatgpt"|"offline"
---@field model string "" = not known yet

local M = {}

---Return an adapter based on another, for
---`adapters.http.<name> = function() return require(…).extend("openai", { … }) end`.
---@param name string The adapter to start from
---@param opts? CodeCompanion.AdapterEntry Overrides
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

---Return the adapter details passed to functions of the configuration.
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
