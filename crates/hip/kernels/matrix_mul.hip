// C = A B for square matrices of n x n, stored row by row; n is a multiple of TILE.
#define TILE 16

extern "C" __global__ void naive(float *c, const float *a, const float *b, unsigned n) {
    unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    for (unsigned k = 0; k < n; ++k) {
        sum += a[row * n + k] * b[k * n + column];
    }
    c[row * n + column] = sum;
}

// A block loads one tile of each matrix at a time, so that every element is read n / TILE times instead of n times.
extern "C" __global__ void tiled(float *c, const float *a, const float *b, unsigned n) {
    __shared__ float part_a[TILE][TILE];
    __shared__ float part_b[TILE][TILE];
    unsigned x = threadIdx.x, y = threadIdx.y;
    unsigned column = blockIdx.x * TILE + x;
    unsigned row = blockIdx.y * TILE + y;
    float sum = 0.0f;
    for (unsigned tile = 0; tile < n; tile += TILE) {
        part_a[y][x] = a[row * n + tile + x];
        part_b[y][x] = b[(tile + y) * n + column];
        __syncthreads();
        for (unsigned k = 0; k < TILE; ++k) {
            sum += part_a[y][k] * part_b[k][x];
        }
        __syncthreads();
    }
    c[row * n + column] = sum;
}
