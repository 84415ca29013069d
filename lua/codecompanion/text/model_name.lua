local short_model = require("codecompanion.text.short_model")

---Return the name of an adapter and its model in one line: `openai · gpt-4.1`; the adapter alone if the model is
---unknown or has the same name.
---@param adapter string
---@param model? string
---@param shown? string Display name of the adapter
---@return string
return function(adapter, model, shown)
  shown = shown or adapter
  if not model or model == "" or model == adapter or model == shown then
    return shown
  end
  return ("%s · %s"):format(shown, short_model(model))
end
