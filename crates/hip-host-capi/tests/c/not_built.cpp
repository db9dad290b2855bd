// Functions that the host platform has not built: "not supported", as the thread's last error too, and nothing written.
#include "check.h"

int main(void) {
    hipArray_t level = (hipArray_t)nonsense();
    const hipMipmappedArray_const_t mipmapped = (hipMipmappedArray_const_t)nonsense();
    RETURNS(hipErrorNotSupported, hipGetMipmappedArrayLevel(&level, mipmapped, 0));
    RETURNS(hipErrorNotSupported, hipGetLastError());
    CHECK(level == (hipArray_t)nonsense());
    RETURNS(hipErrorNotSupported, hipGraphicsUnmapResources(0, NULL, NULL));
    still_usable();
    return 0;
}
