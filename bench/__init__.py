"""Scripts that print measured tables: `python -m bench.NAME`."""
