// Cooperative launches: blocks that wait for each other, and what is too large for that.
#include "compile.h"

static const char* SOURCE =
    "#include <hip/hip_cooperative_groups.h>\n"
    "namespace cg = cooperative_groups;\n"
    "extern \"C\" __global__ void around(unsigned* a, unsigned* b, unsigned rounds) {\n"
    "    cg::grid_group grid = cg::this_grid();\n"
    "    __shared__ unsigned seen[64];\n"
    "    unsigned long i = grid.thread_rank(), n = grid.size();\n"
    "    a[i] = i;\n"
    "    for (unsigned round = 0; round < rounds; ++round) {\n"
    "        grid.sync();\n"
    "        seen[threadIdx.x] = a[(i + 1) % n];\n"
    "        cg::this_thread_block().sync();\n"
    "        b[i] = seen[threadIdx.x];\n"
    "        grid.sync();\n"
    "        unsigned* other = a; a = b; b = other;\n"
    "    }\n"
    "}\n"
    "extern \"C\" __global__ void valid(int* out) { *out = cooperative_groups::this_grid().is_valid(); }\n";

int main(void) {
    enum { BLOCKS = 4, THREADS = 64, N = BLOCKS * THREADS };
    hipModule_t module = compiled(SOURCE);
    hipFunction_t around = kernel(module, "around"), valid = kernel(module, "valid");
    unsigned *a = NULL, *b = NULL, rounds = 6, host[N];
    OK(hipMalloc((void**)&a, sizeof host));
    OK(hipMalloc((void**)&b, sizeof host));
    void* params[] = {&a, &b, &rounds};
    OK(hipModuleLaunchCooperativeKernel(around, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, params));
    OK(hipMemcpy(host, a, sizeof host, hipMemcpyDeviceToHost));
    for (unsigned i = 0; i < N; ++i) CHECK(host[i] == (i + rounds) % N);

    int answer = -1;
    void* valid_params[] = {&a};
    OK(hipModuleLaunchCooperativeKernel(valid, 1, 1, 1, 1, 1, 1, 0, NULL, valid_params));
    OK(hipMemcpy(&answer, a, sizeof answer, hipMemcpyDeviceToHost));
    CHECK(answer == 1);
    OK(hipModuleLaunchKernel(valid, 1, 1, 1, 1, 1, 1, 0, NULL, valid_params, NULL));
    OK(hipMemcpy(&answer, a, sizeof answer, hipMemcpyDeviceToHost));
    CHECK(answer == 0);

    RETURNS(hipErrorCooperativeLaunchTooLarge,
            hipModuleLaunchCooperativeKernel(around, 100000, 1, 1, THREADS, 1, 1, 0, NULL, params));
    INVALID(hipModuleLaunchCooperativeKernel(around, 0, 1, 1, THREADS, 1, 1, 0, NULL, params));
    // Waiting for a grid that is not all there is an error, not a wait without end.
    hipStream_t failing = NULL;
    OK(hipStreamCreateWithFlags(&failing, hipStreamNonBlocking));
    OK(hipModuleLaunchKernel(around, BLOCKS, 1, 1, THREADS, 1, 1, 0, failing, params, NULL));
    RETURNS(hipErrorLaunchFailure, hipStreamSynchronize(failing));
    RETURNS(hipErrorLaunchFailure, hipStreamSynchronize(failing));
    OK(hipStreamDestroy(failing));
    OK(hipDeviceSynchronize());
    int supported = 0;
    OK(hipDeviceGetAttribute(&supported, hipDeviceAttributeCooperativeLaunch, 0));
    CHECK(supported == 1);
    OK(hipFree(a));
    OK(hipFree(b));
    OK(hipModuleUnload(module));
    still_usable();
    return 0;
}
