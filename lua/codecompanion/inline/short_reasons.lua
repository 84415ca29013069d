---Why there are no suggestions, in fewer and fewer words: what fits a command line of 80 columns, or of 60.

---Each takes something away that is worth less than the rest.
---@type { [1]: string, [2]: string }[]
local STEPS = {
  { "^completion: ", "" },
  { "^the Python packages are ", "" },
  { "^(there is nothing at .* %(404%)).*$", "%1" }, -- but here the address is worth more
  { "^there is (nothing at) https?://", "%1 " },
  { "%. The provider says: (.*)$", ": %1" }, -- what it says is worth more than what is to be done
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
---@return string[] forms All of it first
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
