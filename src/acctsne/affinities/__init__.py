"""Step 2: how much each pair of samples belongs together, t-SNE's matrix P."""
