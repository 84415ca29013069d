"""Reports on a chat's actions and cost, using only its log, so that they survive a restart (R-360)."""
