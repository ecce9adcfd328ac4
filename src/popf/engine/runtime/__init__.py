"""Infrastructure for kernels, independent of forests.

``jit`` compiles and caches kernels, ``simd`` and ``simd_sums`` provide vector
instructions, ``threads`` runs chunks of work.
"""
