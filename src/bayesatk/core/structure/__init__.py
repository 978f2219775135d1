"""Questions with structure: groups, and covariates."""
