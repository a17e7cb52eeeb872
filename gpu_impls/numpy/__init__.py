"""NumPy implementations: one readable file per operator, right ones first, faulty ones after them.

All compute in float32 (in float64 for float64 storage) and round to the storage format once, at the end. They
run anywhere, show each algorithm in a few lines, and give the harness something right to pass and something
wrong to catch.

Shared parts: ``precision`` (load a row, store a result), ``summation`` (the orders of a sum), ``shifting``
(the running maximum of the softmax family).
"""
