"""What every stage uses: threads, memory, log and progress, checks, optional packages."""
