"""Argument checks, seeds, progress bars, batches of simulations."""
