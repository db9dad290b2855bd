// Addresses and memory apart: reserve, create, map, give access, share as a descriptor, undo.
#include "check.h"

#include <unistd.h>

static hipMemAllocationProp shareable(void) {
    hipMemAllocationProp prop;
    memset(&prop, 0, sizeof prop);
    prop.type = hipMemAllocationTypePinned;
    prop.location.type = hipMemLocationTypeDevice;
    prop.requestedHandleType = hipMemHandleTypePosixFileDescriptor;
    return prop;
}

static void two_places_of_the_same_memory(void) {
    const hipMemAllocationProp prop = shareable();
    size_t granule = 0;
    OK(hipMemGetAllocationGranularity(&granule, &prop, hipMemAllocationGranularityMinimum));
    CHECK(granule > 0);
    INVALID(hipMemGetAllocationGranularity(NULL, &prop, hipMemAllocationGranularityMinimum));
    char* range = NULL;
    OK(hipMemAddressReserve((void**)&range, 2 * granule, 0, NULL, 0));
    INVALID(hipMemAddressReserve((void**)&range, granule + 1, 0, NULL, 0));
    INVALID(hipMemAddressReserve(NULL, granule, 0, NULL, 0));
    // Reserved addresses are no memory.
    INVALID(hipMemset(range, 0, 1));

    hipMemGenericAllocationHandle_t memory;
    OK(hipMemCreate(&memory, granule, &prop, 0));
    INVALID(hipMemCreate(&memory, granule - 1, &prop, 0));
    INVALID(hipMemCreate(&memory, granule, NULL, 0));
    OK(hipMemMap(range, granule, 0, memory, 0));
    OK(hipMemMap(range + granule, granule, 0, memory, 0));
    UNCHECKED_BY_ROCM(INVALID(hipMemMap(range, granule, 0, memory, 0)));
    INVALID(hipMemMap(range, granule, 4096, memory, 0));
    // Without access it cannot be used.
    INVALID(hipMemset(range, 0, 1));

    hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
    OK(hipMemSetAccess(range, 2 * granule, &access, 1));
    INVALID(hipMemSetAccess(range, 3 * granule, &access, 1));
    unsigned long long flags = 0;
    OK(hipMemGetAccess(&flags, &access.location, range));
    CHECK(flags == hipMemAccessFlagsProtReadWrite);
    OK(hipMemset(range, 0x5a, granule));
    char byte = 0;
    OK(hipMemcpy(&byte, range + 2 * granule - 1, 1, hipMemcpyDeviceToHost));
    CHECK(byte == 0x5a);
    INVALID(hipMemcpy(&byte, range + 2 * granule, 1, hipMemcpyDeviceToHost));
    access.flags = hipMemAccessFlagsProtRead;
    OK(hipMemSetAccess(range, granule, &access, 1));
    INVALID(hipMemset(range, 0, 1));
    OK(hipMemcpy(&byte, range, 1, hipMemcpyDeviceToHost));
    UNCHECKED_BY_ROCM(INVALID(hipFree(range)));

    hipMemGenericAllocationHandle_t again;
    OK(hipMemRetainAllocationHandle(&again, range));
    CHECK(again == memory);
    hipMemAllocationProp seen;
    OK(hipMemGetAllocationPropertiesFromHandle(&seen, memory));
    CHECK(seen.location.id == 0 && seen.type == hipMemAllocationTypePinned);
    OK(hipMemRelease(memory));
    OK(hipMemRelease(memory));
    INVALID(hipMemRelease(memory));
    // Mapped, it lives on.
    OK(hipMemcpy(&byte, range, 1, hipMemcpyDeviceToHost));
    INVALID(hipMemAddressFree(range, 2 * granule));
    OK(hipMemUnmap(range, granule));
    INVALID(hipMemUnmap(range, granule));
    INVALID(hipMemcpy(&byte, range, 1, hipMemcpyDeviceToHost));
    OK(hipMemUnmap(range + granule, granule));
    OK(hipMemAddressFree(range, 2 * granule));
    INVALID(hipMemAddressFree(range, 2 * granule));
}

static void sharing(void) {
    hipMemAllocationProp prop = shareable();
    size_t granule = 0;
    OK(hipMemGetAllocationGranularity(&granule, &prop, hipMemAllocationGranularityMinimum));
    hipMemGenericAllocationHandle_t memory, imported, own;
    OK(hipMemCreate(&memory, granule, &prop, 0));
    int fd = -1;
    OK(hipMemExportToShareableHandle(&fd, memory, hipMemHandleTypePosixFileDescriptor, 0));
    CHECK(fd >= 0);
    OK(hipMemImportFromShareableHandle(&imported, &fd, hipMemHandleTypePosixFileDescriptor));
    CHECK(close(fd) == 0);
    INVALID(hipMemImportFromShareableHandle(&imported, &fd, hipMemHandleTypePosixFileDescriptor));
    INVALID(hipMemImportFromShareableHandle(&imported, NULL, hipMemHandleTypePosixFileDescriptor));
    // What was not made to be shared is not.
    prop.requestedHandleType = hipMemHandleTypeNone;
    OK(hipMemCreate(&own, granule, &prop, 0));
    INVALID(hipMemExportToShareableHandle(&fd, own, hipMemHandleTypePosixFileDescriptor, 0));
    OK(hipMemRelease(own));

    char *first = NULL, *second = NULL, byte = 0;
    const hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
    OK(hipMemAddressReserve((void**)&first, granule, 0, NULL, 0));
    OK(hipMemAddressReserve((void**)&second, granule, 0, NULL, 0));
    OK(hipMemMap(first, granule, 0, memory, 0));
    OK(hipMemMap(second, granule, 0, imported, 0));
    OK(hipMemSetAccess(first, granule, &access, 1));
    OK(hipMemSetAccess(second, granule, &access, 1));
    OK(hipMemset(first + 100, 0x33, 1));
    OK(hipMemcpy(&byte, second + 100, 1, hipMemcpyDeviceToHost));
    CHECK(byte == 0x33);
    OK(hipMemUnmap(first, granule));
    OK(hipMemUnmap(second, granule));
    OK(hipMemAddressFree(first, granule));
    OK(hipMemAddressFree(second, granule));
    OK(hipMemRelease(memory));
    OK(hipMemRelease(imported));
}

int main(void) {
    two_places_of_the_same_memory();
    sharing();
    still_usable();
    return 0;
}
