"""A fuzzer of the project's own: `make fuzz MINUTES=10`."""
