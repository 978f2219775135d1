"""Logit-normal difficulties of questions that systems share in part."""
