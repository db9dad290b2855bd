// Direction finding: what rocBLAS and rocSOLVER leave to be done. Matrices are column-major.

struct alignas(8) c32 {
    float re, im;
};

__device__ static long long thread_index() {
    return (long long)blockIdx.x * blockDim.x + threadIdx.x;
}

// The lower triangle of a covariance matrix from products over parts of the segments: their sum, scaled.
extern "C" __global__ void sum_parts(const c32 *parts, c32 *matrix, int n, int count, float scale) {
    const long long index = thread_index();
    const long long row = index % n, column = index / n;
    if (column >= n || row < column) return;
    float re = 0.0f, im = 0.0f;
    for (long long part = 0; part < count; part++) {
        const c32 x = parts[part * n * n + index];
        re += x.re;
        im += x.im;
    }
    matrix[index].re = scale * re;
    matrix[index].im = row == column ? 0.0f : scale * im;
}

// Keeps the diagonal of a covariance matrix.
extern "C" __global__ void diagonal(const c32 *matrix, float *kept, int n) {
    const long long i = thread_index();
    if (i < n) kept[i] = matrix[i + i * n].re;
}

// Adds `loading` times the mean of the diagonal to the diagonal.
extern "C" __global__ void load_diagonal(c32 *matrix, const float *kept, int n, float loading) {
    const long long i = thread_index();
    if (i >= n) return;
    float trace = 0.0f;
    for (int k = 0; k < n; k++) trace += kept[k];
    matrix[i + i * n].re = kept[i] + loading * (trace / n);
}

// What elimination has left of each diagonal entry: near zero, the matrix is singular for single precision.
extern "C" __global__ void pivots(const c32 *factor, float *kept, int n) {
    const long long i = thread_index();
    if (i >= n) return;
    const float pivot = factor[i + i * n].re;
    kept[i] = pivot * pivot / kept[i];
}

// Completes a Hermitian matrix of which only the lower triangle is there.
extern "C" __global__ void fill_upper(c32 *matrix, int n) {
    const long long index = thread_index();
    const long long row = index % n, column = index / n;
    if (column >= n) return;
    if (row < column) {
        const c32 mirrored = matrix[column + row * n];
        matrix[index].re = mirrored.re;
        matrix[index].im = -mirrored.im;
    } else if (row == column) {
        matrix[index].im = 0.0f;
    }
}

// Responses of the array: directions x elements, from the sines of the directions.
extern "C" __global__ void steering(c32 *responses, const double *sines, int directions, int elements) {
    const long long index = thread_index();
    const long long direction = index % directions, element = index / directions;
    if (element >= elements) return;
    // reduced in double precision: a long array turns the phase by many turns
    const double turns = 0.5 * sines[direction] * (double)element;
    const float angle = (float)(6.283185307179586 * (turns - rint(turns)));
    responses[index].re = cosf(angle);
    responses[index].im = sinf(angle);
}

// Capon's power 1 / (a^H R^-1 a), with a and R^-1 a as rows of `responses` and `steered`.
extern "C" __global__ void power(const c32 *responses, const c32 *steered, float *powers, int directions, int elements) {
    const long long direction = thread_index();
    if (direction >= directions) return;
    float form = 0.0f;
    for (long long element = 0; element < elements; element++) {
        const c32 a = responses[direction + element * directions];
        const c32 b = steered[direction + element * directions];
        form += a.re * b.re + a.im * b.im;
    }
    powers[direction] = 1.0f / form;
}
