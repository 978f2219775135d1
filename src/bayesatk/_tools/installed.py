"""What is installed."""

from importlib.util import find_spec


def need_matplotlib(what: str) -> None:
    """Refuse what could not be drawn, before anything is computed."""
    if find_spec("matplotlib") is None:
        raise ImportError(
            f"{what} needs matplotlib for its plots. Install it: pip install matplotlib."
        )
