"""What every stage uses: threads, log and progress, optional packages, the native build."""
