"""Trials in their order and evaluations run again: evidence against chance, changes."""
