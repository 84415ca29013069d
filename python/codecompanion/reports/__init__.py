"""Reports on a chat's actions and cost, from its log alone, so they survive a restart (R-360)."""
