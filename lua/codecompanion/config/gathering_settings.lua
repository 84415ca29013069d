---Returns the settings of `context` (gathering code for a question, R-265) as they are sent to the host.

---@param given table `context` of the options
---@param adapter_reference fun(value: string|table): string, string Returns the adapter's name and model
---@return table
return function(given, adapter_reference)
  local name, model = "", ""
  if given.utility then
    name, model = adapter_reference(given.utility)
  end
  return {
    enabled = given.enabled,
    pipeline = given.pipeline,
    classify = given.classify,
    utility = name,
    utility_model = model,
    window = given.window or 0,
    budgets = next(given.budgets) == nil and vim.empty_dict() or given.budgets,
    timeout_s = given.timeout / 1000,
    include_hidden = given.include_hidden,
    max_file_size_mb = given.max_file_size_mb,
    supplement_when_files_selected = given.supplement_when_files_selected,
    hybrid = given.hybrid,
    embedding = next(given.embedding) == nil and vim.empty_dict() or given.embedding,
    memories = given.memories,
    team = {
      enabled = given.team.enabled,
      file = given.team.file or "",
      command = given.team.command or {},
    },
  }
end
