"""Databases: tables that others keep. Rows come in batches, straight into the embedded engine, and go out the same way.

address      which system, how to get there, which rows
session      a connection, and what a driver says in our words
postgresql, sqlite     what each system needs said in its own way
row_import   rows into the engine;   target       a release into a new table, in one transaction
"""
