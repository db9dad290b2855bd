// Occupancy, facts about kernels and pointers, functions by name, and what a binary without kernels has registered.
#include "compile.h"

static void occupancy(hipFunction_t function) {
    int blocks = 0, grid = 0, block = 0, value = 0;
    OK(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 256, 0));
    CHECK(blocks == 8);
    OK(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 65, 0));
    CHECK(blocks == 16);
    OK(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 64, 32 << 10));
    CHECK(blocks == 2);
    OK(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 64, 65 << 10));
    CHECK(blocks == 0);
    INVALID(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(NULL, function, 64, 0));
    INVALID(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 0, 0));
    INVALID(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, -1, 0));
    INVALID(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, NULL, 64, 0));
    OK(hipModuleOccupancyMaxPotentialBlockSize(&grid, &block, function, 0, 0));
    CHECK(block == 1024 && grid > 0 && grid % 2 == 0);
    OK(hipModuleOccupancyMaxPotentialBlockSize(&grid, &block, function, 0, 300));
    CHECK(block > 0 && block <= 320 && block % 64 == 0);
    OK(hipModuleOccupancyMaxPotentialBlockSize(&grid, &block, function, 0, -1));
    CHECK(block == 1024);
    OK(hipModuleOccupancyMaxPotentialBlockSize(&grid, &block, function, 0, 32));
    CHECK(block == 64);
    OK(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    CHECK(value == 1024);
    INVALID(hipFuncGetAttribute(&value, (hipFunction_attribute)99, function));
    INVALID(hipFuncGetAttribute(NULL, HIP_FUNC_ATTRIBUTE_NUM_REGS, function));
    RETURNS(hipErrorInvalidHandle,
            hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_NUM_REGS, NULL));
}

static void pointers(void) {
    char* p = NULL;
    void* address = NULL;
    int ordinal = -7;
    unsigned bytes[2] = {0, 7};  // ROCm writes four bytes.
    hipMemoryType type;
    OK(hipMalloc((void**)&p, 100));
    OK(hipPointerGetAttribute(&ordinal, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    CHECK(ordinal == 0);
    OK(hipPointerGetAttribute(&type, HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    CHECK(type == hipMemoryTypeDevice);
    hipPointer_attribute which[] = {HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, HIP_POINTER_ATTRIBUTE_RANGE_SIZE};
    void* answers[] = {&address, bytes};
    OK(hipDrvPointerGetAttributes(2, which, answers, p + 50));
    CHECK(address == p && bytes[0] == 100 && bytes[1] == 7);
    INVALID(hipPointerGetAttribute(&address, HIP_POINTER_ATTRIBUTE_HOST_POINTER, p));
    INVALID(hipPointerGetAttribute(NULL, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
    INVALID(hipPointerGetAttribute(&ordinal, (hipPointer_attribute)999, p));
    INVALID(hipDrvPointerGetAttributes(0, which, answers, p));
    OK(hipFree(p));
    OK(hipExtMallocWithFlags((void**)&p, 8, hipMallocSignalMemory));
    OK(hipFree(p));
    INVALID(hipExtMallocWithFlags((void**)&p, 16, hipMallocSignalMemory));
    INVALID(hipExtMallocWithFlags((void**)&p, 16, 77));
}

static void names(void) {
    void* function = NULL;
    hipDriverProcAddressQueryResult found;
    OK(hipGetProcAddress("hipMalloc", &function, HIP_VERSION_MAJOR * 100, 0, &found));
    CHECK(found == HIP_GET_PROC_ADDRESS_SUCCESS);
    void* p = NULL;
    OK(((hipError_t(*)(void**, size_t))function)(&p, 16));
    OK(hipFree(p));
    INVALID(hipGetProcAddress("hipNowhere", &function, 600, 0, &found));
    CHECK(found == HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND && function == NULL);
    UNCHECKED_BY_ROCM(INVALID(hipGetProcAddress(NULL, &function, 600, 0, &found)));
}

static int variable;
static void function(void) {}

static void nothing_is_registered(void) {
    void* address = NULL;
    RETURNS(hipErrorInvalidSymbol, hipGetSymbolAddress(&address, &variable));
    RETURNS(hipErrorInvalidSymbol, hipMemcpyToSymbol(&variable, &address, 4, 0, hipMemcpyHostToDevice));
    UNCHECKED_BY_ROCM(RETURNS(hipErrorInvalidDeviceFunction,
            hipLaunchKernel((const void*)function, dim3(1), dim3(1), NULL, 0, NULL)));
    hipFuncAttributes attributes;
    RETURNS(hipErrorInvalidSymbol, hipFuncGetAttributes(&attributes, (const void*)function));
    // The result of the last call, a success included.
    RETURNS(hipErrorInvalidSymbol, hipExtGetLastError());
    RETURNS(hipSuccess, hipExtGetLastError());
    INVALID(hipMalloc(NULL, 1));
    OK(hipSetDevice(0));
    RETURNS(hipSuccess, hipExtGetLastError());
}

int main(void) {
    hipModule_t module = compiled("extern \"C\" __global__ void nothing() {}\n");
    occupancy(kernel(module, "nothing"));
    OK(hipModuleUnload(module));
    pointers();
    names();
    nothing_is_registered();
    still_usable();
    return 0;
}
