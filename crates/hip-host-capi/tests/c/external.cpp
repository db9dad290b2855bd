// Memory from descriptors: whose the descriptor is, both releases, and what is refused.
#include "check.h"

#include <sys/mman.h>
#include <unistd.h>

static hipExternalMemoryHandleDesc described(int fd, size_t bytes) {
    hipExternalMemoryHandleDesc desc;
    memset(&desc, 0, sizeof desc);
    desc.type = hipExternalMemoryHandleTypeOpaqueFd;
    desc.handle.fd = fd;
    desc.size = bytes;
    return desc;
}

int main(void) {
    enum { BYTES = 3 * 4096 };
    const int fd = memfd_create("memory", 0);
    CHECK(fd >= 0 && ftruncate(fd, BYTES) == 0);
    char* here = (char*)mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(here != MAP_FAILED);
    for (int i = 0; i < BYTES; ++i) here[i] = (char)(i % 251);

    hipExternalMemory_t memory;
    hipExternalMemoryHandleDesc desc = described(fd, BYTES);
    OK(hipImportExternalMemory(&memory, &desc));
    // The descriptor is still the caller's.
    CHECK(close(fd) == 0);
    RETURNS(hipErrorOutOfMemory, hipImportExternalMemory(&memory, &desc));
    INVALID(hipImportExternalMemory(&memory, NULL));
    INVALID(hipImportExternalMemory(NULL, &desc));
    desc.size = 0;
    INVALID(hipImportExternalMemory(&memory, &desc));
    desc = described(fd, BYTES);
    desc.type = (hipExternalMemoryHandleType)8;
    INVALID(hipImportExternalMemory(&memory, &desc));

    char *whole = NULL, *part = NULL, byte = 0;
    hipExternalMemoryBufferDesc range;
    memset(&range, 0, sizeof range);
    range.size = BYTES;
    OK(hipExternalMemoryGetMappedBuffer((void**)&whole, memory, &range));
    range.offset = 5000;
    range.size = 100;
    OK(hipExternalMemoryGetMappedBuffer((void**)&part, memory, &range));
    range.size = BYTES;
    INVALID(hipExternalMemoryGetMappedBuffer((void**)&part, memory, &range));
    range.offset = (unsigned long long)-1;
    INVALID(hipExternalMemoryGetMappedBuffer((void**)&part, memory, &range));

    // The same bytes, by both mappings and from outside.
    OK(hipMemcpy(&byte, part, 1, hipMemcpyDeviceToHost));
    CHECK(byte == (char)(5000 % 251));
    OK(hipMemset(whole + 5001, 0x77, 1));
    OK(hipDeviceSynchronize());
    CHECK(here[5001] == 0x77);
    OK(hipMemcpy(&byte, part + 1, 1, hipMemcpyDeviceToHost));
    CHECK(byte == 0x77);
    INVALID(hipMemcpy(&byte, part + 100, 1, hipMemcpyDeviceToHost));
    hipPointerAttribute_t a;
    OK(hipPointerGetAttributes(&a, part));
    CHECK(a.type == hipMemoryTypeDevice);

    // Two releases: the pointers and the memory.
    OK(hipDestroyExternalMemory(memory));
    RETURNS(hipErrorInvalidHandle, hipDestroyExternalMemory(memory));
    OK(hipMemcpy(&byte, part, 1, hipMemcpyDeviceToHost));
    OK(hipFree(part));
    INVALID(hipFree(part));
    OK(hipFree(whole));
    INVALID(hipDestroyExternalMemory(NULL));
    CHECK(munmap(here, BYTES) == 0);

    hipExternalSemaphore_t semaphore;
    hipExternalSemaphoreHandleDesc signal;
    memset(&signal, 0, sizeof signal);
    signal.type = hipExternalSemaphoreHandleTypeOpaqueFd;
    INVALID(hipImportExternalSemaphore(&semaphore, &signal));
    signal.handle.fd = 1;
    RETURNS(hipErrorNotSupported, hipImportExternalSemaphore(&semaphore, &signal));
    RETURNS(hipErrorNotSupported, hipDestroyExternalSemaphore(NULL));
    still_usable();
    return 0;
}
