/* What fails while an object is destroyed is told afterwards, once, by the bridge: here that HIP cannot destroy a stream,
 * and rocBLAS a handle. */
#include "check.h"

/* Takes the bridge's errors. */
static int tells(hipcl_bridge bridge, const char *words) {
    hipcl_text errors;
    const char *text;
    OK(hipcl_bridge_take_deferred_errors(bridge, &errors));
    OK(hipcl_text_get(errors, &text, NULL));
    int is_told = strstr(text, words) != NULL;
    if (!is_told) fprintf(stderr, "told: %s\n", text);
    OK(hipcl_text_destroy(errors));
    return is_told;
}

int main(void) {
    hipcl_bridge bridge;
    hipcl_stream stream, second;
    hipcl_blas blas;
    hipcl_text none;
    size_t bytes;
    const char *platform = getenv("HIPCL_PLATFORM");
    if (platform == NULL || strcmp(platform, "host") != 0) {
        printf("skipped: only the software device fails on demand\n");
        return 0;
    }
    CHECK(setenv("HIP_HOST_FAIL", "hipStreamDestroy:*,rocblas_destroy_handle:*", 1) == 0);
    OK(hipcl_bridge_open(NULL, &bridge));
    /* Of the proofs, which use streams of their own. */
    OK(hipcl_bridge_take_deferred_errors(bridge, &none));
    OK(hipcl_text_destroy(none));

    OK(hipcl_stream_create(bridge, &stream));
    OK(hipcl_stream_create(bridge, &second));
    OK(hipcl_blas_create(bridge, second, &blas));
    OK(hipcl_stream_destroy(stream));
    CHECK(tells(bridge, "hipStreamDestroy"));
    OK(hipcl_blas_destroy(blas));
    CHECK(tells(bridge, "rocblas_destroy_handle"));
    /* Each once. */
    OK(hipcl_bridge_take_deferred_errors(bridge, &none));
    const char *text;
    OK(hipcl_text_get(none, &text, &bytes));
    CHECK(bytes == 0);
    OK(hipcl_text_destroy(none));
    OK(hipcl_stream_destroy(second));
    OK(hipcl_bridge_destroy(bridge));
    return 0;
}
