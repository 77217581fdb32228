"""Databases: rows of PostgreSQL and SQLite, read in batches into the embedded engine and written the same way.

address                which system, how to connect, which rows
session                a query, a connection, and messages for what a driver reports
postgresql, sqlite     what each system needs
transfer               rows into the engine; a release into a new table, in one transaction
"""
