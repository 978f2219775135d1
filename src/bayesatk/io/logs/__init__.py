"""Formats of logs: descriptions of records, and readers of what is no list of records."""
