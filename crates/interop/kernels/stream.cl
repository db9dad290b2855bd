/* Uses what HIP has no name for: two local arguments, an offset, the number of dimensions. Adds to the words that the HIP kernel probe_fill
   wrote to `data`. */
constant uint primes[4] = {3, 5, 7, 11};

__kernel void probe_stream(__global uint *data, __local uint *places, __local uint *factors, uint seed)
{
    const uint item = (uint)get_local_id(0);
    places[item] = (uint)get_global_id(0) + seed;
    factors[item] = primes[item % 4];
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint other = (uint)get_local_size(0) - 1 - item;
    data[get_global_id(0) - get_global_offset(0)] += places[other] * factors[other] + get_work_dim();
}
