---Returns the names that begin with the typed text, ignoring case.
---@param names string[]
---@param lead string
---@return string[]
return function(names, lead)
  return vim.tbl_filter(function(name)
    return vim.startswith(name:lower(), lead:lower())
  end, names)
end
