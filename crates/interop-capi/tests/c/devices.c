/* Which HIP device a bridge takes that no number was given, where there are two. */
#include "check.h"

/* The device of a bridge on these objects. */
static int adopted(const struct hipcl_native_handles *natives, struct ihipStream_t *stream,
                   const struct hipcl_bridge_options *options) {
    hipcl_bridge bridge;
    struct hipcl_native_handles own = {.struct_size = sizeof own};
    OK(hipcl_bridge_adopt(natives->context, natives->device, natives->queue, stream, options, &bridge));
    OK(hipcl_bridge_native(bridge, &own));
    CHECK(own.stream == stream);
    OK(hipcl_bridge_destroy(bridge));
    return own.hip_device;
}

int main(void) {
    hipcl_bridge first, second, none;
    struct hipcl_native_handles natives = {.struct_size = sizeof natives}, firsts = {.struct_size = sizeof firsts};
    struct hipcl_bridge_options options = {.struct_size = sizeof options};
    CHECK(setenv("HIP_HOST_DEVICES", "2", 1) == 0);
    OK(hipcl_bridge_options_init(&options));
    CHECK(options.hip_device == -1);
    OK(hipcl_bridge_open(&options, &first));
    OK(hipcl_bridge_native(first, &firsts));
    CHECK(firsts.hip_device == 0);
    options.hip_device = 1;
    hipcl_status status = hipcl_bridge_open(&options, &second);
    if (status != HIPCL_SUCCESS) {
        printf("skipped: no second device: %s\n", hipcl_last_error());
        return status == HIPCL_ERROR_NO_DEVICE ? 0 : 1;
    }
    OK(hipcl_bridge_native(second, &natives));
    CHECK(natives.hip_device == 1);

    /* The stream's device, without a number and with its own; another number is refused. */
    CHECK(adopted(&natives, natives.stream, NULL) == 1);
    CHECK(adopted(&natives, natives.stream, &options) == 1);
    options.hip_device = 0;
    FAILS(HIPCL_ERROR_ARGUMENT, "device 1",
          hipcl_bridge_adopt(natives.context, natives.device, natives.queue, natives.stream, &options, &none));
    /* The default stream is every device's. */
    options.hip_device = 1;
    CHECK(adopted(&natives, NULL, &options) == 1);
    const char *platform = getenv("HIPCL_PLATFORM");
    if (platform != NULL && strcmp(platform, "host") == 0) {
        /* All software devices pair with the one OpenCL device. */
        CHECK(adopted(&natives, firsts.stream, NULL) == 0);
        CHECK(adopted(&natives, NULL, NULL) == 0);
    } else {
        CHECK(adopted(&natives, NULL, NULL) == 1);
    }
    options.hip_device = -2;
    FAILS(HIPCL_ERROR_ARGUMENT, "`options.hip_device` is -2", hipcl_bridge_open(&options, &none));
    options.hip_device = 2;
    FAILS(HIPCL_ERROR_NO_DEVICE, "", hipcl_bridge_open(&options, &none));
    OK(hipcl_bridge_destroy(second));
    OK(hipcl_bridge_destroy(first));
    return 0;
}
