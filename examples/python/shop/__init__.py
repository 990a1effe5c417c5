"""Adds orders up."""


def total(n: int, cents: int, percent: int) -> int:
    """The price of n pieces at cents each, less percent, rounded half up to the cent."""
    return (n * cents * (100 - percent) + 50) // 100
