"""The Spark engine: rows stay in Spark, tallies in an embedded DuckDB engine. Only this package imports PySpark.

    session   start or find Spark, run jobs that can be cancelled, translate errors
    frame     a table in Spark, the types that carry its values, SQL evaluated batch by batch in the executors
    reading   files, Arrow tables and Spark frames
    counting  tallies, moments and squared errors
    joins     rows joined with maps: recodings, labels, rows by place
    blocks    blocks and regions processed in the executors
    engine    the verbs of the engine

The driver receives tallies, class values, samples, requested rows, and, one part at a time, a release that is written
as one file.
"""
