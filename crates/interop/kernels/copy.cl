/* Reads memory whose own transfers fail. */
__kernel void copy_bytes(__global const uchar *from, __global uchar *to)
{
    size_t i = get_global_id(0);
    to[i] = from[i];
}
