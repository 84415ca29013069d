"""What a chat counts: tokens, usage, money, budgets, reports."""
