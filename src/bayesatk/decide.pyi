from .comparison.checks.noise import noise_floor as noise_floor
from .comparison.gates.gate import gate as gate
from .comparison.gates.policy import GatePolicy as GatePolicy
from .comparison.gates.policy import gate_design as gate_design
from .comparison.gates.rates import gate_rates as gate_rates
from .comparison.pairs.horizons import horizon as horizon
from .comparison.stopping import StoppingRule as StoppingRule
from .comparison.stopping import e_value as e_value
