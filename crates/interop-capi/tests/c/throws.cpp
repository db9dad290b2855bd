// An exception that leaves the one function of the caller that the library calls: the process ends, and no handler of the
// caller sees it.
#include <hipcl.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <unistd.h>

static void throws(void *) { throw 1; }

static void aborted(int) { _exit(0); }

static int failed(const char *what) {
    std::fprintf(stderr, "%s: %s\n", what, hipcl_last_error());
    return 1;
}

int main() {
    hipcl_bridge bridge = nullptr;
    hipcl_buffer owner = nullptr, buffer = nullptr;
    hipcl_buffer_info info = {};
    info.struct_size = sizeof info;
    if (hipcl_bridge_open(nullptr, &bridge)) return failed("open");
    const hipcl_status made = hipcl_buffer_create_on(bridge, HIPCL_ROUTE_HIP_POINTER, 4096, &owner);
    if (made == HIPCL_ERROR_NOT_SUPPORTED) {
        std::printf("skipped: %s\n", hipcl_last_error());
        return 0;
    }
    if (made || hipcl_buffer_get_info(owner, &info)) return failed("memory of HIP");
    void *memory = reinterpret_cast<void *>(static_cast<std::uintptr_t>(info.hip_address));
    if (hipcl_buffer_adopt_hip(bridge, memory, 4096, throws, nullptr, &buffer)) return failed("adopt");
    if (std::signal(SIGABRT, aborted) == SIG_ERR) return 2;
    try {
        (void)hipcl_buffer_destroy(buffer);
    } catch (...) {
        std::fprintf(stderr, "the exception passed through the library\n");
        return 3;
    }
    std::fprintf(stderr, "the exception was lost\n");
    return 4;
}
