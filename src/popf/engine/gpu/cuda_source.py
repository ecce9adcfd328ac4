"""CUDA source of the kernels (see `host` for what each computes) and of the filter (see `backend` for why).

In the filter, a block of 128 threads multiplies 128 rows, which stay in shared memory, by one tile of 128
columns after the other. Tiles arrive in three buffers, 64 features at a time, while the tensor cores process
the data already there. Each of the four warps has the sums of 64 rows and 64 columns in its registers. While
one of the two blocks on a multiprocessor compares, the other multiplies. Sums start at minus half the column's
squared norm, so that one comparison per pair tells whether it is below the row's bound. Pairs that pass are
queued until all threads write them together: a single writing thread would stall all others.
"""

SOURCE = r"""
typedef long long integer;
#define ALL 0xffffffffu
#define INFINITY __longlong_as_double(0x7ff0000000000000LL)
#define A_WARP_FOR_EACH_ROW \
    integer row = ((integer)blockIdx.x * blockDim.x + threadIdx.x) >> 5; \
    int lane = threadIdx.x & 31; \
    if (row >= n_rows) return;

__device__ __forceinline__ float warp_largest(float x) {
    for (int step = 16; step > 0; step >>= 1) x = fmaxf(x, __shfl_xor_sync(ALL, x, step));
    return x;
}

__device__ __forceinline__ double warp_smallest(double x) {
    for (int step = 16; step > 0; step >>= 1) x = fmin(x, __shfl_xor_sync(ALL, x, step));
    return x;
}

__device__ __forceinline__ double warp_sum(double x) {
    for (int step = 16; step > 0; step >>= 1) x += __shfl_xor_sync(ALL, x, step);
    return x;
}

// Sum the features in order, with each operation rounded separately: no fused multiply-add.
__device__ __forceinline__ double squared_distance(const double* x, const double* y, integer d) {
    double total = 0.0;
    for (integer f = 0; f < d; ++f) {
        double gap = __dsub_rn(x[f], y[f]);
        total = __dadd_rn(total, __dmul_rn(gap, gap));
    }
    return total;
}

// Insert values below the bound, which is the largest value that the warp holds, in place of that one.
__device__ __forceinline__ void take_in(
    float value, int candidate, int lane, float& mine, int& index, float& bound)
{
    unsigned hits = __ballot_sync(ALL, value < bound);
    while (hits) {
        int source = __ffs(hits) - 1;
        hits &= hits - 1;
        float x = __shfl_sync(ALL, value, source);
        int who = __shfl_sync(ALL, candidate, source);
        if (x < bound) {
            int target = __ffs(__ballot_sync(ALL, mine == bound)) - 1;
            if (lane == target) { mine = x; index = who; }
            bound = warp_largest(mine);
        }
    }
}

extern "C" __global__ void select_smallest(
    const float* products, const float* row_norms, const float* column_norms, const float* floors,
    integer n_rows, integer n_columns, integer first_column, const integer* own,
    float* values, int* indices)
{
    A_WARP_FOR_EACH_ROW
    float mine = values[row * 32 + lane];
    int index = indices[row * 32 + lane];
    float bound = warp_largest(mine);
    const float* p = products + row * n_columns;
    float norm = row_norms[row];
    integer self = own[row] - first_column;
    for (integer base = 0; base < n_columns; base += 128) {
        float v[4];
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            integer c = base + 32 * j + lane;
            v[j] = (float)INFINITY;
            if (c < n_columns && c != self)
                v[j] = fmaxf(floors[c], norm + column_norms[c] - 2.0f * p[c]);
        }
        #pragma unroll
        for (int j = 0; j < 4; ++j)
            take_in(v[j], (int)(first_column + base + 32 * j) + lane, lane, mine, index, bound);
    }
    values[row * 32 + lane] = mine;
    indices[row * 32 + lane] = index;
}

extern "C" __global__ void sort_neighbours(
    const double* rows, const double* points, const float* values, const int* indices,
    integer n_rows, integer d, integer k, int* positions, double* squared, double* horizon)
{
    A_WARP_FOR_EACH_ROW
    int index = indices[row * 32 + lane];
    float bound = warp_largest(values[row * 32 + lane]);
    double distance = INFINITY;
    if (index >= 0) distance = squared_distance(rows + row * d, points + (integer)index * d, d);
    // Bitonic sort by (distance, index); missing candidates come last.
    unsigned key = index >= 0 ? (unsigned)index : 0xffffffffu;
    for (int size = 2; size <= 32; size <<= 1) {
        for (int step = size >> 1; step > 0; step >>= 1) {
            double other = __shfl_xor_sync(ALL, distance, step);
            unsigned other_key = __shfl_xor_sync(ALL, key, step);
            bool rising = (lane & size) == 0, first = (lane & step) == 0;
            bool less = other < distance || (other == distance && other_key < key);
            bool more = other > distance || (other == distance && other_key > key);
            if (first == rising ? less : more) { distance = other; key = other_key; }
        }
    }
    if (lane < k) {
        positions[row * k + lane] = key == 0xffffffffu ? -1 : (int)key;
        squared[row * k + lane] = distance;
    }
    double next = __shfl_sync(ALL, distance, k < 32 ? (int)k : 31);
    if (lane == 0) horizon[row] = k < 32 ? fmin((double)bound, next) : (double)bound;
}

extern "C" __global__ void find_conquerors(
    const double* rows, const double* points, const float* values, const int* indices,
    const double* costs, const integer* rank, integer n_rows, integer d,
    integer* nodes, double* offers, double* squared, bool* certain)
{
    A_WARP_FOR_EACH_ROW
    int index = indices[row * 32 + lane];
    float bound = warp_largest(values[row * 32 + lane]);
    double offer = INFINITY, distance = INFINITY;
    integer order = 0x7fffffffffffffffLL;
    if (index >= 0) {
        distance = squared_distance(rows + row * d, points + (integer)index * d, d);
        offer = fmax(costs[index], distance);
        order = rank[index];
    }
    for (int step = 16; step > 0; step >>= 1) {
        double other_offer = __shfl_xor_sync(ALL, offer, step);
        double other_distance = __shfl_xor_sync(ALL, distance, step);
        integer other_order = __shfl_xor_sync(ALL, order, step);
        int other_index = __shfl_xor_sync(ALL, index, step);
        bool better = other_offer < offer || (other_offer == offer &&
            (other_distance < distance || (other_distance == distance && other_order < order)));
        if (better) {
            offer = other_offer; distance = other_distance; order = other_order; index = other_index;
        }
    }
    if (lane == 0) {
        nodes[row] = index;
        offers[row] = offer;
        squared[row] = distance;
        certain[row] = offer < (double)bound;
    }
}

extern "C" __global__ void outsider_bounds(
    const float* products, const float* row_norms, const float* column_norms,
    const int* row_components, const int* column_components, integer n_rows, integer n_columns,
    float* low)
{
    A_WARP_FOR_EACH_ROW
    const float* p = products + row * n_columns;
    float norm = row_norms[row], found = (float)INFINITY;
    int mine = row_components[row];
    for (integer c = lane; c < n_columns; c += 32)
        if (column_components[c] != mine) found = fminf(found, norm + column_norms[c] - 2.0f * p[c]);
    found = -warp_largest(-found);
    if (lane == 0) low[row] = fminf(low[row], found);
}

extern "C" __global__ void list_outsiders(
    const float* products, const float* row_norms, const float* column_norms,
    const int* row_components, const int* column_components, const float* limits,
    integer n_rows, integer n_columns, integer capacity,
    int* rows, int* columns, unsigned long long* count)
{
    A_WARP_FOR_EACH_ROW
    const float* p = products + row * n_columns;
    float norm = row_norms[row], limit = limits[row];
    int mine = row_components[row];
    for (integer c = lane; c < n_columns; c += 32) {
        if (column_components[c] != mine && norm + column_norms[c] - 2.0f * p[c] <= limit) {
            unsigned long long at = atomicAdd(count, 1ULL);
            if (at < (unsigned long long)capacity) { rows[at] = (int)row; columns[at] = (int)c; }
        }
    }
}

extern "C" __global__ void pair_squares(
    const double* points, const integer* first, const integer* second, integer n, integer d,
    double* squared)
{
    integer i = (integer)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) squared[i] = squared_distance(points + first[i] * d, points + second[i] * d, d);
}

__device__ __forceinline__ double path_cost(
    double product, double norm, double column_norm, double least, double floor,
    const double* x, const double* y, integer d)
{
    double squared = norm + column_norm - 2.0 * product;
    if (squared <= least) squared = squared_distance(x, y, d);
    return fmax(floor, sqrt(squared));
}

extern "C" __global__ void add_terms(
    const double* products, const double* queries, const double* norms, const double* least,
    const double* points, const double* column_norms, const double* floors, const double* weights,
    integer n_rows, integer n_columns, integer d,
    const double* taus, integer n_sums, double* low, double* sums)
{
    A_WARP_FOR_EACH_ROW
    const double* p = products + row * n_columns;
    const double* x = queries + row * d;
    double norm = norms[row], small = least[row];
    double lowest = INFINITY;
    for (integer c = lane; c < n_columns; c += 32) {
        if (weights[c] > 0.0)
            lowest = fmin(lowest, path_cost(
                p[c], norm, column_norms[c], small, floors[c], x, points + c * d, d));
    }
    lowest = warp_smallest(lowest);
    double before = low[row];
    if (lowest < before) {
        if (before < INFINITY)
            for (integer j = lane; j < n_sums; j += 32)
                sums[row * n_sums + j] *= exp((lowest - before) / taus[j]);
        before = lowest;
    }
    if (before == INFINITY) return;
    __syncwarp();
    double total[9];
    for (int j = 0; j < 9; ++j) total[j] = 0.0;
    double rate = -1.0 / taus[0];
    for (integer c = lane; c < n_columns; c += 32) {
        double weight = weights[c];
        if (weight <= 0.0) continue;
        double cost = path_cost(p[c], norm, column_norms[c], small, floors[c], x, points + c * d, d);
        // Each bandwidth is half of the one before, so its exponential is the square.
        double factor = exp((cost - before) * rate);
        #pragma unroll
        for (int j = 0; j < 9; ++j) {
            if (j < n_sums) { total[j] += weight * factor; factor *= factor; }
        }
    }
    #pragma unroll
    for (int j = 0; j < 9; ++j) {
        if (j < n_sums) {
            double all = warp_sum(total[j]);
            if (lane == 0) sums[row * n_sums + j] += all;
        }
    }
    if (lane == 0) low[row] = before;
}
"""

# Constants shared by the source of the filter and its callers.
ROWS, COLUMNS, WIDTH, STAGES, QUEUE, THREADS = 128, 128, 64, 3, 1024, 128
MAX_BLOCK_COLUMNS = 1 << 24  # their positions have 24 bits in the queue
PAD = 8  # so that the rows of eight threads are in different memory banks

_DEFINED = {"ROWS": ROWS, "COLUMNS": COLUMNS, "WIDTH": WIDTH, "STAGES": STAGES, "QUEUE": QUEUE}
_DEFINED |= {"THREADS": THREADS, "PAD": PAD, "STEP": WIDTH + PAD}
FILTER_SOURCE = (
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
    // The rows of the block, STAGES tiles of columns, half norms of two tiles, and the queue of passed pairs.
    extern __shared__ __align__(16) half_bits memory[];
    const int row_step = width + PAD;
    half_bits* mine = memory;
    half_bits* theirs = memory + ROWS * row_step;
    float* norms = (float*)(theirs + STAGES * COLUMNS * STEP);
    int2* queue = (int2*)(norms + 2 * COLUMNS);
    __shared__ int n_queued;
    const int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
    if (thread == 0) n_queued = 0;
    // The position of the warp's 64 rows and 64 columns in a tile.
    const int top = (warp >> 1) * 64, left = (warp & 1) * 64;
    const integer first_row = (integer)blockIdx.x * ROWS;
    const int pieces = width / 8;
    // Rows past the end repeat the last one; with an infinite bar they let nothing pass.
    for (int i = thread; i < ROWS * pieces; i += THREADS) {
        int r = i / pieces, c = i - r * pieces;
        integer row = min(first_row + r, n_rows - 1);
        copy_later(mine + r * row_step + c * 8, rows + row * width + c * 8);
    }
    const int steps = width / WIDTH;
    const integer n_tiles = (n_columns + COLUMNS - 1) / COLUMNS;
    const integer first_tile = (integer)blockIdx.y * tiles_each;
    const int total = (int)(min(first_tile + tiles_each, n_tiles) - first_tile) * steps;
    // Start to copy WIDTH features of a tile of columns, and with the first of them its half norms.
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
    // Write the pairs that have passed, with all threads together.
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
        // If pairs were lost, their rows are unknown: mark all rows as crowded.
        if (n > QUEUE && first_row + thread < n_rows) atomicAdd(counts + first_row + thread, room + 1);
        __syncthreads();
        if (thread == 0) n_queued = 0;
        __syncthreads();
    };
    fetch(0);
    fetch(1);
    // A thread has every eighth row of its warp, from lane / 4 on, and two of every eight columns.
    float bar[8];
    #pragma unroll
    for (int i = 0; i < 8; ++i) {
        integer row = first_row + top + i * 8 + (lane >> 2);
        bar[i] = row < n_rows ? bars[row] : __int_as_float(0x7f800000);
    }
    float sums[4][8][4];
    for (int tile = 0, step = 0; step < total; ++tile) {
        for (int part = 0; part < steps; ++part, ++step) {
            // This step has arrived, the next is in transit, and the third buffer is free for the one after.
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
            // The next matrices are loaded while these are multiplied.
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
        // Sums are now x.y - |y|^2 / 2. Those above their row's bar are queued; in most rows there are none.
        // The lowest eight bits hold the row's position, the others the column's, relative to the first.
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
