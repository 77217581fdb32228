"""What is asked, checked against the table: the policy, its columns bound, hierarchies, terms, encoded attributes."""
