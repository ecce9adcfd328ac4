"""What kernels run on; nothing here knows a forest.

``jit`` compiles and caches kernels, ``simd`` holds vector instructions, ``threads`` hands out chunks of work.
"""
