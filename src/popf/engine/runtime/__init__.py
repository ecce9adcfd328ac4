"""What the stages run on: compilation, vector instructions, threads, BLAS, memory that is used again."""
