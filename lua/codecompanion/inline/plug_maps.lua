---Defines the <Plug> maps of Insert mode when it is first entered, so that they do not slow down startup.

---@type { [1]: string, [2]: string, [3]: string }[]
local PLUGS = {
  { "", "complete()", "Ask for suggestions at the cursor" },
  { "Accept", 'accept("all")', "Insert the suggestion at the cursor" },
  { "AcceptLine", 'accept("line")', "Insert its next line" },
  { "AcceptWord", 'accept("word")', "Insert its next word" },
  { "Next", "cycle(1)", "Show the next suggestion" },
  { "Previous", "cycle(-1)", "Show the previous suggestion" },
  { "Dismiss", "dismiss()", "Hide the suggestion" },
}

---@param plug fun(mode: string, name: string, keys: string, desc: string)
return function(plug)
  for _, one in ipairs(PLUGS) do
    plug("i", "Complete" .. one[1], ("<Cmd>lua require('codecompanion.inline').%s<CR>"):format(one[2]), one[3])
  end
end
