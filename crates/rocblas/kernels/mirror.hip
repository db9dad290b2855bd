// Completes Hermitian (or symmetric) matrices of which one triangle is there.

template <typename R> struct complex {
    R re, im;
};

template <typename R> __device__ R conjugate(R x)
{
    return x;
}

template <typename R> __device__ complex<R> conjugate(complex<R> x)
{
    x.im = -x.im;
    return x;
}

// One thread for each element of a tile of the triangle that is missing. Square blocks: what a block reads down the columns of
// one tile, it uses whole cache lines of, although neighbouring threads do not read neighbours.
template <typename T>
__global__ void mirror(T *first, long long n, long long ld, long long stride, long long count, int from_upper)
{
    const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long column = (long long)blockIdx.y * blockDim.y + threadIdx.y;
    const bool missing = from_upper ? row > column : row < column;
    if (row < n && column < n && missing)
        for (long long matrix = blockIdx.z; matrix < count; matrix += gridDim.z) {
            T *a = first + matrix * stride;
            a[row + column * ld] = conjugate(a[column + row * ld]);
        }
}
