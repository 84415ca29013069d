---User autocmds of the context policies: one for each documented event of a policy, named after it (`context_pruned`
---fires `CodeCompanionContextPruned`). `context/named_events.py` (Python) creates the fields; a test compares its names
---and fields with this table. Events and fields have the names used in the products they come from.

local M = {}

local COMPACTION = "string: id of the compaction that the event belongs to, or empty"

---@type CodeCompanion.Autocmd[]
M.list = {
  {
    name = "CodeCompanionContextCompactionStarted",
    description = "A history compaction began. SessionHistoryContinuationUpdated or ContextCompactionFailed follows.",
    data = {
      { "scope", 'string: "history"' },
      { "input_limit_tokens", "integer: maximum input of the model" },
      { "trigger_tokens", "integer: size above which a compaction begins" },
      { "target_tokens", "integer: target size after the compaction" },
      { "estimated_request_tokens", "integer: size of the next request" },
    },
  },
  {
    name = "CodeCompanionContextCompactionFailed",
    description = "A history compaction failed, so there is no new summary.",
    data = {
      { "scope", 'string: "history"' },
      { "input_limit_tokens", "integer: maximum input of the model" },
      { "trigger_tokens", "integer: size above which a compaction begins" },
      { "target_tokens", "integer: target size after the compaction" },
      { "estimated_request_tokens", "integer: size of the next request" },
      { "reason", "string: artifact_generation_failed, input_limit_unreachable, input_limit_pressure or interrupted" },
      { "detail", "string: one sentence" },
    },
  },
  {
    name = "CodeCompanionSessionHistoryContinuationUpdated",
    description = "The history summary was updated.",
    data = {
      { "event_version", "integer: 1" },
      { "artifact_version", "integer: 1" },
      { "renderer_version", "integer: 1" },
      { "frontier_turn_id", "string: id of the last turn that the summary covers" },
      { "consolidated_turn_count", "integer: number of turns that the summary covers" },
      { "newly_consolidated_turn_count", "integer: number of these turns that are new in the summary" },
      { "update_reason", "string: semantic_closure, token_pressure, rebuild, checkpoint_restore or manual_request" },
      { "activity_text", "string: one line for a status line" },
      { "artifact", "table: the facts from which the summary was rendered" },
      { "rendered_summary", "string: the summary as it is sent to the model" },
      {
        "input_budget",
        "table: input_limit_tokens, trigger_tokens, target_tokens, estimated_request_tokens, "
          .. "consolidated_request_tokens",
      },
      { "attribution", "table: model, input_limit_source, measurement_source, summary_source, algorithm, duration_ms" },
    },
  },
  {
    name = "CodeCompanionPromptCompiled",
    description = "A request was assembled. The event lists its instructions and their sources.",
    data = {
      { "shape", "string: full, or compact when shortened fragments were used" },
      { "base_instructions", "integer: bytes of the system prompt" },
      { "instructions", "integer: bytes of all instructions" },
      { "cacheable_prefix", "integer: bytes that do not change between requests" },
      { "dynamic_suffix", "integer: bytes after the prefix" },
      { "layers", "table[]: name, kind, source, stability, status, fragments, bytes" },
      { "fragments", "table[]: kind, source, stability, layer, key, label, bytes, tokens" },
    },
  },
  {
    name = "CodeCompanionContextPruned",
    description = "Earlier turns were removed from a request or shortened in it.",
    data = {
      { "prior_turns", "integer: number of earlier turns that the request contains" },
      { "prior_input_bytes", "integer: size of these turns" },
      { "raw_prior_turns", "integer: number of turns sent unchanged" },
      { "raw_input_bytes", "integer: size of these turns" },
      { "compacted_prior_turns", "integer: number of turns sent with shortened results" },
      { "compacted_input_bytes", "integer: size of these turns as sent" },
      { "omitted_prior_turns", "integer: number of turns covered only by the summary" },
      { "omitted_input_bytes", "integer: size of these turns" },
      {
        "turn_ids",
        "string[]: ids of the turns removed since the last such event; after a restart, of all removed turns",
      },
    },
  },
  {
    name = "CodeCompanionContextSummarized",
    description = "The session context was compacted.",
    data = {
      { "summary", "string: the new summary" },
      { "removedCount", "integer: number of messages that the summary replaces" },
      { "tokensBefore", "integer: size of the next request before the compaction" },
      { "tokensAfter", "integer: size of the next request afterwards, including the summary" },
      { "proactive", "boolean: true if the window was not full yet, absent otherwise" },
      { "metadata", "table: availableTokens, originalTokens, truncatedToolResults, removedMessages, kind" },
    },
  },
  {
    name = "CodeCompanionContextToolsTruncated",
    description = "Tool results were shortened; no message had to be removed.",
    data = {
      { "count", "integer: number of results" },
      { "before", "integer: size of the next request before the change" },
      { "after", "integer: size of the next request afterwards" },
    },
  },
  {
    name = "CodeCompanionPinnedOverTarget",
    description = "Messages that must never be removed are larger than the target.",
    data = {
      { "pinned_tokens", "integer: size of the protected messages" },
      { "target_tokens", "integer: target size after the compaction" },
    },
  },
  {
    name = "CodeCompanionContextWindowStatus",
    description = "The context window is nearly full.",
    data = {
      { "warningLevel", 'string: "warning" or "critical"' },
      { "usageTokens", "integer: size of the next request before it was shortened" },
      { "budgetTokens", "integer: size of the context window" },
      { "compacted", "boolean: the chat was just compacted, or tool results were cleared or cut" },
      { "tier", "integer: tier of the compaction, 0 = none" },
      { "sentTokens", "integer: size of the request as it is sent" },
    },
  },
  {
    name = "CodeCompanionContextStillOverBudget",
    description = "The request is still too large after the last tier; it is sent anyway.",
    data = {
      { "tokens", "integer: size of the next request" },
      { "budget_tokens", "integer: the limit that the request exceeds" },
      { "tier", "integer: the tier that ran last" },
    },
  },
  {
    name = "CodeCompanionContextCapacityRecoveryStarted",
    description = "A provider rejected a request as too long; it is being shortened.",
    data = {
      { "attempt", "integer: number of the attempt, from 1" },
      { "tokensBefore", "integer: size of the rejected request" },
      { "targetTokens", "integer: target size" },
    },
  },
  {
    name = "CodeCompanionContextCapacityRecoveryCompleted",
    description = "The rejected request was shortened and is sent again.",
    data = {
      { "attempt", "integer: number of the attempt, from 1" },
      { "tokensBefore", "integer: size of the rejected request" },
      { "tokensAfter", "integer: size of the shortened request" },
      { "removedCount", "integer: number of messages removed from the request" },
    },
  },
  {
    name = "CodeCompanionContextCapacityRecoveryFailed",
    description = "The rejected request could not be shortened enough; the turn ends.",
    data = {
      { "attempt", "integer: number of the last attempt" },
      { "tokensBefore", "integer: size of the rejected request" },
      { "reason", "string: one sentence" },
    },
  },
  {
    name = "CodeCompanionCheckpointFailed",
    description = "The checkpoint before a compaction could not be written; the compaction continues.",
    data = { { "reason", "string: one sentence" } },
  },
  {
    name = "CodeCompanionMemoryFlushed",
    description = "A summary was written to the memory.",
    data = {
      { "kind", 'string: "compaction" or "pre_compaction"' },
      { "targets", 'string[]: where the summary was written: "memory", "daily_log"' },
      { "characters", "integer: length of the summary" },
    },
  },
  {
    name = "CodeCompanionConversationSnapshot",
    description = "The state of the chat was written to a file next to the database.",
    data = {
      { "schema", 'string: "session_runtime_v2"' },
      { "version", "integer: 2" },
      { "messageCount", "integer: number of messages in the next request" },
      { "checkpointKind", "string: snapshot, pre_compaction, periodic or completion" },
      { "estimatedSizeBytes", "integer: size of the file" },
    },
  },
  {
    name = "CodeCompanionSessionRestored",
    description = "The chat was restored from a checkpoint.",
    data = {
      { "source", "integer: 1 = checkpoint, 2 = snapshot, 3 and 4 = the same in an older format, 5 = event log" },
      { "chat", "string: id of the chat that was restored" },
      { "messages", "integer: number of messages" },
      { "upgraded", "boolean: whether the source was in an older format" },
      { "checkpointAt", "integer: time of the newest checkpoint in milliseconds, 0 if there is none" },
      { "snapshotAt", "integer: time of the newest snapshot in milliseconds, 0 if there is none" },
      { "note", "string: one sentence" },
    },
  },
}

for _, autocmd in ipairs(M.list) do
  table.insert(autocmd.data, { "compaction_id", COMPACTION })
end

---Return the pattern of the autocmd for an event of a policy.
---@param name string `context_pruned`
---@return string pattern `CodeCompanionContextPruned`
function M.pattern(name)
  return "CodeCompanion" .. name:gsub("_*(%l)(%w*)", function(first, rest)
    return first:upper() .. rest
  end)
end

return M
