"""The Spark engine: rows stay in Spark, tallies in an embedded DuckDB engine. Only this package imports PySpark.

    session   start or find Spark, run jobs that can be cancelled, translate errors
    frame     a table in Spark, the types that carry its values, SQL evaluated batch by batch in the executors, and
              rows joined with maps: recodings, labels, rows by place
    driver    what comes to the driver: bounded and counted
    reading   files, databases, Arrow tables and Spark frames
    places    URLs, tables of a catalogue and JDBC
    blocks    blocks and regions processed in the executors
    figures   moments, squared errors and the order of values
    engine    the verbs of the engine; tallies

The driver receives tallies, class values, samples, requested rows, and, some rows at a time, a release that is written
as one file.
"""
