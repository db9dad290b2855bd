/* The end of a process that leaves its objects alive, in each of the ways that its argument names: it is over at once, and
 * with the program's own status. */
#include "check.h"

#include <pthread.h>
#include <unistd.h>

enum { BYTES = 1 << 20 };

static void *leaves(void *status) {
    exit(*(int *)status);
}

int main(int count, char **values) {
    hipcl_bridge bridge;
    hipcl_queue queue;
    hipcl_stream stream;
    hipcl_buffer buffer, held;
    hipcl_access access;
    hipcl_program program;
    hipcl_kernel add;
    hipcl_blas blas;
    int status = 7;
    CHECK(count == 2);
    /* A process that does not end is ended, and fails. */
    alarm(120);
    OK(hipcl_bridge_open(NULL, &bridge));
    OK(hipcl_queue_create(bridge, &queue));
    OK(hipcl_stream_create(bridge, &stream));
    OK(hipcl_blas_create(bridge, stream, &blas));
    OK(hipcl_buffer_create(bridge, BYTES, &buffer));
    OK(hipcl_buffer_create(bridge, BYTES, &held));
    OK(hipcl_program_build(bridge, "kernel void add(global uchar *x) { x[get_global_id(0)]++; }", NULL, &program));
    OK(hipcl_kernel_create(program, "add", &add));
    /* Work on both sides, and an access that is open. */
    const struct hipcl_arg argument = {.struct_size = sizeof argument, .kind = HIPCL_ARG_WRITE, .buffer = buffer};
    const struct hipcl_range range = {.struct_size = sizeof range, .dimensions = 1, .global = {BYTES}};
    OK(hipcl_access_begin_stream(held, stream, HIPCL_ACCESS_WRITE, &access));
    for (int i = 0; i < 4; i++) {
        OK(hipcl_kernel_launch_on_queue(add, queue, &range, &argument, 1));
        OK(hipcl_kernel_launch_on_stream(add, stream, &range, &argument, 1));
    }
    if (strcmp(values[1], "_exit") == 0) _exit(status);
    /* The other ways run the drivers' destructors, which must not meet running work. */
    OK(hipcl_queue_finish(queue));
    OK(hipcl_stream_synchronize(stream));
    if (strcmp(values[1], "return") == 0) return status;
    if (strcmp(values[1], "exit") == 0) exit(status);
    if (strcmp(values[1], "thread") == 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, leaves, &status) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    return 1;
}
