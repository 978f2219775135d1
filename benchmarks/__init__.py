"""Benchmarks: ratios in one run, and coverage."""
