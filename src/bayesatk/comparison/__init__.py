"""Systems against each other, releases, plans, early stopping, and checks of the model."""
