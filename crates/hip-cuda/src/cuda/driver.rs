//! The driver's functions that are in use.
//!
//! Enumerations are numbers, as the C ABI has them. Structures that HIP took over from CUDA member for member are
//! declared with HIP's type; `layout` holds both to each other.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use cudarc::driver::sys::{CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUdeviceptr};
use hip_sys::{
    hipDevice_t, hipEvent_t, hipExternalMemory_t, hipExternalMemoryBufferDesc, hipExternalMemoryHandleDesc,
    hipExternalSemaphore_t, hipExternalSemaphoreHandleDesc, hipExternalSemaphoreSignalParams,
    hipExternalSemaphoreWaitParams, hipFunction_t, hipGraph_t, hipGraphExec_t, hipGraphNode_t, hipHostFn_t,
    hipIpcEventHandle_t, hipIpcMemHandle_t, hipMemAccessDesc, hipMemAllocationProp, hipMemLocation, hipMemPool_t,
    hipMemPoolProps, hipModule_t, hipStream_t,
};

use super::functions;

/// A context, which HIP does not show.
pub(crate) type Context = *mut c_void;
/// A piece of physical memory, a number of 64 bits.
pub(crate) type Physical = c_ulonglong;
/// `CUmemAllocationProp` as words, so that its reserved bytes are ours to clear.
pub(crate) type AllocationProp = [u64; 4];
/// A stream callback; it receives stream, code, and the user's pointer.
pub(crate) type StreamCallback = unsafe extern "C" fn(hipStream_t, c_uint, *mut c_void);

functions! {
    /// The CUDA driver.
    pub(crate) struct Driver fails as hip_sys::hipError_t, code by crate::code::check, absent by crate::code::missing;

    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuGetErrorName(code: c_uint, text: *mut *const c_char);

    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGet(device: *mut hipDevice_t, ordinal: c_int);
    cuDeviceGetName(name: *mut c_char, len: c_int, device: hipDevice_t);
    cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: hipDevice_t);
    cuDeviceTotalMem_v2(bytes: *mut usize, device: hipDevice_t);
    cuDeviceGetAttribute(value: *mut c_int, attribute: c_uint, device: hipDevice_t);
    cuDeviceCanAccessPeer(can: *mut c_int, device: hipDevice_t, peer: hipDevice_t);
    cuDeviceGetP2PAttribute(value: *mut c_int, attribute: c_uint, from: hipDevice_t, to: hipDevice_t);
    cuDeviceGetDefaultMemPool(pool: *mut hipMemPool_t, device: hipDevice_t);
    cuDeviceGetMemPool(pool: *mut hipMemPool_t, device: hipDevice_t);
    cuDeviceSetMemPool(device: hipDevice_t, pool: hipMemPool_t);

    cuDevicePrimaryCtxRetain(context: *mut Context, device: hipDevice_t);
    cuDevicePrimaryCtxSetFlags_v2(device: hipDevice_t, flags: c_uint);
    cuDevicePrimaryCtxGetState(device: hipDevice_t, flags: *mut c_uint, active: *mut c_int);
    cuCtxSetCurrent(context: Context);
    cuCtxSynchronize();
    cuCtxEnablePeerAccess(peer: Context, flags: c_uint);
    cuCtxDisablePeerAccess(peer: Context);
    cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
    cuCtxGetLimit(value: *mut usize, limit: c_uint);
    cuCtxSetLimit(limit: c_uint, value: usize);
    cuCtxGetCacheConfig(config: *mut c_uint);
    cuCtxSetCacheConfig(config: c_uint);

    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemAlloc_v2(pointer: *mut CUdeviceptr, bytes: usize);
    cuMemAllocPitch_v2(pointer: *mut CUdeviceptr, pitch: *mut usize, width: usize, height: usize, element: c_uint);
    cuMemFree_v2(pointer: CUdeviceptr);
    cuMemAllocManaged(pointer: *mut CUdeviceptr, bytes: usize, flags: c_uint);
    cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemFreeHost(pointer: *mut c_void);
    cuMemHostRegister_v2(pointer: *mut c_void, bytes: usize, flags: c_uint);
    cuMemHostUnregister(pointer: *mut c_void);
    cuMemHostGetDevicePointer_v2(device: *mut CUdeviceptr, host: *mut c_void, flags: c_uint);
    cuMemHostGetFlags(flags: *mut c_uint, pointer: *mut c_void);
    cuPointerGetAttribute(value: *mut c_void, attribute: c_uint, pointer: CUdeviceptr);
    cuMemGetHandleForAddressRange(handle: *mut c_void, pointer: CUdeviceptr, bytes: usize, kind: c_uint, flags: c_ulonglong);

    cuMemAllocAsync(pointer: *mut CUdeviceptr, bytes: usize, stream: hipStream_t);
    cuMemAllocFromPoolAsync(pointer: *mut CUdeviceptr, bytes: usize, pool: hipMemPool_t, stream: hipStream_t);
    cuMemFreeAsync(pointer: CUdeviceptr, stream: hipStream_t);
    cuMemPoolCreate(pool: *mut hipMemPool_t, props: *const hipMemPoolProps);
    cuMemPoolDestroy(pool: hipMemPool_t);
    cuMemPoolTrimTo(pool: hipMemPool_t, keep: usize);
    cuMemPoolGetAttribute(pool: hipMemPool_t, attribute: c_uint, value: *mut c_void);
    cuMemPoolSetAttribute(pool: hipMemPool_t, attribute: c_uint, value: *mut c_void);
    cuMemPoolSetAccess(pool: hipMemPool_t, list: *const hipMemAccessDesc, count: usize);
    cuMemPoolGetAccess(flags: *mut c_uint, pool: hipMemPool_t, place: *mut hipMemLocation);

    cuMemAdvise(pointer: CUdeviceptr, bytes: usize, advice: c_uint, device: hipDevice_t);
    cuMemPrefetchAsync(pointer: CUdeviceptr, bytes: usize, device: hipDevice_t, stream: hipStream_t);
    cuMemRangeGetAttribute(data: *mut c_void, size: usize, attribute: c_uint, pointer: CUdeviceptr, bytes: usize);
    cuMemRangeGetAttributes(data: *mut *mut c_void, sizes: *mut usize, attributes: *mut c_uint, count: usize, pointer: CUdeviceptr, bytes: usize);
    cuStreamAttachMemAsync(stream: hipStream_t, pointer: CUdeviceptr, bytes: usize, flags: c_uint);

    cuMemGetAllocationGranularity(bytes: *mut usize, prop: *const AllocationProp, option: c_uint);
    cuMemCreate(handle: *mut Physical, bytes: usize, prop: *const AllocationProp, flags: c_ulonglong);
    cuMemRelease(handle: Physical);
    cuMemRetainAllocationHandle(handle: *mut Physical, pointer: *mut c_void);
    cuMemGetAllocationPropertiesFromHandle(prop: *mut hipMemAllocationProp, handle: Physical);
    cuMemAddressReserve(pointer: *mut CUdeviceptr, bytes: usize, alignment: usize, hint: CUdeviceptr, flags: c_ulonglong);
    cuMemAddressFree(pointer: CUdeviceptr, bytes: usize);
    cuMemMap(pointer: CUdeviceptr, bytes: usize, offset: usize, handle: Physical, flags: c_ulonglong);
    cuMemUnmap(pointer: CUdeviceptr, bytes: usize);
    cuMemSetAccess(pointer: CUdeviceptr, bytes: usize, list: *const hipMemAccessDesc, count: usize);
    cuMemGetAccess(flags: *mut c_ulonglong, place: *const hipMemLocation, pointer: CUdeviceptr);
    cuMemExportToShareableHandle(shareable: *mut c_void, handle: Physical, kind: c_uint, flags: c_ulonglong);
    cuMemImportFromShareableHandle(handle: *mut Physical, shareable: *mut c_void, kind: c_uint);

    cuImportExternalMemory(memory: *mut hipExternalMemory_t, desc: *const hipExternalMemoryHandleDesc);
    cuExternalMemoryGetMappedBuffer(pointer: *mut CUdeviceptr, memory: hipExternalMemory_t, desc: *const hipExternalMemoryBufferDesc);
    cuDestroyExternalMemory(memory: hipExternalMemory_t);
    cuImportExternalSemaphore(semaphore: *mut hipExternalSemaphore_t, desc: *const hipExternalSemaphoreHandleDesc);
    cuSignalExternalSemaphoresAsync(list: *const hipExternalSemaphore_t, params: *const hipExternalSemaphoreSignalParams, count: c_uint, stream: hipStream_t);
    cuWaitExternalSemaphoresAsync(list: *const hipExternalSemaphore_t, params: *const hipExternalSemaphoreWaitParams, count: c_uint, stream: hipStream_t);
    cuDestroyExternalSemaphore(semaphore: hipExternalSemaphore_t);

    cuIpcGetMemHandle(handle: *mut hipIpcMemHandle_t, pointer: CUdeviceptr);
    cuIpcOpenMemHandle_v2(pointer: *mut CUdeviceptr, handle: hipIpcMemHandle_t, flags: c_uint);
    cuIpcCloseMemHandle(pointer: CUdeviceptr);
    cuIpcGetEventHandle(handle: *mut hipIpcEventHandle_t, event: hipEvent_t);
    cuIpcOpenEventHandle(event: *mut hipEvent_t, handle: hipIpcEventHandle_t);

    cuMemcpy(to: CUdeviceptr, from: CUdeviceptr, bytes: usize);
    cuMemcpyAsync(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: hipStream_t);
    cuMemcpyPeer(to: CUdeviceptr, to_context: Context, from: CUdeviceptr, from_context: Context, bytes: usize);
    cuMemcpyPeerAsync(to: CUdeviceptr, to_context: Context, from: CUdeviceptr, from_context: Context, bytes: usize, stream: hipStream_t);
    cuMemcpy2DUnaligned_v2(copy: *const CUDA_MEMCPY2D);
    cuMemcpy2DAsync_v2(copy: *const CUDA_MEMCPY2D, stream: hipStream_t);
    cuMemcpy3D_v2(copy: *const CUDA_MEMCPY3D);
    cuMemcpy3DAsync_v2(copy: *const CUDA_MEMCPY3D, stream: hipStream_t);
    cuMemsetD8Async(to: CUdeviceptr, value: u8, count: usize, stream: hipStream_t);
    cuMemsetD16Async(to: CUdeviceptr, value: u16, count: usize, stream: hipStream_t);
    cuMemsetD32Async(to: CUdeviceptr, value: c_uint, count: usize, stream: hipStream_t);
    cuMemsetD2D8Async(to: CUdeviceptr, pitch: usize, value: u8, width: usize, height: usize, stream: hipStream_t);

    cuStreamCreateWithPriority(stream: *mut hipStream_t, flags: c_uint, priority: c_int);
    cuStreamDestroy_v2(stream: hipStream_t);
    cuStreamSynchronize(stream: hipStream_t);
    cuStreamQuery(stream: hipStream_t);
    cuStreamWaitEvent(stream: hipStream_t, event: hipEvent_t, flags: c_uint);
    cuStreamGetFlags(stream: hipStream_t, flags: *mut c_uint);
    cuStreamGetPriority(stream: hipStream_t, priority: *mut c_int);
    cuStreamGetCtx(stream: hipStream_t, context: *mut Context);
    cuStreamAddCallback(stream: hipStream_t, callback: Option<StreamCallback>, data: *mut c_void, flags: c_uint);
    cuLaunchHostFunc(stream: hipStream_t, function: hipHostFn_t, data: *mut c_void);
    cuStreamWaitValue32_v2(stream: hipStream_t, at: CUdeviceptr, value: u32, flags: c_uint);
    cuStreamWaitValue64_v2(stream: hipStream_t, at: CUdeviceptr, value: u64, flags: c_uint);
    cuStreamWriteValue32_v2(stream: hipStream_t, at: CUdeviceptr, value: u32, flags: c_uint);
    cuStreamWriteValue64_v2(stream: hipStream_t, at: CUdeviceptr, value: u64, flags: c_uint);

    cuEventCreate(event: *mut hipEvent_t, flags: c_uint);
    cuEventDestroy_v2(event: hipEvent_t);
    cuEventRecord(event: hipEvent_t, stream: hipStream_t);
    cuEventRecordWithFlags(event: hipEvent_t, stream: hipStream_t, flags: c_uint);
    cuEventQuery(event: hipEvent_t);
    cuEventSynchronize(event: hipEvent_t);
    cuEventElapsedTime(milliseconds: *mut f32, start: hipEvent_t, end: hipEvent_t);

    cuModuleLoad(module: *mut hipModule_t, path: *const c_char);
    cuModuleLoadData(module: *mut hipModule_t, image: *const c_void);
    cuModuleUnload(module: hipModule_t);
    cuModuleGetFunction(function: *mut hipFunction_t, module: hipModule_t, name: *const c_char);
    cuModuleGetGlobal_v2(pointer: *mut CUdeviceptr, bytes: *mut usize, module: hipModule_t, name: *const c_char);
    cuFuncLoad(function: hipFunction_t);
    cuFuncGetAttribute(value: *mut c_int, attribute: c_uint, function: hipFunction_t);
    cuFuncSetAttribute(function: hipFunction_t, attribute: c_uint, value: c_int);
    cuLaunchKernel(
        function: hipFunction_t, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: hipStream_t,
        arguments: *mut *mut c_void, extra: *mut *mut c_void,
    );
    cuLaunchCooperativeKernel(
        function: hipFunction_t, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint, stream: hipStream_t,
        arguments: *mut *mut c_void,
    );
    cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: hipFunction_t, block: c_int, shared: usize);
    cuOccupancyMaxPotentialBlockSize(grid: *mut c_int, block: *mut c_int, function: hipFunction_t, shared_of: *const c_void, shared: usize, limit: c_int);

    cuStreamBeginCapture_v2(stream: hipStream_t, mode: c_uint);
    cuStreamEndCapture(stream: hipStream_t, graph: *mut hipGraph_t);
    cuStreamIsCapturing(stream: hipStream_t, status: *mut c_uint);
    cuThreadExchangeStreamCaptureMode(mode: *mut c_uint);
    cuGraphCreate(graph: *mut hipGraph_t, flags: c_uint);
    cuGraphDestroy(graph: hipGraph_t);
    cuGraphClone(clone: *mut hipGraph_t, graph: hipGraph_t);
    cuGraphGetNodes(graph: hipGraph_t, nodes: *mut hipGraphNode_t, count: *mut usize);
    cuGraphGetRootNodes(graph: hipGraph_t, nodes: *mut hipGraphNode_t, count: *mut usize);
    cuGraphNodeGetType(node: hipGraphNode_t, kind: *mut c_uint);
    cuGraphInstantiateWithFlags(exec: *mut hipGraphExec_t, graph: hipGraph_t, flags: c_ulonglong);
    cuGraphLaunch(exec: hipGraphExec_t, stream: hipStream_t);
    cuGraphUpload(exec: hipGraphExec_t, stream: hipStream_t);
    cuGraphExecDestroy(exec: hipGraphExec_t);
}
