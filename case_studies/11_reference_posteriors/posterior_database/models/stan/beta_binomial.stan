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
  // The Beta-binomial as products, up to a constant: beta_binomial() takes differences of log
  // gamma functions of 1 / icc, which are noise where icc is small, and chains stay there.
  real r = icc / (1 - icc);              // 1 / (alpha + beta)
  target += (icc_a - 1) * log(icc) + (icc_b - 1) * log1m(icc);
  for (i in 1:N) {
    for (j in 0:(y[i] - 1)) target += log(mean_p + j * r);
    for (j in 0:(n[i] - y[i] - 1)) target += log(1 - mean_p + j * r);
    for (j in 0:(n[i] - 1)) target += -log1p(j * r);
  }
}
