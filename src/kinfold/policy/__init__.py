"""The policy: what each column is, what the release promises and how it is made, checked and bound to a table."""
