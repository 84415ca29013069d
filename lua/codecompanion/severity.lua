---How serious a sentence for the user is: the values of `vim.log.levels`, under the names the host sends, too.

---@enum CodeCompanion.Severity
return {
  DEBUG = vim.log.levels.DEBUG,
  INFO = vim.log.levels.INFO,
  WARN = vim.log.levels.WARN,
  ERROR = vim.log.levels.ERROR,
}
