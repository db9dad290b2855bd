// Checks for programs that call rocBLAS and rocSOLVER.
#pragma once

#include "check.h"

#include <rocblas/rocblas.h>

// Ends the program unless the call returns this status.
#define BLAS(code, call)                                                                        \
    do {                                                                                        \
        const rocblas_status returned_ = (call);                                                \
        if (returned_ != (code)) {                                                              \
            fprintf(stderr, "%s:%d: %s returned %s\n", __FILE__, __LINE__, #call,               \
                    rocblas_status_to_string(returned_));                                       \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

#define DONE(call) BLAS(rocblas_status_success, call)

// Device memory with these values.
template <class T, size_t N> static T* on_device(const T (&values)[N]) {
    T* device = NULL;
    OK(hipMalloc((void**)&device, sizeof values));
    OK(hipMemcpy(device, values, sizeof values, hipMemcpyHostToDevice));
    return device;
}

// Whether device memory holds values that differ from these by at most a few roundings.
template <class T, size_t N> static bool holds(const T* device, const T (&values)[N]) {
    T found[N];
    OK(hipMemcpy(found, device, sizeof found, hipMemcpyDeviceToHost));
    for (size_t i = 0; i < N; ++i) {
        const double difference = (double)found[i] - (double)values[i];
        if (!(difference < 1e-5 && difference > -1e-5)) return false;
    }
    return true;
}
