// What a blocked Cholesky factor and its inverse need beside products: tiles of 32 x 32 numbers, and the way to them and back.
// Compiled with NUMBER (float or double) and PARTS (1 for real elements, 2 for complex ones).
//
// The work is done on lower triangles in memory of its own, whose sizes are multiples of 32: what is beyond the matrix is the identity.
// An upper triangle is the lower one's conjugate transpose.

typedef NUMBER number;

#if PARTS == 2
struct alignas(2 * sizeof(number)) element {
    number re, im;
};
__device__ static element of(number re) { return element{re, 0}; }
__device__ static element conjugate(element x) { return element{x.re, -x.im}; }
__device__ static element real_part(element x) { return element{x.re, 0}; }
__device__ static element times(element x, element y) { return element{x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }
__device__ static element minus(element x, element y) { return element{x.re - y.re, x.im - y.im}; }
__device__ static number real_of(element x) { return x.re; }
__device__ static bool is_zero(element x) { return x.re == 0 && x.im == 0; }
// By the larger part, so that no square overflows.
__device__ static element reciprocal(element x)
{
    const bool wide = (x.re < 0 ? -x.re : x.re) >= (x.im < 0 ? -x.im : x.im);
    const number ratio = wide ? x.im / x.re : x.re / x.im;
    const number scale = 1 / (wide ? x.re + x.im * ratio : x.im + x.re * ratio);
    return wide ? element{scale, -ratio * scale} : element{ratio * scale, -scale};
}
#else
typedef number element;
__device__ static element of(number re) { return re; }
__device__ static element conjugate(element x) { return x; }
__device__ static element real_part(element x) { return x; }
__device__ static element times(element x, element y) { return x * y; }
__device__ static element minus(element x, element y) { return x - y; }
__device__ static number real_of(element x) { return x; }
__device__ static bool is_zero(element x) { return x == 0; }
__device__ static element reciprocal(element x) { return 1 / x; }
#endif

#define TILE 32
// Threads of a block: a row of a tile each in x, every eighth column in y.
#define LINES 8

// Where matrix `index` of the caller's batch begins: at a stride, or where a list says.
__device__ static element *matrix(element *first, long long stride, element *const *list, long long index)
{
    return list ? list[index] : first + index * stride;
}

// The caller's triangle as a lower one. Grid: tiles down, tiles across, matrices.
extern "C" __global__ void pack(element *first, long long stride, element *const *list, int n, int ld, int upper, element *packed)
{
    __shared__ element tile[TILE][TILE + 1];
    const int size = (int)gridDim.x * TILE;
    const int down = (int)blockIdx.x * TILE, across = (int)blockIdx.y * TILE;
    const element *a = matrix(first, stride, list, blockIdx.z);
    element *to = packed + (long long)blockIdx.z * size * size;
    // of an upper triangle, the tile on the other side of the diagonal is read, and turned around in between
    const int from_row = upper ? across : down, from_column = upper ? down : across;
    for (int line = (int)threadIdx.y; line < TILE; line += LINES) {
        const int i = from_row + (int)threadIdx.x, j = from_column + line;
        const bool inside = i < n && j < n && (upper ? i <= j : i >= j);
        tile[line][threadIdx.x] = inside ? a[i + (long long)j * ld] : of(i == j && i >= n);
    }
    __syncthreads();
    for (int line = (int)threadIdx.y; line < TILE; line += LINES) {
        const element x = upper ? conjugate(tile[threadIdx.x][line]) : tile[line][threadIdx.x];
        to[down + (int)threadIdx.x + (long long)(across + line) * size] = x;
    }
}

// A lower triangle to the caller's: of a factor what is left of the column that `info` names, of an inverse (`whole`) nothing where it
// names one. The diagonal is real. Grid: tiles down, tiles across, matrices.
extern "C" __global__ void unpack(const element *packed, const int *info, int whole, element *first, long long stride,
                                  element *const *list, int n, int ld, int upper)
{
    __shared__ element tile[TILE][TILE + 1];
    const int size = (int)gridDim.x * TILE;
    const int down = (int)blockIdx.x * TILE, across = (int)blockIdx.y * TILE;
    const int stopped = info[blockIdx.z];
    const int columns = stopped == 0 ? n : whole ? 0 : stopped - 1;
    if (across > down || across >= columns) return;
    element *a = matrix(first, stride, list, blockIdx.z);
    const element *from = packed + (long long)blockIdx.z * size * size;
    for (int line = (int)threadIdx.y; line < TILE; line += LINES)
        tile[line][threadIdx.x] = from[down + (int)threadIdx.x + (long long)(across + line) * size];
    __syncthreads();
    for (int line = (int)threadIdx.y; line < TILE; line += LINES) {
        // of the lower triangle
        const int row = down + (upper ? line : (int)threadIdx.x), column = across + (upper ? (int)threadIdx.x : line);
        if (row >= n || row < column || column >= columns) continue;
        element x = tile[column - across][row - down];
        if (row == column) x = real_part(x);
        if (upper)
            a[column + (long long)row * ld] = conjugate(x);
        else
            a[row + (long long)column * ld] = x;
    }
}

// Replaces `x`, the identity, by the inverse of the lower triangle `a`; if `factor`, `a` is a Hermitian matrix's and is replaced by its
// Cholesky factor meanwhile. Both hold columns. Answers the first column with a diagonal that is not positive, counted from 1, or 0:
// from there on both are without meaning.
template <bool factor>
__device__ static int eliminate(element (*a)[TILE + 1], element (*x)[TILE + 1], element *roots)
{
    const int row = (int)threadIdx.x, line = (int)threadIdx.y;
    for (int j = 0; j < TILE; j++) {
        element scale;
        if (factor) {
            const number pivot = real_of(a[j][j]);
            // all threads read the same, so that they leave together; not a number is not positive
            if (!(pivot > 0)) return j + 1;
            const number root = sqrt(pivot);
            scale = of(1 / root);
            if (row == j && line == 0) roots[j] = of(root);
            if (line == 0 && row > j) a[j][row] = times(a[j][row], scale);
        } else {
            scale = reciprocal(a[j][j]);
        }
        if (line == 1 && row <= j) x[row][j] = times(x[row][j], scale);
        __syncthreads();
        // row j is eliminated from those below, on the left of the inverse and on the right of the triangle
        for (int column = line; column < TILE; column += LINES) {
            if (row <= j) continue;
            if (column <= j)
                x[column][row] = minus(x[column][row], times(a[j][row], x[column][j]));
            else if (factor)
                a[column][row] = minus(a[column][row], times(a[j][row], conjugate(a[j][column])));
        }
        __syncthreads();
    }
    return 0;
}

// The factor of a tile of the diagonal, to the same place in `factors`, and its inverse. Grid: matrices.
extern "C" __global__ void factor_tile(const element *packed, element *factors, element *inverses, int *info, int tiles, int which)
{
    __shared__ element a[TILE][TILE + 1], x[TILE][TILE + 1], roots[TILE];
    // an earlier tile has stopped it
    if (info[blockIdx.x] != 0) return;
    const long long size = (long long)tiles * TILE;
    const long long tile = blockIdx.x * size * size + which * TILE * (size + 1);
    const int row = (int)threadIdx.x;
    for (int column = (int)threadIdx.y; column < TILE; column += LINES) {
        a[column][row] = packed[tile + row + column * size];
        x[column][row] = of(row == column);
    }
    __syncthreads();
    const int stopped = eliminate<true>(a, x, roots);
    for (int column = (int)threadIdx.y; column < TILE; column += LINES) {
        const element l = row == column ? roots[column] : a[column][row];
        factors[tile + row + column * size] = row >= column ? l : of(0);
        inverses[(blockIdx.x * TILE + column) * (long long)TILE + row] = row >= column ? x[column][row] : of(0);
    }
    if (stopped != 0 && row == 0 && threadIdx.y == 0) info[blockIdx.x] = which * TILE + stopped;
}

// Inverts the tiles of the diagonal in place. Grid: tiles, matrices.
extern "C" __global__ void invert_tiles(element *packed)
{
    __shared__ element a[TILE][TILE + 1], x[TILE][TILE + 1];
    const long long size = (long long)gridDim.x * TILE;
    element *tile = packed + blockIdx.y * size * size + blockIdx.x * TILE * (size + 1);
    const int row = (int)threadIdx.x;
    for (int column = (int)threadIdx.y; column < TILE; column += LINES) {
        a[column][row] = tile[row + column * size];
        x[column][row] = of(row == column);
    }
    __syncthreads();
    eliminate<false>(a, x, 0);
    for (int column = (int)threadIdx.y; column < TILE; column += LINES)
        tile[row + column * size] = row >= column ? x[column][row] : of(0);
}

// The first zero of each diagonal, counted from 1, or 0. Grid: matrices.
extern "C" __global__ void first_zeros(const element *packed, int *info, int n, int tiles)
{
    __shared__ int first;
    const int thread = (int)(threadIdx.y * blockDim.x + threadIdx.x), threads = (int)(blockDim.x * blockDim.y);
    const long long size = (long long)tiles * TILE;
    if (thread == 0) first = n;
    __syncthreads();
    for (int i = thread; i < n; i += threads)
        if (is_zero(packed[blockIdx.x * size * size + i * (size + 1)])) atomicMin(&first, i);
    __syncthreads();
    if (thread == 0) info[blockIdx.x] = first == n ? 0 : first + 1;
}
