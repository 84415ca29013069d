---Returns the options that the chat buffer reads; their defaults are in the option schema (`codecompanion.config`).

local model_name = require("codecompanion.text.model_name")

local M = {}

---@return table options The whole option table
function M.all()
  return require("codecompanion.config").options
end

---@return table display The options `display.chat`
function M.display()
  return M.all().display.chat
end

---@return table chat The options `interactions.chat`
function M.chat()
  return M.all().interactions.chat
end

---Return the display name of an adapter: the user's `formatted_name`, otherwise its name.
---@param adapter string
---@return string
local function name_of(adapter)
  local entry = M.all().adapters.http[adapter]
  if type(entry) == "function" then
    local ok, made = pcall(entry)
    entry = ok and made or nil
  end
  local name = type(entry) == "table" and entry.formatted_name
  return type(name) == "string" and name ~= "" and name or adapter
end

---Return the text of a role header, without `## `.
---@param role "user"|"llm"
---@param adapter? string
---@param model? string
---@return string
function M.header(role, adapter, model)
  local name = M.chat().roles[role]
  if type(name) == "function" then
    local shown = adapter and model_name(adapter, model, name_of(adapter)) or model or ""
    local ok, text = pcall(name, { name = adapter or "", formatted_name = shown, model = model or "" })
    name = ok and type(text) == "string" and text or (role == "user" and "Me" or "CodeCompanion")
  end
  return (name:gsub("[\r\n]+", " "))
end

return M
