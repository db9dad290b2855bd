// rocBLAS: levels 1 to 3 against numbers worked out by hand, their `_64`, batched and `_ex` forms against each other, and
// the copies that go with them.
#include "status.h"

static const rocblas_operation none = rocblas_operation_none, trans = rocblas_operation_transpose;

static void level_1(rocblas_handle handle) {
    const float two = 2;
    float *x = on_device({1.0f, -2.0f, 3.0f}), *y = on_device({4.0f, 5.0f, 6.0f}), result = 0;
    int index = 0;
    DONE(rocblas_saxpy(handle, 3, &two, x, 1, y, 1));
    CHECK(holds(y, {6.0f, 1.0f, 12.0f}));
    DONE(rocblas_saxpy_64(handle, 3, &two, x, 1, y, 1));
    CHECK(holds(y, {8.0f, -3.0f, 18.0f}));
    DONE(rocblas_sscal(handle, 2, &two, y, 2));
    CHECK(holds(y, {16.0f, -3.0f, 36.0f}));
    DONE(rocblas_sdot(handle, 3, x, 1, x, -1, &result));
    CHECK(result == 10);
    DONE(rocblas_sasum(handle, 3, x, 1, &result));
    CHECK(result == 6);
    DONE(rocblas_isamax(handle, 3, x, 1, &index));
    CHECK(index == 3);
    DONE(rocblas_isamin(handle, 3, x, 1, &index));
    CHECK(index == 1);
    DONE(rocblas_scopy(handle, 3, x, 1, y, 1));
    DONE(rocblas_sswap(handle, 1, x, 1, y + 2, 1));
    CHECK(holds(x, {3.0f, -2.0f, 3.0f}) && holds(y, {1.0f, -2.0f, 1.0f}));

    // One number to one place three times; three numbers to one place would be a race.
    DONE(rocblas_scopy(handle, 3, x, 0, y + 1, 0));
    CHECK(holds(y, {1.0f, 3.0f, 1.0f}));
    UNCHECKED_BY_ROCM(BLAS(rocblas_status_invalid_size, rocblas_scopy(handle, 3, x, 1, y, 0)));

    // Results in device memory are there in stream order.
    float* norm = on_device({0.0f});
    DONE(rocblas_set_pointer_mode(handle, rocblas_pointer_mode_device));
    DONE(rocblas_snrm2(handle, 2, y, 2, norm));
    DONE(rocblas_set_pointer_mode(handle, rocblas_pointer_mode_host));
    CHECK(holds(norm, {1.41421356f}));
    BLAS(rocblas_status_invalid_pointer, rocblas_saxpy(handle, 3, NULL, x, 1, y, 1));
    BLAS(rocblas_status_invalid_handle, rocblas_saxpy(NULL, 3, &two, x, 1, y, 1));
    for (void* memory : {x, y, norm}) OK(hipFree(memory));
}

static void level_2(rocblas_handle handle) {
    const double one = 1, zero = 0;
    double *a = on_device({1.0, 2.0, 3.0, 4.0}), *x = on_device({1.0, 1.0}), *y = on_device({7.0, 7.0});
    DONE(rocblas_dgemv(handle, none, 2, 2, &one, a, 2, x, 1, &zero, y, 1));
    CHECK(holds(y, {4.0, 6.0}));
    DONE(rocblas_dgemv_64(handle, trans, 2, 2, &one, a, 2, x, 1, &one, y, 1));
    CHECK(holds(y, {7.0, 13.0}));
    DONE(rocblas_dger(handle, 2, 2, &one, x, 1, x, 1, a, 2));
    CHECK(holds(a, {2.0, 3.0, 4.0, 5.0}));
    BLAS(rocblas_status_invalid_size, rocblas_dger(handle, 2, 2, &one, x, 0, x, 1, a, 2));
    for (void* memory : {a, x, y}) OK(hipFree(memory));
}

static void level_3(rocblas_handle handle) {
    const float one = 1, zero = 0;
    const float product[] = {7, 10, 15, 22};
    // Two matrices one after the other, for the forms with a stride.
    float *a = on_device({1.0f, 2.0f, 3.0f, 4.0f, 1.0f, 2.0f, 3.0f, 4.0f}), *c = NULL;
    OK(hipMalloc((void**)&c, 8 * sizeof(float)));
    const auto both = [&] {
        const bool same = holds(c, product) && holds(c + 4, product);
        OK(hipMemset(c, 0xff, 8 * sizeof(float)));
        return same;
    };
    for (int i = 0; i < 2; ++i)
        DONE(rocblas_sgemm(handle, none, none, 2, 2, 2, &one, a, 2, a, 2, &zero, c + 4 * i, 2));
    CHECK(both());
    DONE(rocblas_sgemm_strided_batched_64(handle, none, none, 2, 2, 2, &one, a, 2, 4, a, 2, 4, &zero, c, 2, 4, 2));
    CHECK(both());
    float** as = on_device<float*, 2>({a, a + 4});
    float** cs = on_device<float*, 2>({c, c + 4});
    DONE(rocblas_sgemm_batched(handle, none, none, 2, 2, 2, &one, as, 2, as, 2, &zero, cs, 2, 2));
    CHECK(both());
    const rocblas_datatype f32 = rocblas_datatype_f32_r;
    DONE(rocblas_gemm_batched_ex(handle, none, none, 2, 2, 2, &one, as, f32, 2, as, f32, 2, &zero, cs, f32, 2, cs, f32,
                                 2, 2, f32, rocblas_gemm_algo_standard, 0, 0));
    CHECK(both());
    DONE(rocblas_gemm_strided_batched_ex(handle, none, none, 2, 2, 2, &one, a, f32, 2, 4, a, f32, 2, 4, &zero, c, f32,
                                         2, 4, c, f32, 2, 4, 2, f32, rocblas_gemm_algo_standard, 0, 0));
    CHECK(both());

    // A triangle times and over a matrix; a matrix times its transpose.
    float* b = on_device({1.0f, 1.0f, 2.0f, 4.0f});
    const rocblas_fill lower = rocblas_fill_lower;
    const rocblas_side left = rocblas_side_left;
    const rocblas_diagonal full = rocblas_diagonal_non_unit;
    DONE(rocblas_strmm(handle, left, lower, none, full, 2, 2, &one, a, 2, b, 2, c, 2));
    CHECK(holds(c, {1.0f, 6.0f, 2.0f, 20.0f}));
    // A factor in device memory is fetched before the matrices are looked at.
    float* factor = on_device({1.0f});
    DONE(rocblas_set_pointer_mode(handle, rocblas_pointer_mode_device));
    BLAS(rocblas_status_invalid_pointer,
         rocblas_strmm(handle, left, lower, none, full, 2, 2, factor, NULL, 2, b, 2, c, 2));
    DONE(rocblas_strmm(handle, left, lower, none, full, 2, 2, factor, a, 2, b, 2, c, 2));
    DONE(rocblas_set_pointer_mode(handle, rocblas_pointer_mode_host));
    CHECK(holds(c, {1.0f, 6.0f, 2.0f, 20.0f}));
    OK(hipFree(factor));
    DONE(rocblas_strsm(handle, left, lower, none, full, 2, 2, &one, a, 2, c, 2));
    CHECK(holds(c, {1.0f, 1.0f, 2.0f, 4.0f}));
    DONE(rocblas_ssyrk(handle, lower, none, 2, 2, &one, a, 2, &zero, c, 2));
    CHECK(holds(c, {10.0f, 14.0f, 2.0f, 20.0f}));
    for (void* memory : {(void*)a, (void*)b, (void*)c, (void*)as, (void*)cs}) OK(hipFree(memory));
}

static void transfers(rocblas_handle handle) {
    // Every second of six, and the upper two of three rows.
    const int values[] = {1, 2, 3, 4, 5, 6};
    int *device = on_device({0, 0, 0, 0, 0, 0}), back[6] = {0, 0, 0, 0, 0, 0};
    DONE(rocblas_set_vector(3, sizeof(int), values, 2, device, 1));
    CHECK(holds(device, {1, 3, 5, 0, 0, 0}));
    DONE(rocblas_get_vector_64(3, sizeof(int), device, 1, back, 2));
    CHECK(back[0] == 1 && back[1] == 0 && back[2] == 3 && back[4] == 5);
    DONE(rocblas_set_matrix(2, 2, sizeof(int), values, 3, device, 2));
    CHECK(holds(device, {1, 2, 4, 5, 0, 0}));
    DONE(rocblas_get_matrix_64(2, 2, sizeof(int), device, 2, back, 3));
    CHECK(back[0] == 1 && back[1] == 2 && back[3] == 4 && back[4] == 5);

    hipStream_t stream;
    OK(hipStreamCreate(&stream));
    DONE(rocblas_set_vector_async(6, sizeof(int), values, 1, device, 1, stream));
    DONE(rocblas_get_matrix_async(3, 2, sizeof(int), device, 3, back, 3, stream));
    OK(hipStreamSynchronize(stream));
    CHECK(memcmp(back, values, sizeof back) == 0);
    OK(hipStreamDestroy(stream));

    DONE(rocblas_set_vector(0, sizeof(int), NULL, 1, NULL, 1));
    BLAS(rocblas_status_invalid_size, rocblas_set_vector(-1, sizeof(int), values, 1, device, 1));
    BLAS(rocblas_status_invalid_size, rocblas_set_vector(3, sizeof(int), values, 0, device, 1));
    BLAS(rocblas_status_invalid_size, rocblas_set_matrix(3, 2, sizeof(int), values, 3, device, 2));
    BLAS(rocblas_status_invalid_pointer, rocblas_get_vector(3, sizeof(int), NULL, 1, back, 1));
    // Beyond the allocation: ROCm prints HIP's error and answers a success.
    BLAS(rocblas_status_internal_error, rocblas_set_vector(4, sizeof(int), values, 1, device + 3, 1));
    BLAS(rocblas_status_internal_error, rocblas_get_matrix_64(INT64_MAX / 8, 4, 1, device, INT64_MAX / 8, back, INT64_MAX / 8));
    (void)hipGetLastError();
    OK(hipFree(device));
    BLAS(rocblas_status_not_implemented, rocblas_sgeam(handle, none, none, 0, 0, NULL, NULL, 1, NULL, NULL, 1, NULL, 1));
}

// The size of the memory for intermediate results is the user's, by the environment or by a call, or the library's.
static void memory_size(void) {
    size_t bytes = 0;
    rocblas_handle handle;
    CHECK(setenv("ROCBLAS_DEVICE_MEMORY_SIZE", "2000000", 1) == 0);
    DONE(rocblas_create_handle(&handle));
    CHECK(unsetenv("ROCBLAS_DEVICE_MEMORY_SIZE") == 0);
    CHECK(!rocblas_is_managing_device_memory(handle));
    DONE(rocblas_get_device_memory_size(handle, &bytes));
    CHECK(bytes == 2000000);
    DONE(rocblas_set_device_memory_size(handle, 0));
    CHECK(rocblas_is_managing_device_memory(handle));
    DONE(rocblas_destroy_handle(handle));
}

int main(void) {
    rocblas_handle handle;
    DONE(rocblas_create_handle(&handle));
    level_1(handle);
    level_2(handle);
    level_3(handle);
    transfers(handle);
    memory_size();
    DONE(rocblas_destroy_handle(handle));
    still_usable();
    return 0;
}
