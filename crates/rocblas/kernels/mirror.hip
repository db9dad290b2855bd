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

template <typename R> __device__ R real_part(R x)
{
    return x;
}

template <typename R> __device__ complex<R> real_part(complex<R> x)
{
    x.im = 0;
    return x;
}

// Where matrix `i` of a batch begins: at a stride, or where its own pointer says.
template <typename T> struct at_stride {
    T *first;
    long long stride;
    __device__ T *operator[](long long i) const { return first + i * stride; }
};

// One thread for each element of a tile of the triangle that is missing, and of the diagonal: rocSOLVER leaves rounding errors in
// its imaginary parts. Square blocks: what a block reads down the columns of one tile, it uses whole cache lines of, although
// neighbouring threads do not read neighbours.
template <typename Batch>
__device__ void mirror_all(Batch batch, long long n, long long ld, long long count, int from_upper)
{
    const long long row = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long column = (long long)blockIdx.y * blockDim.y + threadIdx.y;
    const bool missing = from_upper ? row > column : row < column;
    if (row < n && column < n && (missing || row == column))
        for (long long matrix = blockIdx.z; matrix < count; matrix += gridDim.z) {
            auto *a = batch[matrix];
            const auto given = a[column + row * ld];
            a[row + column * ld] = missing ? conjugate(given) : real_part(given);
        }
}

template <typename T>
__global__ void mirror(T *first, long long n, long long ld, long long stride, long long count, int from_upper)
{
    mirror_all(at_stride<T>{first, stride}, n, ld, count, from_upper);
}

template <typename T>
__global__ void mirror_pointers(T *const *matrices, long long n, long long ld, long long count, int from_upper)
{
    mirror_all(matrices, n, ld, count, from_upper);
}
