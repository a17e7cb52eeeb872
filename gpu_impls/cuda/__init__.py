"""CUDA kernels, launched through CuPy: one block a row, float32 or double inside, rounded once to storage.

``OPERATOR.cu`` beside ``OPERATOR.py``; device code by level in headers: ``warp.cuh``, ``block.cuh`` (reductions of a
monoid), ``row.cuh`` and ``vector.cuh`` (strided rows, 16-byte accesses), ``shifting.cuh``, ``moments.cuh``,
``affine.cuh`` (what operators share), ``resident.cuh`` (rows that memory is asked for once, at the speed of a copy),
``two_float.cuh``. ``launch`` checks arguments and lays out the grid, without a GPU; ``resident`` chooses the shape of
the fast kernels; ``compiled`` builds modules with explicit flags; ``kernels`` registers.

Every kernel takes float32, float16 and bfloat16, n from 0 to 131,072, any strides, and 32 to 1,024 threads a block, a
multiple of 32. Arrays may come from any library on the device, by DLPack. The device's compute capability is 8.0 or
higher: bfloat16 is converted, and the L2 cache is given policies, by instructions that came with it.
"""
