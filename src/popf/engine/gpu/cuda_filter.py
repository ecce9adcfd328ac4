"""The CUDA source of products that are filtered where they arise; see `candidates` for why.

A block of 128 threads multiplies 128 rows, which stay in shared memory, by one tile of 128 columns after the
other. Tiles arrive in three buffers, 64 features at a time, while the tensor cores work on what is there. Each
of the four warps has 64 rows and 64 columns in its registers, and while one of two blocks on a processor
compares, the other multiplies. Sums begin at minus half the column's squared
norm, so that one comparison a pair tells whether it is below the row's bound. What passes waits in a queue
until all threads together write it: one thread would keep all others waiting.
"""

# What the source and its callers must agree on.
ROWS, COLUMNS, WIDTH, STAGES, QUEUE, THREADS = 128, 128, 64, 3, 1024, 128
COUNTED = 1 << 24  # columns of a block, as their place in the queue has 24 bits
PAD = 8  # so that the rows of eight threads lie in different banks

_DEFINED = {"ROWS": ROWS, "COLUMNS": COLUMNS, "WIDTH": WIDTH, "STAGES": STAGES, "QUEUE": QUEUE}
_DEFINED |= {"THREADS": THREADS, "PAD": PAD, "STEP": WIDTH + PAD}
SOURCE = (
    "".join(f"#define {name} {value}\n" for name, value in _DEFINED.items())
    + r"""
typedef unsigned short half_bits;

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
    return (unsigned)__cvta_generic_to_shared(pointer);
}

__device__ __forceinline__ void copy_later(half_bits* to, const half_bits* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::
        "r"(shared_address(to)), "l"(from));
}

__device__ __forceinline__ void load_matrices(unsigned* r, const half_bits* from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(from)));
}

__device__ __forceinline__ void multiply_add(
    float* sum, const unsigned* a, unsigned b0, unsigned b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) filter_products(
    const half_bits* rows, const half_bits* columns, int width, integer n_rows, integer n_columns,
    const float* half_norms, const float* bars, const float* row_norms, const float* floors,
    const float* limits, float unit, const integer* own, integer first_column, integer stride,
    int tiles_each, int room, int* counts, float* values, int* indices)
{
    extern __shared__ __align__(16) half_bits memory[];
    const int row_step = width + PAD;
    half_bits* mine = memory;
    half_bits* theirs = memory + ROWS * row_step;
    float* norms = (float*)(theirs + STAGES * COLUMNS * STEP);
    int2* queue = (int2*)(norms + 2 * COLUMNS);
    __shared__ int n_queued;
    const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
    if (thread == 0) n_queued = 0;
    const int top = (warp >> 1) * 64, left = (warp & 1) * 64;
    const integer first_row = (integer)blockIdx.x * ROWS;
    const int pieces = width / 8;
    for (int i = thread; i < ROWS * pieces; i += THREADS) {
        int r = i / pieces, c = i - r * pieces;
        integer row = min(first_row + r, n_rows - 1);
        copy_later(mine + r * row_step + c * 8, rows + row * width + c * 8);
    }
    const int steps = width / WIDTH;
    const integer n_tiles = (n_columns + COLUMNS - 1) / COLUMNS;
    const integer first_tile = (integer)blockIdx.y * tiles_each;
    const int total = (int)(min(first_tile + tiles_each, n_tiles) - first_tile) * steps;
    auto fetch = [&](int step) {
        if (step < total) {
            int tile = step / steps, feature = (step - tile * steps) * WIDTH;
            integer base = (first_tile + tile) * COLUMNS;
            half_bits* to = theirs + (step % STAGES) * COLUMNS * STEP;
            #pragma unroll
            for (int i = 0; i < COLUMNS * 8 / THREADS; ++i) {
                int piece = thread + i * THREADS, r = piece >> 3, c = (piece & 7) * 8;
                integer column = min(base + r, n_columns - 1);
                copy_later(to + r * STEP + c, columns + column * width + feature + c);
            }
            if (feature == 0 && thread < COLUMNS / 4)
                copy_later((half_bits*)(norms + (tile & 1) * COLUMNS + thread * 4),
                    (const half_bits*)(half_norms + base + thread * 4));
        }
        asm volatile("cp.async.commit_group;\n");
    };
    // All threads together write down what has passed.
    auto empty_queue = [&]() {
        int n = n_queued;
        for (int i = thread; i < min(n, QUEUE); i += THREADS) {
            int2 entry = queue[i];
            integer row = first_row + (entry.y & (ROWS - 1));
            integer column = first_tile * COLUMNS + (((unsigned)entry.y) >> 8);
            integer index = first_column + stride * column;
            float bound = fmaxf(floors[column], (row_norms[row] - 2.0f * __int_as_float(entry.x)) * unit);
            if (bound < limits[row] && index != own[row]) {
                int at = atomicAdd(counts + row, 1);
                if (at < room) {
                    values[row * room + at] = bound;
                    indices[row * room + at] = (int)index;
                }
            }
        }
        // If some were lost, nobody knows whose they were.
        if (n > QUEUE && first_row + thread < n_rows) atomicAdd(counts + first_row + thread, room + 1);
        __syncthreads();
        if (thread == 0) n_queued = 0;
        __syncthreads();
    };
    fetch(0);
    fetch(1);
    float bar[8];
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        integer row = first_row + top + i * 8 + (lane >> 2);
        bar[i] = row < n_rows ? bars[row] : __int_as_float(0x7f800000);
    }
    float sums[4][8][4];
    for (int tile = 0, step = 0; step < total; ++tile) {
        for (int part = 0; part < steps; ++part, ++step) {
            asm volatile("cp.async.wait_group 1;\n");
            __syncthreads();
            if (part == 0) {
                if (n_queued > QUEUE / 2) empty_queue();
                const float* norm = norms + (tile & 1) * COLUMNS + left + (lane & 3) * 2;
                #pragma unroll
                for (int j = 0; j < 8; ++j) {
                    float2 start = *(const float2*)(norm + j * 8);
                    #pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        sums[i][j][0] = -start.x; sums[i][j][1] = -start.y;
                        sums[i][j][2] = -start.x; sums[i][j][3] = -start.y;
                    }
                }
            }
            fetch(step + 2);
            const half_bits* other = theirs + (step % STAGES) * COLUMNS * STEP
                + (left + (lane & 7) + (lane >> 4) * 8) * STEP + ((lane >> 3) & 1) * 8;
            const half_bits* slab = mine + part * WIDTH + (top + (lane & 15)) * row_step + (lane >> 4) * 8;
            // What comes next is loaded while this is multiplied.
            unsigned a[2][4][4], b[2][4][4];
            #pragma unroll
            for (int i = 0; i < 4; ++i) {
                load_matrices(a[0][i], slab + i * 16 * row_step);
                load_matrices(b[0][i], other + i * 16 * STEP);
            }
            #pragma unroll
            for (int k = 0; k < WIDTH / 16; ++k) {
                const int now = k & 1;
                #pragma unroll
                for (int i = 0; i < 4; ++i) {
                    if (k + 1 < WIDTH / 16) {
                        load_matrices(a[!now][i], slab + i * 16 * row_step + (k + 1) * 16);
                        load_matrices(b[!now][i], other + i * 16 * STEP + (k + 1) * 16);
                    }
                    #pragma unroll
                    for (int j = 0; j < 4; ++j) {
                        multiply_add(sums[i][2 * j], a[now][i], b[now][j][0], b[now][j][1]);
                        multiply_add(sums[i][2 * j + 1], a[now][i], b[now][j][2], b[now][j][3]);
                    }
                }
            }
        }
        // A row's place in eight bits, its column's after the first in the others.
        unsigned place = (unsigned)(tile * COLUMNS + left + (lane & 3) * 2) << 8 | (top + (lane >> 2));
        #pragma unroll
        for (int i = 0; i < 8; ++i) {
            float largest = sums[i >> 1][0][(i & 1) * 2];
            #pragma unroll
            for (int j = 0; j < 8; ++j) {
                largest = fmaxf(largest, sums[i >> 1][j][(i & 1) * 2]);
                largest = fmaxf(largest, sums[i >> 1][j][(i & 1) * 2 + 1]);
            }
            if (largest <= bar[i]) continue;
            #pragma unroll
            for (int j = 0; j < 8; ++j) {
                #pragma unroll
                for (int e = 0; e < 2; ++e) {
                    float sum = sums[i >> 1][j][(i & 1) * 2 + e];
                    if (sum > bar[i]) {
                        int at = atomicAdd(&n_queued, 1);
                        if (at < QUEUE)
                            queue[at] = make_int2(
                                __float_as_int(sum), (int)(place + ((j * 8 + e) << 8) + i * 8));
                    }
                }
            }
        }
    }
    __syncthreads();
    empty_queue();
}

extern "C" __global__ void keep_passed(
    const int* counts, int room, integer n_rows, const float* passed, const int* passed_indices,
    float* values, int* indices, bool* crowded)
{
    A_WARP_FOR_EACH_ROW
    int count = counts[row];
    if (count > room) {
        if (lane == 0) crowded[row] = true;
        return;
    }
    float mine = values[row * 32 + lane];
    int index = indices[row * 32 + lane];
    float bound = warp_largest(mine);
    for (int base = 0; base < count; base += 32) {
        int at = base + lane;
        float value = at < count ? passed[row * room + at] : (float)INFINITY;
        int candidate = at < count ? passed_indices[row * room + at] : -1;
        take_in(value, candidate, lane, mine, index, bound);
    }
    values[row * 32 + lane] = mine;
    indices[row * 32 + lane] = index;
}
"""
)
