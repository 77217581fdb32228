"""Where rows live: engines, frames, schemas, tallies, recodings, records as points."""
