"""Events of the failure queue, and the way back to the function."""
