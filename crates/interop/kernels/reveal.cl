/* The address by which the device reaches a buffer object. */
__kernel void reveal(__global const uchar *memory, __global ulong *address)
{
    *address = (ulong)memory;
}

/* The same for a buffer that kernels may only write. */
__kernel void reveal_written(__global uchar *memory, __global ulong *address)
{
    *address = (ulong)memory;
}
