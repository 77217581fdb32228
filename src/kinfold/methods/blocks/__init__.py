"""Blocks: how classes are made of a table that is too large to be partitioned as a whole.

    size       whether a table is cut, and how large a block may be
    cutting    records into blocks of bounded size, each with its share of what promises speak of
    workshop   each block by the method that the policy names, blocks side by side, what is done kept for a later run
    borders    classes on either side of a cut, looked at once more together

Arrays in, labels out: an engine that holds rows elsewhere can call each of them on what it collected.
"""
