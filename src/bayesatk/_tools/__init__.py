"""Argument checks, error messages, seeds, progress bars, batches, threads, files written whole."""
