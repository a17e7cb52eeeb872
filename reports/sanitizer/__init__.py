"""compute-sanitizer: what a kernel does wrong even where its result is right.

``tools`` are its four, and what a finding of each means here; ``child`` calls an implementation beneath one of them;
``log`` reads what that prints; ``run`` puts the three together, under a deadline.
"""
