---Severity of a message to the user: the values of `vim.log.levels`, under the names that the host sends.

---@enum CodeCompanion.Severity
return {
  DEBUG = vim.log.levels.DEBUG,
  INFO = vim.log.levels.INFO,
  WARN = vim.log.levels.WARN,
  ERROR = vim.log.levels.ERROR,
}
