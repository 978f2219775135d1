"""Comparison of models, and of systems with point nulls, by exact evidence and leave-one-out."""
