"""A look at a table before anything is asked: what each column is, and who stands out."""
