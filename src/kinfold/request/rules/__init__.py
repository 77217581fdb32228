"""Edit rules: what must hold inside every record, written down in a small language and judged on arrays."""
