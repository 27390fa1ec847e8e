"""Step 1: the nearest neighbours of every sample, and the axes that help to find them."""
