"""Reports: what a release promises and what it cost, as one page each."""
