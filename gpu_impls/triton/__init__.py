"""Triton kernels on PyTorch's tensors: one program a row, the row in registers, float32 inside.

``kernels`` holds what Triton compiles, ``launch`` the shapes; ``OPERATOR`` registers. With ``TRITON_INTERPRET=1`` in
the environment Triton runs them in Python on the CPU, and so do we, for float32 and float16: of bfloat16 its
interpreter gives wrong results without a word.
"""
