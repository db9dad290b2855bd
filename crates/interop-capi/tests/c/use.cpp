// The C header in C++: handles of different types do not convert into each other, and the library links.
#include <hipcl.h>

#include <cstdio>
#include <type_traits>

static_assert(!std::is_convertible<hipcl_buffer, hipcl_queue>::value, "handles are types of their own");
static_assert(!std::is_convertible<void *, hipcl_buffer>::value, "a pointer is no handle");

int main() {
    hipcl_bridge bridge = nullptr;
    hipcl_buffer buffer = nullptr;
    hipcl_status status = hipcl_bridge_open(nullptr, &bridge);
    if (status == HIPCL_SUCCESS) status = hipcl_buffer_create(bridge, 64, &buffer);
    if (status == HIPCL_SUCCESS) status = hipcl_buffer_destroy(buffer);
    if (status == HIPCL_SUCCESS) status = hipcl_bridge_destroy(bridge);
    if (status != HIPCL_SUCCESS) std::fprintf(stderr, "%s\n", hipcl_last_error());
    return status;
}
