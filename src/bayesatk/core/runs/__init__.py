"""Trials in their order and evaluations run again: plans, evidence against chance, changes."""
