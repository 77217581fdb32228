"""The site of the documentation: its look, and what it does to pages that are also read in the repository."""
