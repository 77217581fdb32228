"""Blocks: the parts of a table that is too large to be partitioned as a whole.

pool           run jobs on blocks in threads or executors; checkpoints
cutting        whether a table is cut, the size of blocks, and exact cuts of records in memory
routing        cuts of a sample, by which every record of a large table finds its region
regions        microaggregate a large table region by region
"""
