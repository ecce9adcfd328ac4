"""The CUDA source of the kernels; see `host` for what each computes."""

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

// Feature after feature, each operation rounded by itself: no fused multiply-add.
__device__ __forceinline__ double squared_distance(const double* x, const double* y, integer d) {
    double total = 0.0;
    for (integer f = 0; f < d; ++f) {
        double gap = __dsub_rn(x[f], y[f]);
        total = __dadd_rn(total, __dmul_rn(gap, gap));
    }
    return total;
}

// Take what is below the bound, the largest of all that the warp holds, in place of that.
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
    // Bitonic sort by (distance, index); what is missing comes last.
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
    const double* taus, integer n_chains, integer n_halvings, double* low, double* sums)
{
    A_WARP_FOR_EACH_ROW
    const double* p = products + row * n_columns;
    const double* x = queries + row * d;
    double norm = norms[row], small = least[row];
    integer n_sums = n_chains * n_halvings;
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
    for (integer chain = 0; chain < n_chains; ++chain) {
        double total[9];
        for (int j = 0; j < 9; ++j) total[j] = 0.0;
        double rate = -1.0 / taus[chain * n_halvings];
        for (integer c = lane; c < n_columns; c += 32) {
            double weight = weights[c];
            if (weight <= 0.0) continue;
            double cost = path_cost(p[c], norm, column_norms[c], small, floors[c], x, points + c * d, d);
            double factor = exp((cost - before) * rate);
            #pragma unroll
            for (int j = 0; j < 9; ++j) {
                if (j < n_halvings) { total[j] += weight * factor; factor *= factor; }
            }
        }
        #pragma unroll
        for (int j = 0; j < 9; ++j) {
            if (j < n_halvings) {
                double all = warp_sum(total[j]);
                if (lane == 0) sums[row * n_sums + chain * n_halvings + j] += all;
            }
        }
    }
    if (lane == 0) low[row] = before;
}
"""
