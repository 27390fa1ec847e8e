"""Data, labels and maps in files: one table of formats, tables, archives, safe replacement."""
