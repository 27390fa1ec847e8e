"""The gradient descent: schedule, stopping rules, and the native optimiser that follows them."""
