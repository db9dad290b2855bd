#include <hip/hip_runtime_api.h>
#include <stdio.h>

int main(void) {
    float in[4] = {1, 2, 3, 4}, out[4] = {0};
    void *memory = NULL;
    if (hipMalloc(&memory, sizeof in) != hipSuccess) return 1;
    if (hipMemcpy(memory, in, sizeof in, hipMemcpyHostToDevice) != hipSuccess) return 1;
    if (hipMemcpy(out, memory, sizeof out, hipMemcpyDeviceToHost) != hipSuccess) return 1;
    printf("%g %g %g %g\n", out[0], out[1], out[2], out[3]);
    return hipFree(memory) == hipSuccess && out[3] == 4 ? 0 : 1;
}
