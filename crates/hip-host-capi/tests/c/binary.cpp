// What hipcc puts into a program that has device code, written out: the code is for AMD's processors, so the program
// starts and works, and its kernels and variables are "no binary for GPU".
#include "check.h"

#include <rocblas/rocblas.h>

extern "C" {
void** __hipRegisterFatBinary(const void* wrapper);
void __hipUnregisterFatBinary(void** binary);
void __hipRegisterFunction(void** binary, const void* function, char* device_function, const char* device_name,
                           unsigned threads, void* thread, void* block, dim3* block_size, dim3* grid_size, int* warp);
void __hipRegisterVar(void** binary, void* variable, char* host_name, char* device_name, int external, size_t bytes,
                      int constant, int global);
void __hipRegisterManagedVar(void* binary, void** pointer, void* initial, const char* name, size_t bytes,
                             unsigned alignment);
hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared, hipStream_t stream);
hipError_t __hipPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, hipStream_t* stream);
}

static const struct {
    unsigned magic, version;
    const void *binary, *unused;
} wrapper = {0x48495046, 1, NULL, NULL}, wrong = {1, 1, NULL, NULL};

static void a_kernel(void) {}
static void no_kernel(void) {}
static int variable, no_variable;

static void kernels_and_variables(void) {
    CHECK(__hipRegisterFatBinary(&wrong) == NULL);
    void** binary = __hipRegisterFatBinary(&wrapper);
    CHECK(binary != NULL);
    char name[] = "a_name";
    __hipRegisterFunction(binary, (const void*)a_kernel, name, name, ~0u, NULL, NULL, NULL, NULL, NULL);
    __hipRegisterVar(binary, &variable, name, name, 0, sizeof variable, 0, 0);

    RETURNS(hipErrorNoBinaryForGpu, hipLaunchKernel((const void*)a_kernel, dim3(1), dim3(1), NULL, 0, NULL));
    RETURNS(hipErrorInvalidDeviceFunction, hipLaunchKernel((const void*)no_kernel, dim3(1), dim3(1), NULL, 0, NULL));
    int four = 4;
    RETURNS(hipErrorNoBinaryForGpu,
            hipMemcpyToSymbol((const void*)&variable, &four, sizeof four, 0, hipMemcpyHostToDevice));
    RETURNS(hipErrorInvalidSymbol,
            hipMemcpyToSymbol((const void*)&no_variable, &four, sizeof four, 0, hipMemcpyHostToDevice));

    int first = 17, *managed = NULL;
    __hipRegisterManagedVar(binary, (void**)&managed, &first, "managed", sizeof first, alignof(int));
    CHECK(managed != NULL && *managed == 17);
    OK(hipFree(managed));
    __hipUnregisterFatBinary(binary);
}

// As the compiler does it: pushed by the caller, popped by the kernel's stand-in on the host.
static void configurations(void) {
    hipStream_t stream, popped;
    OK(hipStreamCreate(&stream));
    OK(__hipPushCallConfiguration(dim3(2, 3, 4), dim3(5, 6, 7), 8, stream));
    OK(__hipPushCallConfiguration(dim3(9), dim3(10), 11, NULL));
    dim3 grid, block;
    size_t shared = 0;
    OK(__hipPopCallConfiguration(&grid, &block, &shared, &popped));
    CHECK(grid.x == 9 && grid.y == 1 && block.x == 10 && shared == 11 && popped == NULL);
    OK(__hipPopCallConfiguration(&grid, &block, &shared, &popped));
    CHECK(grid.x == 2 && grid.y == 3 && grid.z == 4 && block.x == 5 && block.y == 6 && block.z == 7);
    CHECK(shared == 8 && popped == stream);
    RETURNS(hipErrorMissingConfiguration, __hipPopCallConfiguration(&grid, &block, &shared, &popped));
    OK(hipStreamDestroy(stream));
}

// Functions with a variable number of arguments link, and say that they are not built.
static void variable_arguments(void) {
    rocblas_handle handle;
    CHECK(rocblas_create_handle(&handle) == rocblas_status_success);
    CHECK(rocblas_set_optimal_device_memory_size_impl(handle, 2, (size_t)1, (size_t)2) == rocblas_status_not_implemented);
    rocblas_device_malloc_base* memory = NULL;
    CHECK(rocblas_device_malloc_alloc(handle, &memory, 3, (size_t)1, (size_t)2, (size_t)3) ==
          rocblas_status_not_implemented);
    CHECK(memory == NULL);
    CHECK(rocblas_destroy_handle(handle) == rocblas_status_success);
}

int main(void) {
    kernels_and_variables();
    configurations();
    variable_arguments();
    still_usable();
    return 0;
}
