// rocSOLVER: a call that could do its work says so by its status, and what the numbers did not allow by `info`.
#include "status.h"

#include <rocsolver/rocsolver.h>

static const rocblas_operation none = rocblas_operation_none;

// Column by column: regular, and with two equal rows.
static const double regular[] = {2, 4, 8, 1, 3, 7, 1, 3, 9}, singular[] = {1, 2, 1, 4, 5, 4, 7, 8, 7};

static void factors(rocblas_handle handle, bool blocked) {
    const int unset[] = {-1, -1, -1};
    const double sums[] = {4, 10, 24}, ones[] = {1, 1, 1};
    double *a = on_device(regular), *b = on_device(sums);
    int *pivots = on_device(unset), *info = on_device(unset);
    const auto factor = blocked ? rocsolver_dgetrf : rocsolver_dgetf2;
    DONE(factor(handle, 3, 3, a, 3, pivots, info));
    DONE(rocsolver_dgetrs(handle, none, 3, 1, a, 3, pivots, b, 3));
    CHECK(holds(b, ones));
    CHECK(holds(pivots, {3, 3, 3}) || holds(pivots, {3, 2, 3}));
    CHECK(holds(info, {0, -1, -1}));

    // The inverse times the matrix's row sums is one everywhere.
    DONE(rocsolver_dgetri(handle, 3, a, 3, pivots, info));
    const double alpha = 1, beta = 0;
    double *x = on_device(sums), *y = on_device(unset[0] ? sums : ones);
    DONE(rocblas_dgemv(handle, none, 3, 3, &alpha, a, 3, x, 1, &beta, y, 1));
    CHECK(holds(y, ones));

    double* bad = on_device(singular);
    DONE(factor(handle, 3, 3, bad, 3, pivots, info));
    CHECK(holds(info, {3, -1, -1}));
    DONE(rocsolver_dgetri(handle, 3, bad, 3, pivots, info));
    CHECK(holds(info, {3, -1, -1}));
    OK(hipMemcpy(bad, singular, sizeof singular, hipMemcpyHostToDevice));
    DONE(rocsolver_dgesv(handle, 3, 1, bad, 3, pivots, b, 3, info));
    CHECK(holds(info, {3, -1, -1}));
    CHECK(holds(b, ones));

    BLAS(rocblas_status_invalid_handle, factor(NULL, 3, 3, a, 3, pivots, info));
    BLAS(rocblas_status_invalid_size, factor(handle, 3, 3, a, 2, pivots, info));
    BLAS(rocblas_status_invalid_pointer, factor(handle, 3, 3, NULL, 3, pivots, info));
    BLAS(rocblas_status_invalid_pointer, factor(handle, 3, 3, a, 3, pivots, NULL));
    for (void* memory : {(void*)a, (void*)b, (void*)bad, (void*)x, (void*)y, (void*)pivots, (void*)info})
        OK(hipFree(memory));
}

static void definite(rocblas_handle handle, bool blocked) {
    const float matrix[] = {4, 2, 2, 2, 5, 3, 2, 3, 6}, indefinite[] = {1, 2, 2, 2, 1, 0, 2, 0, 1};
    const int unset[] = {-1};
    float* a = on_device(matrix);
    int* info = on_device(unset);
    const auto factor = blocked ? rocsolver_spotrf : rocsolver_spotf2;
    DONE(factor(handle, rocblas_fill_lower, 3, a, 3, info));
    CHECK(holds(info, {0}));
    CHECK(holds(a, {2.0f, 1.0f, 1.0f, 2.0f, 2.0f, 1.0f, 2.0f, 3.0f, 2.0f}));
    float* b = on_device({8.0f, 10.0f, 11.0f});
    DONE(rocsolver_spotrs(handle, rocblas_fill_lower, 3, 1, a, 3, b, 3));
    CHECK(holds(b, {1.0f, 1.0f, 1.0f}));

    // The first column is done, and the second pivot is found to be 1 - 2 * 2. What the rest holds is open.
    OK(hipMemcpy(a, indefinite, sizeof indefinite, hipMemcpyHostToDevice));
    DONE(factor(handle, rocblas_fill_lower, 3, a, 3, info));
    CHECK(holds(info, {2}));
    CHECK(holds(a, {1.0f, 2.0f, 2.0f, 2.0f, -3.0f}));
    BLAS(rocblas_status_invalid_value, factor(handle, rocblas_fill_full, 3, a, 3, info));
    for (void* memory : {(void*)a, (void*)b, (void*)info}) OK(hipFree(memory));
}

// Each matrix of a batch has its own `info`; an empty one needs no place.
static void batches(rocblas_handle handle) {
    double *first = on_device(regular), *second = on_device(singular);
    double* const places[] = {first, second};
    double** array = on_device<double*, 2>({places[0], places[1]});
    const int unset[] = {-1, -1, -1, -1, -1, -1};
    int *pivots = on_device(unset), *info = on_device({-1, -1});
    DONE(rocsolver_dgetrf_batched(handle, 3, 3, array, 3, pivots, 3, info, 2));
    CHECK(holds(info, {0, 3}));
    OK(hipMemset(info, 0xff, 2 * sizeof(int)));
    DONE(rocsolver_dgetrf_batched(handle, 0, 0, (double* const*)NULL, 1, NULL, 0, info, 2));
    DONE(rocsolver_dpotrf_batched(handle, rocblas_fill_upper, 0, (double* const*)NULL, 1, info, 2));
    CHECK(holds(info, {0, 0}));
    for (void* memory : {(void*)first, (void*)second, (void*)array, (void*)pivots, (void*)info})
        OK(hipFree(memory));
}

int main(void) {
    rocblas_handle handle;
    DONE(rocblas_create_handle(&handle));
    for (bool blocked : {true, false}) {
        factors(handle, blocked);
        definite(handle, blocked);
    }
    batches(handle);
#ifndef ON_ROCM
    BLAS(rocblas_status_not_implemented, rocsolver_dgeqrf(handle, 3, 3, NULL, 3, NULL));
#endif
    DONE(rocblas_destroy_handle(handle));
    still_usable();
    return 0;
}
