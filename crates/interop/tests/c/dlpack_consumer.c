/* A consumer of tensors, with the structures as the specification describes them. */

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef struct { uint32_t major, minor; } Version;
typedef struct { int32_t type, id; } Device;
typedef struct { uint8_t code, bits; uint16_t lanes; } DataType;
typedef struct {
    void *data;
    Device device;
    int32_t ndim;
    DataType dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} Tensor;
typedef struct Managed {
    Tensor tensor;
    void *context;
    void (*deleter)(struct Managed *);
} Managed;
typedef struct Versioned {
    Version version;
    void *context;
    void (*deleter)(struct Versioned *);
    uint64_t flags;
    Tensor tensor;
} Versioned;

/* Every offset and size, in the order of the Rust side's list. */
size_t layout(size_t which)
{
    const size_t all[] = {
        offsetof(Tensor, data), offsetof(Tensor, device), offsetof(Tensor, ndim), offsetof(Tensor, dtype),
        offsetof(Tensor, shape), offsetof(Tensor, strides), offsetof(Tensor, byte_offset), sizeof(Tensor),
        offsetof(Managed, tensor), offsetof(Managed, context), offsetof(Managed, deleter), sizeof(Managed),
        offsetof(Versioned, version), offsetof(Versioned, context), offsetof(Versioned, deleter),
        offsetof(Versioned, flags), offsetof(Versioned, tensor), sizeof(Versioned),
        sizeof(Version), sizeof(Device), sizeof(DataType),
    };
    return which < sizeof all / sizeof *all ? all[which] : (size_t)-1;
}

/* Version, flags, device, type, dimensions, shape and strides of two dimensions, offset. */
int describe(const Versioned *managed, int64_t *out)
{
    const Tensor *tensor = &managed->tensor;
    int64_t found[] = {
        managed->version.major, (int64_t)managed->flags, tensor->device.type, tensor->device.id, tensor->dtype.code,
        tensor->dtype.bits, tensor->dtype.lanes, tensor->ndim, tensor->shape[0], tensor->shape[1], tensor->strides[0],
        tensor->strides[1], (int64_t)tensor->byte_offset,
    };
    for (size_t i = 0; i < sizeof found / sizeof *found; ++i)
        out[i] = found[i];
    return tensor->data != NULL;
}

static void *finish(void *managed)
{
    ((Versioned *)managed)->deleter(managed);
    return NULL;
}

/* The end of the loan, on a thread that Rust knows nothing of. */
int finish_elsewhere(Versioned *managed)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, finish, managed) != 0)
        return -1;
    return pthread_join(thread, NULL);
}
