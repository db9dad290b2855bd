// HSA: its agents, what it knows of an address, and memory that leaves through a descriptor and comes back by HIP.
#include "check.h"

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <unistd.h>

#define HSA(code, call)                                                                         \
    do {                                                                                        \
        const hsa_status_t returned_ = (call);                                                  \
        if (returned_ != (code)) {                                                              \
            fprintf(stderr, "%s:%d: %s returned %#x\n", __FILE__, __LINE__, #call, returned_);  \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

struct agents {
    hsa_agent_t gpu;
    int gpus, cpus;
};

static hsa_status_t note(hsa_agent_t agent, void* data) {
    struct agents* found = (struct agents*)data;
    hsa_device_type_t type;
    HSA(HSA_STATUS_SUCCESS, hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
    if (type == HSA_DEVICE_TYPE_GPU) {
        found->gpu = agent;
        ++found->gpus;
    } else {
        ++found->cpus;
    }
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t stop(hsa_agent_t, void* data) {
    ++*(int*)data;
    return HSA_STATUS_INFO_BREAK;
}

static struct agents agents(void) {
    struct agents found = {{0}, 0, 0};
    HSA(HSA_STATUS_SUCCESS, hsa_iterate_agents(note, &found));
    CHECK(found.gpus == 2 && found.cpus == 1);
    int visits = 0;
    HSA(HSA_STATUS_INFO_BREAK, hsa_iterate_agents(stop, &visits));
    CHECK(visits == 1);
    HSA(HSA_STATUS_ERROR_INVALID_ARGUMENT, hsa_iterate_agents(NULL, NULL));

    uint32_t lanes = 0;
    char name[64];
    HSA(HSA_STATUS_SUCCESS, hsa_agent_get_info(found.gpu, HSA_AGENT_INFO_WAVEFRONT_SIZE, &lanes));
    HSA(HSA_STATUS_SUCCESS, hsa_agent_get_info(found.gpu, HSA_AGENT_INFO_NAME, name));
    hipDeviceProp_t properties;
    OK(hipGetDeviceProperties(&properties, 0));
    CHECK(lanes == (uint32_t)properties.warpSize);
    CHECK(strcmp(properties.gcnArchName, "gfx908:sramecc+:xnack-") == 0 && strcmp(name, "gfx908") == 0);
    const hsa_agent_t none = {(uint64_t)(uintptr_t)nonsense()};
    UNCHECKED_BY_ROCM(HSA(HSA_STATUS_ERROR_INVALID_AGENT, hsa_agent_get_info(none, HSA_AGENT_INFO_NAME, name)));
    HSA(HSA_STATUS_ERROR_INVALID_ARGUMENT, hsa_agent_get_info(found.gpu, (hsa_agent_info_t)0x7fff, name));
    return found;
}

static void addresses(const struct agents* found) {
    unsigned* device = counted(1000, 3);
    hsa_amd_pointer_info_t info;
    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    HSA(HSA_STATUS_SUCCESS, hsa_amd_pointer_info(device + 5, &info, NULL, NULL, NULL));
    CHECK(info.type == HSA_EXT_POINTER_TYPE_HSA && info.agentBaseAddress == device);
    CHECK(info.sizeInBytes == 1000 * sizeof(unsigned));
    uint32_t count = 0;
    hsa_agent_t* reach = NULL;
    HSA(HSA_STATUS_SUCCESS, hsa_amd_pointer_info(device, &info, malloc, &count, &reach));
    CHECK(count >= 1 && reach != NULL);
    free(reach);
    HSA(HSA_STATUS_SUCCESS, hsa_amd_pointer_info(&info, &info, NULL, NULL, NULL));
    CHECK(info.type == HSA_EXT_POINTER_TYPE_UNKNOWN);
    HSA(HSA_STATUS_ERROR_INVALID_ARGUMENT, hsa_amd_pointer_info(device, NULL, NULL, NULL, NULL));
    HSA(HSA_STATUS_SUCCESS, hsa_amd_agents_allow_access(1, &found->gpu, NULL, device));

    int fd = -1;
    uint64_t offset = 0;
    HSA(HSA_STATUS_SUCCESS, hsa_amd_portable_export_dmabuf(device, 4000, &fd, &offset));
    CHECK(fd >= 0);
    // ROCm exports whole pages, from the start of the allocation. The software device begins elsewhere, to show who forgets the offset.
    UNCHECKED_BY_ROCM(CHECK(offset != 0));
    hipExternalMemoryHandleDesc desc;
    memset(&desc, 0, sizeof desc);
    desc.type = hipExternalMemoryHandleTypeOpaqueFd;
    desc.handle.fd = fd;
    desc.size = offset + 4000;
    hipExternalMemory_t memory;
    OK(hipImportExternalMemory(&memory, &desc));
    hipExternalMemoryBufferDesc range;
    memset(&range, 0, sizeof range);
    range.size = offset + 4000;
    char* mapped = NULL;
    OK(hipExternalMemoryGetMappedBuffer((void**)&mapped, memory, &range));
    unsigned* same = (unsigned*)(mapped + offset);
    CHECK(same != device && is_counted(same, 1000, 3));
    OK(hipMemset(same, 0, sizeof(unsigned)));
    unsigned first = 1;
    OK(hipMemcpy(&first, device, sizeof first, hipMemcpyDeviceToHost));
    CHECK(first == 0);
    OK(hipFree(mapped));
    OK(hipDestroyExternalMemory(memory));
    HSA(HSA_STATUS_SUCCESS, hsa_amd_portable_close_dmabuf(fd));

    char* pinned = NULL;
    OK(hipHostMalloc((void**)&pinned, 4096, 0));
    HSA(HSA_STATUS_ERROR_INVALID_AGENT, hsa_amd_portable_export_dmabuf(pinned, 4096, &fd, &offset));
    UNCHECKED_BY_ROCM(HSA(HSA_STATUS_ERROR_INVALID_ALLOCATION,
                          hsa_amd_portable_export_dmabuf(device, 4001, &fd, &offset)));
    OK(hipHostFree(pinned));
    OK(hipFree(device));
}

int main(void) {
    struct agents found = {{0}, 0, 0};
    HSA(HSA_STATUS_ERROR_NOT_INITIALIZED, hsa_iterate_agents(note, &found));
    HSA(HSA_STATUS_SUCCESS, hsa_init());
    const char* text = NULL;
    HSA(HSA_STATUS_SUCCESS, hsa_status_string(HSA_STATUS_ERROR_INVALID_AGENT, &text));
    CHECK(text != NULL && strlen(text) > 0);
    found = agents();
    addresses(&found);
    HSA(HSA_STATUS_SUCCESS, hsa_shut_down());
    // HIP has started HSA too, and would lose it.
    UNCHECKED_BY_ROCM(HSA(HSA_STATUS_ERROR_NOT_INITIALIZED, hsa_shut_down()));
    still_usable();
    return 0;
}
