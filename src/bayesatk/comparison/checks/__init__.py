"""Whether the model fits the data, which model fits better, and what one run leaves to luck."""
