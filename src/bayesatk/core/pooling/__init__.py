"""What questions share: distinct counts, difficulty families, hyperparameters, error rates."""
