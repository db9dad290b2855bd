// What the C programs share. Each program checks one area of the API, says on standard error what is not as ROCm has it,
// and ends with 1 in that case.
#pragma once

#include <hip/hip_runtime_api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Ends the program unless the condition holds.
#define CHECK(condition)                                                                        \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);       \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

// Ends the program unless the call returns this code.
#define RETURNS(code, call)                                                                     \
    do {                                                                                        \
        const hipError_t returned_ = (call);                                                    \
        if (returned_ != (code)) {                                                              \
            fprintf(stderr, "%s:%d: %s returned %s, expected %s\n", __FILE__, __LINE__, #call,  \
                    hipGetErrorName(returned_), #code);                                         \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

// A misuse that ROCm does not look for: it crashes, or goes on with what it was given. The software device refuses it.
// `-DON_ROCM` leaves it out, so that the rest of a program runs with AMD's libraries too.
#ifdef ON_ROCM
#define UNCHECKED_BY_ROCM(statement)
#else
#define UNCHECKED_BY_ROCM(statement) statement
#endif

#define OK(call) RETURNS(hipSuccess, call)
#define INVALID(call) RETURNS(hipErrorInvalidValue, call)

// An address in no process: not canonical.
static inline void* nonsense(void) { return (void*)(uintptr_t)0x4100dead0000beefull; }

// Allocates, fills from the host with consecutive numbers that begin at `first`, and gives the device's address.
static inline unsigned* counted(size_t count, unsigned first) {
    unsigned* host = (unsigned*)malloc(count * sizeof(unsigned));
    for (size_t i = 0; i < count; ++i) host[i] = first + (unsigned)i;
    void* device = NULL;
    OK(hipMalloc(&device, count * sizeof(unsigned)));
    OK(hipMemcpy(device, host, count * sizeof(unsigned), hipMemcpyHostToDevice));
    free(host);
    return (unsigned*)device;
}

// Whether device memory holds consecutive numbers that begin at `first`.
static inline int is_counted(const unsigned* device, size_t count, unsigned first) {
    unsigned* host = (unsigned*)malloc(count * sizeof(unsigned));
    OK(hipMemcpy(host, device, count * sizeof(unsigned), hipMemcpyDeviceToHost));
    int same = 1;
    for (size_t i = 0; i < count; ++i) same &= host[i] == first + (unsigned)i;
    free(host);
    return same;
}

// The device still works: allocates, copies there and back, frees.
static inline void still_usable(void) {
    unsigned* data = counted(1000, 7);
    CHECK(is_counted(data, 1000, 7));
    OK(hipFree(data));
}
