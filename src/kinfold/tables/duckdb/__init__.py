"""The embedded engine: tables in DuckDB, in memory or on disk.

engine        the verbs of the seam
connection    instances, queries that can be interrupted, the tables of a run
expressions   a table inside the engine, and SQL for its columns
columns       what each column is
tallies       classes, values in their exact order, profiles, means and covariances
recoding      SQL for recodings of values and of classes, and the schema after them
writing       rows sorted, exported and hashed
"""
