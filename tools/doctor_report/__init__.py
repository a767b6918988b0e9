"""The report of the function's self-test, printed for a terminal; and the forecast of a drain."""
