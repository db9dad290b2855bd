// For memory that has no transfers of its own, or none that work.
extern "C" __global__ void copy_bytes(const unsigned char *from, unsigned char *to, unsigned long long len)
{
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < len)
        to[i] = from[i];
}
