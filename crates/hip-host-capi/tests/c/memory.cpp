// Memory of every kind: allocation, copies, fills, what a pointer is, and what is refused.
#include "check.h"

static void device_memory(void) {
    void* p = nonsense();
    OK(hipMalloc(&p, 0));
    CHECK(p == NULL);
    INVALID(hipMalloc(NULL, 16));
    RETURNS(hipErrorOutOfMemory, hipMalloc(&p, (size_t)1 << 60));
    OK(hipMalloc(&p, 4096));
    CHECK((uintptr_t)p % 256 == 0);
    OK(hipFree(p));
    INVALID(hipFree(p));
    INVALID(hipFree(nonsense()));
    OK(hipFree(NULL));
    size_t before = 0, during = 0, total = 0;
    OK(hipMemGetInfo(&before, &total));
    OK(hipMalloc(&p, 1 << 20));
    OK(hipMemGetInfo(&during, &total));
    // ROCm counts whole pages, and keeps some that it has.
    CHECK(before - during >= 1 << 20 || during == before);
    OK(hipFree(p));
}

static void bounds(void) {
    char host[64] = {0};
    char* p = NULL;
    OK(hipMalloc((void**)&p, 64));
    OK(hipMemcpy(p, host, 64, hipMemcpyHostToDevice));
    INVALID(hipMemcpy(p + 1, host, 64, hipMemcpyHostToDevice));
    INVALID(hipMemcpy(p - 1, host, 8, hipMemcpyHostToDevice));
    INVALID(hipMemcpy(host, p, (size_t)-1, hipMemcpyDeviceToHost));
    INVALID(hipMemcpy(NULL, p, 8, hipMemcpyDeviceToHost));
    INVALID(hipMemcpy(host, host, 8, hipMemcpyHostToDevice));
    UNCHECKED_BY_ROCM(INVALID(hipMemcpy(p, p, 8, hipMemcpyHostToDevice)));
    RETURNS(hipErrorInvalidMemcpyDirection, hipMemcpy(p, host, 8, (hipMemcpyKind)77));
    INVALID(hipMemset(p, 0, 65));
    INVALID(hipMemset(host, 0, 8));
    UNCHECKED_BY_ROCM(INVALID(hipMemsetD32(p + 1, 0, 1)));
    OK(hipFree(p));
    INVALID(hipMemcpy(p, host, 64, hipMemcpyHostToDevice));
    INVALID(hipMemset(p, 0, 1));
}

static void fills(void) {
    unsigned char* p = NULL;
    unsigned char host[64];
    OK(hipMalloc((void**)&p, 64));
    OK(hipMemset(p, 0x11, 64));
    OK(hipMemsetD8(p + 1, 0x22, 1));
    OK(hipMemsetD16(p + 2, 0x3344, 1));
    OK(hipMemsetD32(p + 4, 0x55667788, 2));
    OK(hipMemsetAsync(p + 60, 0x99, 4, NULL));
    OK(hipMemcpy(host, p, 64, hipMemcpyDeviceToHost));
    const unsigned char start[12] = {0x11, 0x22, 0x44, 0x33, 0x88, 0x77, 0x66, 0x55,
                                     0x88, 0x77, 0x66, 0x55};
    CHECK(memcmp(host, start, 12) == 0 && host[12] == 0x11 && host[59] == 0x11 && host[60] == 0x99);
    OK(hipFree(p));
}

static void host_memory(void) {
    unsigned* pinned = NULL;
    void* device = NULL;
    unsigned flags = 0;
    OK(hipHostMalloc((void**)&pinned, 4096, hipHostMallocMapped | hipHostMallocPortable));
    for (int i = 0; i < 1024; ++i) pinned[i] = i;
    OK(hipHostGetDevicePointer(&device, pinned, 0));
    CHECK(device == pinned);
    INVALID(hipHostGetDevicePointer(&device, pinned, 1));
    OK(hipHostGetFlags(&flags, pinned));
    CHECK(flags == (hipHostMallocMapped | hipHostMallocPortable));
    INVALID(hipHostMalloc((void**)&device, 16, hipHostMallocCoherent | hipHostMallocNonCoherent));
    UNCHECKED_BY_ROCM(INVALID(hipFree(pinned)));
    OK(hipHostFree(pinned));
    INVALID(hipHostFree(pinned));

    void* own = aligned_alloc(4096, 8192);
    memset(own, 0, 8192);
    OK(hipHostRegister(own, 8192, hipHostRegisterDefault));
    UNCHECKED_BY_ROCM(RETURNS(hipErrorHostMemoryAlreadyRegistered, hipHostRegister(own, 8192, 0)));
    OK(hipMemset(own, 5, 8192));
    CHECK(((unsigned char*)own)[8191] == 5);
    OK(hipHostUnregister(own));
    RETURNS(hipErrorHostMemoryNotRegistered, hipHostUnregister(own));
    INVALID(hipHostRegister(NULL, 16, 0));
    INVALID(hipHostRegister(own, 0, 0));
    free(own);
}

static void attributes(void) {
    hipPointerAttribute_t a;
    char* p = NULL;
    char ordinary[16];
    OK(hipMalloc((void**)&p, 1000));
    OK(hipPointerGetAttributes(&a, p + 10));
    CHECK(a.type == hipMemoryTypeDevice && a.devicePointer == p + 10 && a.device == 0);
    OK(hipPointerGetAttributes(&a, ordinary));
    CHECK(a.type == hipMemoryTypeUnregistered);
    UNCHECKED_BY_ROCM(INVALID(hipPointerGetAttributes(&a, NULL)));
    INVALID(hipPointerGetAttributes(NULL, p));
    hipDeviceptr_t base = NULL;
    size_t bytes = 0;
    OK(hipMemGetAddressRange(&base, &bytes, p + 999));
    CHECK(base == p && bytes == 1000);
    RETURNS(hipErrorNotFound, hipMemGetAddressRange(&base, &bytes, ordinary));
    OK(hipFree(p));
    OK(hipMallocManaged((void**)&p, 100, hipMemAttachGlobal));
    p[99] = 3;
    OK(hipPointerGetAttributes(&a, p));
    CHECK(a.type == hipMemoryTypeManaged && a.isManaged);
    INVALID(hipMallocManaged((void**)&a, 0, hipMemAttachGlobal));
    INVALID(hipMallocManaged((void**)&a, 8, 77));
    OK(hipFree(p));
}

int main(void) {
    device_memory();
    bounds();
    fills();
    host_memory();
    attributes();
    still_usable();
    return 0;
}
