"""The paper's evaluation made again: measurements as records, and tables and figures from them."""
