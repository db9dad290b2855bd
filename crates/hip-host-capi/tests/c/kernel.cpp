// Kernels: HIPRTC's options, headers, names and logs; modules, variables, launches.
#include "compile.h"

static const char* SOURCE =
    "__device__ int offset = 3;\n"
    "extern \"C\" __global__ void add(unsigned* data, unsigned what, unsigned n) {\n"
    "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) data[i] += what;\n"
    "}\n"
    "extern \"C\" __global__ void add_offset(int* data) { data[threadIdx.x] += offset; }\n"
    "extern \"C\" __global__ void reverse(int* data) {\n"
    "    __shared__ int copy[64];\n"
    "    copy[threadIdx.x] = data[threadIdx.x];\n"
    "    __syncthreads();\n"
    "    data[threadIdx.x] = copy[blockDim.x - 1 - threadIdx.x];\n"
    "}\n";

static void launches(hipModule_t module) {
    hipFunction_t add = kernel(module, "add");
    unsigned n = 1000, what = 5;
    unsigned* data = counted(n, 0);
    void* params[] = {&data, &what, &n};
    OK(hipModuleLaunchKernel(add, 4, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    CHECK(is_counted(data, n, 5));

    struct { unsigned* data; unsigned what, n; } packed = {data, what, n};
    size_t bytes = sizeof packed;
    void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &packed, HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     HIP_LAUNCH_PARAM_END};
    OK(hipModuleLaunchKernel(add, 4, 1, 1, 256, 1, 1, 0, NULL, NULL, extra));
    CHECK(is_counted(data, n, 10));

    INVALID(hipModuleLaunchKernel(add, 0, 1, 1, 256, 1, 1, 0, NULL, params, NULL));
    INVALID(hipModuleLaunchKernel(add, 1, 1, 1, 1025, 1, 1, 0, NULL, params, NULL));
    INVALID(hipModuleLaunchKernel(add, 1, 1, 1, 1, 1, 1, 1 << 20, NULL, params, NULL));
    INVALID(hipModuleLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, params, extra));
    RETURNS(HIP_VERSION_MAJOR < 7 ? hipErrorInvalidImage : hipErrorInvalidHandle,
            hipModuleLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CHECK(is_counted(data, n, 10));
    OK(hipFree(data));
}

static void shared_memory_and_barriers(hipModule_t module) {
    int host[64];
    for (int i = 0; i < 64; ++i) host[i] = i;
    void* data = NULL;
    OK(hipMalloc(&data, sizeof host));
    OK(hipMemcpyHtoD(data, host, sizeof host));
    void* params[] = {&data};
    OK(hipModuleLaunchKernel(kernel(module, "reverse"), 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
    OK(hipMemcpyDtoH(host, data, sizeof host));
    for (int i = 0; i < 64; ++i) CHECK(host[i] == 63 - i);
    OK(hipFree(data));
}

static void variables(hipModule_t module) {
    hipDeviceptr_t address = NULL;
    size_t bytes = 0;
    int value = 40, result = 0;
    void* data = NULL;
    OK(hipModuleGetGlobal(&address, &bytes, module, "offset"));
    CHECK(bytes == sizeof(int));
    OK(hipMemcpyHtoD(address, &value, sizeof value));
    OK(hipMalloc(&data, sizeof(int)));
    OK(hipMemset(data, 0, sizeof(int)));
    void* params[] = {&data};
    OK(hipModuleLaunchKernel(kernel(module, "add_offset"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(hipMemcpyDtoH(&result, data, sizeof result));
    CHECK(result == 40);
    RETURNS(hipErrorNotFound, hipModuleGetGlobal(&address, &bytes, module, "nowhere"));
    OK(hipFree(data));
}

static void options_headers_and_names(void) {
    const char* source =
        "#include \"scale.h\"\n"
        "template <typename T> __global__ void scale(T* data) { *data *= FACTOR * SCALE; }\n";
    const char* header = "#define SCALE 3\n";
    const char* name = "scale.h";
    const char* options[] = {"-DFACTOR=2"};
    hiprtcProgram program;
    RTC(hiprtcCreateProgram(&program, source, NULL, 1, &header, &name));
    RTC(hiprtcAddNameExpression(program, "scale<int>"));
    RTC(hiprtcCompileProgram(program, 1, options));
    const char* lowered = NULL;
    RTC(hiprtcGetLoweredName(program, "scale<int>", &lowered));
    size_t bytes = 0;
    RTC(hiprtcGetCodeSize(program, &bytes));
    char* code = (char*)malloc(bytes);
    RTC(hiprtcGetCode(program, code));
    hipModule_t module;
    OK(hipModuleLoadData(&module, code));
    free(code);
    int value = 7;
    void* data = NULL;
    OK(hipMalloc(&data, sizeof value));
    OK(hipMemcpyHtoD(data, &value, sizeof value));
    void* params[] = {&data};
    OK(hipModuleLaunchKernel(kernel(module, lowered), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    OK(hipMemcpyDtoH(&value, data, sizeof value));
    CHECK(value == 42);
    RTC(hiprtcDestroyProgram(&program));
    OK(hipFree(data));
    OK(hipModuleUnload(module));
}

static void compiler_errors_are_in_the_log(void) {
    hiprtcProgram program;
    size_t bytes = 0;
    RTC(hiprtcCreateProgram(&program, "__global__ void broken( {", NULL, 0, NULL, NULL));
    CHECK(hiprtcCompileProgram(program, 0, NULL) == HIPRTC_ERROR_COMPILATION);
    RTC(hiprtcGetProgramLogSize(program, &bytes));
    CHECK(bytes > 1);
    RTC(hiprtcDestroyProgram(&program));
    UNCHECKED_BY_ROCM(CHECK(hiprtcDestroyProgram(&program) != HIPRTC_SUCCESS));
}

int main(void) {
    hipModule_t module = compiled(SOURCE);
    launches(module);
    shared_memory_and_barriers(module);
    variables(module);
    hipFunction_t function;
    RETURNS(hipErrorNotFound, hipModuleGetFunction(&function, module, "nowhere"));
    OK(hipModuleUnload(module));
    RETURNS(hipErrorNotFound, hipModuleUnload(module));
    options_headers_and_names();
    compiler_errors_are_in_the_log();
    still_usable();
    return 0;
}
