__kernel void add(__global uint *x, uint k)
{
    x[get_global_id(0)] += k;
}
