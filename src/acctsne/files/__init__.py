"""Data, labels and maps in files: a table of formats, a file for each, our own archives."""
