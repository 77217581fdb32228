"""Readers: files, frames and streams become tables of the embedded engine, checked before anything else reads them.

files              formats by file ending, hashes, unpacking
reading            one file, many files, an Arrow table, a stream
csv_files          encoding, separator and header of a CSV file
typed_files        Parquet, JSON and Arrow types
workbook_xml, workbooks     Excel
statistics_files   Stata, SPSS and SAS
normalization      words for missing values, decimal and thousands marks
"""
