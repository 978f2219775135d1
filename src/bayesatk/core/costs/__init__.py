"""Success and cost together: prior, posterior, draws, quantities."""
