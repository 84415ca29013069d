---Ids of chats and what is unique among all editors: 24 hexadecimal digits.

---@return string
return function()
  return (vim.uv.random(12):gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end))
end
