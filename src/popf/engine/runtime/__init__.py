"""Infrastructure for kernels, independent of forests.

``jit`` compiles and caches kernels, ``simd`` provides vector instructions, ``threads`` runs chunks of work.
"""
