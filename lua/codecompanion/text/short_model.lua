---Return the displayed name of a model: the file or folder name if a local server uses the model's path as its id
---(`llama-server -m /models/smol.gguf`), else the whole id.
---@param model string
---@return string
return function(model)
  local is_path = model:find("^[/~]") or model:find("^%a:\\") or model:find("%.gguf$")
  return is_path and model:match("([^/\\]+)[/\\]*$") or model
end
