"""The page: report.html, one file to open offline."""
