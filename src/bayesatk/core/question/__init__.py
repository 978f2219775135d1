"""Laws of one question: credits of k trials, given counts or a distribution of p."""
