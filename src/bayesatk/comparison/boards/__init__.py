"""Leaderboards: ranks and tiers of many systems, and what their questions tell apart."""
