"""The engine for clusters: rows in Spark, tallies beside it in the embedded engine. PySpark is imported here alone.

    java                a Java runtime, found or asked for
    running_spark       Spark, found or started, without a word on the terminal; jobs that can be stopped
    carried             types between the two engines: what Spark has no type for travels as text
    frame               a table in Spark: columns c0, c1, ..., and the place of each row
    in_executors        what runs beside the rows: values computed batch by batch, by the SQL of the embedded engine
    intake              files, frames and Spark's own frames
    distributed_counts  tallies of columns, counted in Spark, held in the embedded engine
    recoded             a recoding carried out: joins with maps that every executor gets
    engine              the verbs

Rows stay in Spark. What comes to the driver: tallies, class values, samples, rows that somebody asks for, and, one
part at a time, a release that is written as one file.
"""
