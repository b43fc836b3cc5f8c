"""Says how an extra of this package is installed: here alone, because it is on no package index."""


def install_hint(extra: str, python: str | None = None) -> str:
    """Return the command that installs an extra, for a checkout and for a wheel; `python` runs pip, if it is given."""
    pip = "pip" if python is None else f"{python} -m pip"
    return f'{pip} install ".[{extra}]" in a checkout of Frontdesk, or {pip} install "the-wheel.whl[{extra}]"'
