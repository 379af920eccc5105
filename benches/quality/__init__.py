"""Which loops are caught, in time, and at the price of which false alarms.

`python -m benches.quality` prints the tables of `benches/quality/README.md`.
"""
