// Success counts of groups whose success probabilities have a Beta distribution, integrated out.
data {
  int<lower=1> N;                        // groups
  array[N] int<lower=0> y;               // successes
  array[N] int<lower=1> n;               // trials
  real icc_a;                            // exponents of the prior of icc, which may be improper:
  real icc_b;                            // (1, 1) is uniform, (1/2, -1/2) is (5.9) of BDA3
}
parameters {
  real<lower=0, upper=1> mean_p;         // mean of the Beta distribution
  real<lower=0, upper=1> icc;            // intraclass correlation, 1 / (alpha + beta + 1)
}
model {
  real total = (1 - icc) / icc;          // alpha + beta
  target += (icc_a - 1) * log(icc) + (icc_b - 1) * log1m(icc);
  y ~ beta_binomial(n, mean_p * total, (1 - mean_p) * total);
}
