---Shortens the reason for missing suggestions in steps, to fit a command line of 80 or 60 columns.

---Steps of shortening, each of which removes the least important part.
---@type { [1]: string, [2]: string }[]
local STEPS = {
  { "^completion: ", "" },
  { "^the Python packages are ", "" },
  { "^(nothing found at .* %(404%)).*$", "%1" }, -- except here, where the address matters more
  { "^(nothing found at) https?://", "%1 " },
  { "%. The provider says: (.*)$", ": %1" }, -- the message matters more than the remedy
  { "%. %u.*$", "" },
  { "%.$", "" },
  { " %b()", "" },
  { "^https?://%S+", "the server" },
  { "^the server answered with ", "got " },
  { "^Ollama has no model %S+: ", "" },
  { "https?://", "" },
  { "^(no %a+) %a+ %S+", "%1" },
}

---@param why string
---@return string[] forms The full text first
return function(why)
  local forms = { why }
  for _, step in ipairs(STEPS) do
    local shorter = why:gsub(step[1], step[2], 1)
    if shorter ~= why and shorter ~= "" then
      why = shorter
      forms[#forms + 1] = why
    end
  end
  return forms
end
