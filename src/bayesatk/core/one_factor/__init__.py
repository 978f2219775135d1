"""Systems crossed with questions: logit-normal difficulties that systems share in part."""
