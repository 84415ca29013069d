---The built-in prompts, a few for daily use, written like a user's entries in `prompt_library`.

---Return a function that returns `words` and, if nothing is selected, mentions the current file; a selection is
---attached automatically.
---@param words string
---@return fun(context: CodeCompanion.PromptContext): string
local function about(words)
  return function(context)
    if context.is_visual or context.bufnr == 0 then
      return words
    end
    return words .. "\n\n#{buffer}"
  end
end

---@type table<string, table>
return {
  explain = {
    name = "Explain",
    description = "Explain this code and its pitfalls",
    opts = { alias = "explain", auto_submit = true },
    parameters = { { name = "focus", description = "Focus of the explanation", optional = true } },
    prompts = {
      {
        role = "user",
        content = about([[
Explain this code to someone who knows the language but not the project. ${parameters.focus}

1. Its purpose, in one or two sentences.
2. How it works, in execution order. Quote a line only where its wording matters.
3. Easily missed details: assumptions, side effects, edge cases, error handling.

Do not restate the code line by line or propose changes.]]),
      },
    },
  },
  fix = {
    name = "Fix diagnostics",
    description = "Find and fix the cause of the diagnostics",
    opts = { alias = "fix", auto_submit = true },
    prompts = {
      {
        role = "user",
        content = about([[
Fix the problems that this file's diagnostics report.

#{diagnostics}

- Find the cause first. Several diagnostics may share one; say which.
- Make the smallest change that removes the cause. Do not silence a diagnostic or change working code.
- If a diagnostic is wrong, or the right fix is a decision, say so instead of changing anything.
- At the end, say in a few sentences what you changed and why.]]),
      },
    },
  },
  tests = {
    name = "Tests",
    description = "Write tests for this code, in the style of the project",
    opts = { alias = "tests", auto_submit = true },
    parameters = { { name = "what", description = "What to test", optional = true } },
    prompts = {
      {
        role = "user",
        content = about([[
Write tests for this code. ${parameters.what}

- Look at the project's existing tests first, and use their framework, location, style and helpers.
- Test its promises to callers: normal use, limits, empty and wrong input, errors. Do not test its internals.
- Each test covers one thing, and its name says which. Write no test that cannot fail.
- If the code is hard to test or you find a bug, say so; do not change the code.]]),
      },
    },
  },
  commit = {
    name = "Commit message",
    description = "Write a commit message for the staged changes into the commit buffer",
    opts = { alias = "commit", is_slash_cmd = false },
    run = function()
      require("codecompanion.headless.commit_message").run()
    end,
  },
  review = {
    name = "Review",
    description = "Review the changes in the working tree",
    opts = { alias = "review", auto_submit = true, stop_context_insertion = true },
    parameters = {
      {
        name = "changes",
        description = "Changes to review",
        choices = { "staged", "unstaged", "branch" },
        default = "unstaged",
      },
    },
    prompts = {
      {
        role = "user",
        content = [[
Review these changes as a colleague who has to maintain them.

#{diff:${parameters.changes}}

- Look for defects first: bugs, broken callers, missing cases, races, security, data loss. Read the code around
  a change where the diff does not show enough.
- Then look for maintenance problems: unclear names, duplication, missing or useless tests.
- Give each finding as `file:line`, its effect and its fix, the most serious first. No matters of taste, no praise.
- Do not mention changes without problems. If you find no problems at all, say so in one sentence.]],
      },
    },
  },
}
