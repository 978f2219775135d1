"""Trials in their order: rules for stopping early, changes on the way."""
