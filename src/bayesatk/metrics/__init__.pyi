from .category_credit import CategoryCredit as CategoryCredit
from .credit import Credit as Credit
from .families import Family as Family
from .families import Metric as Metric
from .grid import register as register
