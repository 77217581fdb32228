"""The Spark engine: rows stay in Spark, tallies in an embedded DuckDB engine. Only this package imports PySpark.

    session   start or find Spark, run jobs that can be cancelled, translate errors
    frame     a table in Spark, the types that carry its values, SQL evaluated batch by batch in the executors, and
              rows joined with maps: recodings, labels, rows by place
    reading   files, Arrow tables and Spark frames
    blocks    blocks and regions processed in the executors
    engine    the verbs of the engine; tallies, moments and squared errors

The driver receives tallies, class values, samples, requested rows, and, one part at a time, a release that is written
as one file.
"""
