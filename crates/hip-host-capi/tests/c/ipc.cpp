// Memory and events of another process. The child is made before either process uses HIP.
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

struct Message {
    hipIpcMemHandle_t memory, freed;
    hipIpcEventHandle_t event;
};

static void put(int fd, const void* data, size_t bytes) { CHECK(write(fd, data, bytes) == (ssize_t)bytes); }
static void get(int fd, void* data, size_t bytes) { CHECK(read(fd, data, bytes) == (ssize_t)bytes); }

static int child(int in, int out) {
    Message message;
    get(in, &message, sizeof message);
    unsigned* p = NULL;
    INVALID(hipIpcOpenMemHandle((void**)&p, message.memory, 0));
    INVALID(hipIpcOpenMemHandle(NULL, message.memory, hipIpcMemLazyEnablePeerAccess));
    OK(hipIpcOpenMemHandle((void**)&p, message.memory, hipIpcMemLazyEnablePeerAccess));
    hipEvent_t event;
    OK(hipIpcOpenEventHandle(&event, message.event));

    // The other process has recorded the event behind its writing of the numbers.
    hipStream_t stream;
    OK(hipStreamCreate(&stream));
    OK(hipStreamWaitEvent(stream, event, 0));
    OK(hipStreamSynchronize(stream));
    OK(hipEventQuery(event));
    CHECK(is_counted(p, 1000, 50));
    const unsigned answer = 4711;
    OK(hipMemcpy(p + 999, &answer, sizeof answer, hipMemcpyHostToDevice));
    INVALID(hipMemset(p + 1000, 0, 1));
    INVALID(hipFree(p));
    put(out, "d", 1);

    char go;
    get(in, &go, 1);
    OK(hipIpcCloseMemHandle(p));
    INVALID(hipIpcCloseMemHandle(p));
    INVALID(hipIpcCloseMemHandle(NULL));
    // A handle whose memory was freed opens nothing.
    RETURNS(hipErrorInvalidDevicePointer,
            hipIpcOpenMemHandle((void**)&p, message.freed, hipIpcMemLazyEnablePeerAccess));
    memset(&message, 7, sizeof message);
    INVALID(hipIpcOpenMemHandle((void**)&p, message.memory, hipIpcMemLazyEnablePeerAccess));
    INVALID(hipIpcOpenEventHandle(&event, message.event));
    still_usable();
    return 0;
}

int main(void) {
    int to_child[2], from_child[2];
    CHECK(pipe(to_child) == 0 && pipe(from_child) == 0);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) return child(to_child[0], from_child[1]);

    Message message;
    unsigned* p = NULL;
    void *freed = NULL, *pinned = NULL;
    char ordinary = 0;
    OK(hipMalloc((void**)&p, 1000 * sizeof(unsigned)));
    OK(hipIpcGetMemHandle(&message.memory, p));
    INVALID(hipIpcGetMemHandle(&message.memory, &ordinary));
    INVALID(hipIpcGetMemHandle(NULL, p));
    OK(hipHostMalloc(&pinned, 64, 0));
    INVALID(hipIpcGetMemHandle(&message.freed, pinned));
    OK(hipHostFree(pinned));
    OK(hipMalloc(&freed, 64));
    OK(hipIpcGetMemHandle(&message.freed, freed));
    void* same = NULL;
    RETURNS(hipErrorInvalidContext,
            hipIpcOpenMemHandle(&same, message.memory, hipIpcMemLazyEnablePeerAccess));

    hipEvent_t event, unshared;
    INVALID(hipEventCreateWithFlags(&event, hipEventInterprocess));
    OK(hipEventCreateWithFlags(&event, hipEventInterprocess | hipEventDisableTiming));
    OK(hipEventCreate(&unshared));
    OK(hipIpcGetEventHandle(&message.event, event));
    RETURNS(hipErrorInvalidContext, hipIpcOpenEventHandle(&unshared, message.event));
    INVALID(hipIpcGetEventHandle(&message.event, NULL));
    OK(hipEventDestroy(unshared));

    unsigned host[1000];
    for (int i = 0; i < 1000; ++i) host[i] = 50 + i;
    OK(hipMemcpyAsync(p, host, sizeof host, hipMemcpyHostToDevice, NULL));
    OK(hipEventRecord(event, NULL));
    put(to_child[1], &message, sizeof message);
    char done;
    get(from_child[0], &done, 1);
    OK(hipMemcpy(host, p, sizeof host, hipMemcpyDeviceToHost));
    CHECK(host[998] == 50 + 998 && host[999] == 4711);
    OK(hipFree(freed));
    put(to_child[1], "g", 1);
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(hipEventDestroy(event));
    OK(hipFree(p));
    still_usable();
    return 0;
}
