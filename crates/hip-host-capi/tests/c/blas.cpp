// rocBLAS and rocSOLVER by their own names, in the same library.
#include "status.h"

#include <rocsolver/rocsolver.h>

#include <math.h>

int main(void) {
    rocblas_handle handle;
    BLAS(rocblas_status_success, rocblas_create_handle(&handle));
    // Column by column.
    const float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8}, one = 1, zero = 0;
    float c[4];
    float *da = NULL, *db = NULL, *dc = NULL;
    OK(hipMalloc((void**)&da, sizeof a));
    OK(hipMalloc((void**)&db, sizeof b));
    OK(hipMalloc((void**)&dc, sizeof c));
    OK(hipMemcpy(da, a, sizeof a, hipMemcpyHostToDevice));
    OK(hipMemcpy(db, b, sizeof b, hipMemcpyHostToDevice));
    BLAS(rocblas_status_success,
         rocblas_sgemm(handle, rocblas_operation_none, rocblas_operation_none, 2, 2, 2, &one, da, 2, db, 2,
                       &zero, dc, 2));
    OK(hipMemcpy(c, dc, sizeof c, hipMemcpyDeviceToHost));
    CHECK(c[0] == 23 && c[1] == 34 && c[2] == 31 && c[3] == 46);
    BLAS(rocblas_status_invalid_size,
         rocblas_sgemm(handle, rocblas_operation_none, rocblas_operation_none, -1, 2, 2, &one, da, 2, db, 2,
                       &zero, dc, 2));
    BLAS(rocblas_status_invalid_handle,
         rocblas_sgemm(NULL, rocblas_operation_none, rocblas_operation_none, 2, 2, 2, &one, da, 2, db, 2,
                       &zero, dc, 2));

    const float definite[] = {4, 2, 2, 5};
    int info = -1, *device_info = NULL;
    OK(hipMalloc((void**)&device_info, sizeof info));
    OK(hipMemcpy(da, definite, sizeof definite, hipMemcpyHostToDevice));
    BLAS(rocblas_status_success, rocsolver_spotrf(handle, rocblas_fill_lower, 2, da, 2, device_info));
    OK(hipMemcpy(c, da, sizeof c, hipMemcpyDeviceToHost));
    OK(hipMemcpy(&info, device_info, sizeof info, hipMemcpyDeviceToHost));
    CHECK(info == 0 && fabsf(c[0] - 2) < 1e-6f && fabsf(c[1] - 1) < 1e-6f && fabsf(c[3] - 2) < 1e-6f);
    BLAS(rocblas_status_success, rocblas_destroy_handle(handle));
    UNCHECKED_BY_ROCM(BLAS(rocblas_status_invalid_handle, rocblas_destroy_handle(handle)));
    OK(hipFree(device_info));
    OK(hipFree(da));
    OK(hipFree(db));
    OK(hipFree(dc));
    still_usable();
    return 0;
}
