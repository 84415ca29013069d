"""KodaCode's durable history summary as a typed value: built by code, merged, rendered."""
