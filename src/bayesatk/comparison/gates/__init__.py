"""Release gates: a policy, its verdict on two runs, and how often such verdicts are right."""
