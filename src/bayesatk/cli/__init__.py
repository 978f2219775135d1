"""The ``bayesatk`` command."""

from bayesatk._tools.packages import COMMAND, require

require(*COMMAND)
