"""Outcomes: whatever comes in becomes counts per system, question and category."""
