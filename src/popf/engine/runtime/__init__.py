"""What kernels run on: nothing here knows a forest.

``jit`` compiles, ``kernel_cache`` keeps what was compiled; ``simd`` holds vector instructions, ``threads``
hands out chunks of work, and memory to work in, ``blas`` keeps matrix products to one thread.
"""
