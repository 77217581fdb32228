"""Tables: schema, tally, recoding, points, frames, and the engines that hold the rows."""
