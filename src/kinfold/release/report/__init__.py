"""Reports: HTML pages about a release, a comparison or a reproduction."""
