"""What we tell: measurements to tables, the console, files; the command line."""

__version__ = "0.1.0"
