"""Released libraries under test, called as their users call them: in the storage format, along the last axis.

One module per library, imported only where the library is. Contracts say what was measured: ``min_length``
where the library raises on an empty row, ``deviates`` where it leaves the semantics or the bounds of this
project.
"""
