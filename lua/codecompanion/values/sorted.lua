---Iterates over a table in key order: numbers by value, then names alphabetically, so that messages have a stable
---order.

---@generic T: table
---@param map T
---@return fun(): any, any
return function(map)
  local keys = vim.tbl_keys(map)
  table.sort(keys, function(a, b)
    if type(a) == type(b) and (type(a) == "number" or type(a) == "string") then
      return a < b
    elseif type(a) ~= type(b) and (type(a) == "number" or type(b) == "number") then
      return type(a) == "number"
    end
    return tostring(a) < tostring(b)
  end)
  local position = 0
  return function()
    position = position + 1
    return keys[position], map[keys[position]]
  end
end
