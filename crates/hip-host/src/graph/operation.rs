//! What a node of a graph does.

use std::ffi::c_void;
use std::sync::Arc;

use hip_sys::{
    hipError_t, hipEvent_t, hipExtent, hipFunction_t, hipGraphNodeType, hipHostNodeParams, hipKernelNodeParams,
    hipMemcpy3DParms, hipMemcpyKind, hipMemsetParams, hipPitchedPtr,
};

use super::capture;
use super::memory::{self, GraphMemory};
use super::nodes::Graph;
use super::plan::Plan;
use super::routine::Routine;
use crate::error::Result;
use crate::event;
use crate::kernel::Kernel;
use crate::memory::copy::{Layout, Transfer, from_3d_params};
use crate::memory::set::{Filling, Value};
use crate::stream::{HostCall, Mark, Stream, UserData};
use crate::work::Task;

/// What a node does. Memory, functions and events are looked up when it is done: a graph keeps none of them alive, and
/// what is gone by then is an error.
#[derive(Clone)]
pub(crate) enum Operation {
    Empty,
    Kernel(Kernel),
    /// A call of rocBLAS, rocSOLVER or RCCL, which on ROCm is one kernel or several, or an OpenCL kernel.
    Routine(Routine),
    Copy(Transfer),
    Set(Filling),
    Host(HostCall),
    Child(Arc<Graph>),
    /// A graph as it was when it was made ready.
    Frozen(Arc<Plan>),
    /// An event's handle.
    Record(usize),
    /// An event's handle.
    Wait(usize),
    Allocate(Arc<GraphMemory>),
    /// The first address.
    Release(usize),
}

const INVALID: hipError_t = hipError_t::hipErrorInvalidValue;

impl Operation {
    pub(crate) fn kind(&self) -> hipGraphNodeType {
        match self {
            Self::Empty => hipGraphNodeType::hipGraphNodeTypeEmpty,
            Self::Kernel(_) | Self::Routine(_) => hipGraphNodeType::hipGraphNodeTypeKernel,
            Self::Copy(_) => hipGraphNodeType::hipGraphNodeTypeMemcpy,
            Self::Set(_) => hipGraphNodeType::hipGraphNodeTypeMemset,
            Self::Host(_) => hipGraphNodeType::hipGraphNodeTypeHost,
            Self::Child(_) | Self::Frozen(_) => hipGraphNodeType::hipGraphNodeTypeGraph,
            Self::Record(_) => hipGraphNodeType::hipGraphNodeTypeEventRecord,
            Self::Wait(_) => hipGraphNodeType::hipGraphNodeTypeWaitEvent,
            Self::Allocate(_) => hipGraphNodeType::hipGraphNodeTypeMemAlloc,
            Self::Release(_) => hipGraphNodeType::hipGraphNodeTypeMemFree,
        }
    }

    /// Whether it could be done now.
    pub(crate) fn check(&self, call: &'static str) -> Result {
        match self {
            Self::Kernel(kernel) => kernel.task().map(|_| ()),
            Self::Routine(routine) => routine.hold().map(|_| ()),
            Self::Copy(transfer) => transfer.prepare(call).map(|_| ()),
            Self::Set(filling) => filling.prepare(call).map(|_| ()),
            Self::Record(event) | Self::Wait(event) => event::point(*event as hipEvent_t).map(|_| ()),
            Self::Allocate(memory) => memory.check(),
            Self::Release(base) => memory::check_release(*base),
            Self::Frozen(plan) => plan.operations().try_for_each(|operation| operation.check(call)),
            Self::Empty | Self::Host(_) | Self::Child(_) => Ok(()),
        }
    }

    /// Whether it allocates or releases memory.
    pub(super) fn is_of_memory(&self) -> bool {
        matches!(self, Self::Allocate(_) | Self::Release(_))
    }

    /// What it allocates, if that is what it does.
    pub(super) fn allocates(&self) -> Option<&GraphMemory> {
        match self {
            Self::Allocate(memory) => Some(memory),
            _ => None,
        }
    }

    /// The same, independent of later changes to a child graph.
    pub(super) fn frozen(&self) -> Result<Self> {
        let Self::Child(graph) = self else {
            return Ok(self.clone());
        };
        let steps = graph.sorted()?.into_iter().map(|(node, after)| {
            let operation = node.operation().frozen()?;
            Ok((operation, after))
        });
        let steps = steps.collect::<Result<Vec<_>>>()?;
        Ok(Self::Frozen(Arc::new(Plan::new(steps))))
    }

    /// Queues it behind everything in `stream` and behind `after`.
    pub(crate) fn submit(&self, call: &'static str, stream: &Arc<Stream>, after: Vec<Mark>) -> Result<Mark> {
        let task = match self {
            Self::Kernel(kernel) => Some(kernel.task()?),
            Self::Routine(routine) => return stream.submit(call, after, routine.work()?),
            Self::Copy(transfer) => transfer.prepare(call)?.map(|prepared| prepared.task),
            Self::Set(filling) => filling.prepare(call)?.map(|(task, _)| task),
            Self::Host(host) => {
                let host = *host;
                let work = Box::new(move || {
                    host.run();
                    Ok(())
                });
                return stream.submit_waiting(call, after, work);
            }
            Self::Record(event) => {
                return event::record_in(call, *event as hipEvent_t, stream, after);
            }
            Self::Wait(event) => match event::point(*event as hipEvent_t)? {
                Some(point) => return point.hold(call, stream, after),
                None => None,
            },
            Self::Child(_) => return self.frozen()?.submit(call, stream, after),
            Self::Frozen(plan) => return plan.submit(call, stream, after),
            Self::Allocate(memory) => Some(memory.allocate()?),
            Self::Release(base) => Some(memory::release(*base)?),
            Self::Empty => None,
        };
        let work = Box::new(move || task.map_or(Ok(()), |task| task()));
        stream.submit(call, after, work)
    }

    /// # Safety
    /// `params` is null or a description as HIP requires.
    pub(crate) unsafe fn kernel(params: *const hipKernelNodeParams) -> Result<Self> {
        if params.is_null() {
            return Err(INVALID);
        }
        // SAFETY: not null, so readable by this function's contract.
        let p = unsafe { params.read_unaligned() };
        let sizes = |dim: hip_sys::dim3| [dim.x, dim.y, dim.z];
        // A kernel of a module stands where a host function's address would.
        let function = p.func as hipFunction_t;
        let (grid, block) = (sizes(p.gridDim), sizes(p.blockDim));
        // SAFETY: this function's contract.
        let kernel = unsafe { Kernel::read(function, (grid, block), p.sharedMemBytes, p.kernelParams, p.extra) };
        match kernel {
            Err(hipError_t::hipErrorInvalidHandle | hipError_t::hipErrorInvalidImage) => {
                Err(hipError_t::hipErrorInvalidDeviceFunction)
            }
            kernel => Ok(Self::Kernel(kernel?)),
        }
    }

    /// A copy of one row, which is not empty.
    pub(crate) fn row(to: *mut c_void, from: *const c_void, bytes: usize, kind: hipMemcpyKind) -> Result<Self> {
        if bytes == 0 {
            return Err(INVALID);
        }
        let transfer = Transfer::row(to as usize, from as usize, bytes, kind);
        Ok(Self::Copy(transfer))
    }

    /// As [`row`](Self::row), in the place of another: that it does nothing is refused only here.
    pub(crate) fn changed_row(to: *mut c_void, from: *const c_void, bytes: usize, kind: hipMemcpyKind) -> Result<Self> {
        if to.cast_const() == from {
            return Err(INVALID);
        }
        Self::row(to, from, bytes, kind)
    }

    /// What a graph that was made ready refuses to change: a copy goes on in its direction.
    pub(super) fn can_become(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Copy(now), Self::Copy(new)) => now.kind == new.kind,
            _ => self.kind() == other.kind(),
        }
    }

    /// Whether two child graphs differ in no more than what their nodes work on.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Frozen(now), Self::Frozen(new)) => now.is_alike(new),
            _ => self.kind() == other.kind(),
        }
    }

    /// # Safety
    /// `params` is null or readable.
    pub(crate) unsafe fn copy(params: *const hipMemcpy3DParms) -> Result<Self> {
        // SAFETY: this function's contract.
        unsafe { from_3d_params(params) }.map(Self::Copy)
    }

    /// # Safety
    /// `params` is null or readable.
    pub(crate) unsafe fn set(params: *const hipMemsetParams) -> Result<Self> {
        if params.is_null() {
            return Err(INVALID);
        }
        // SAFETY: not null, so readable by this function's contract.
        let p = unsafe { params.read_unaligned() };
        let value = match p.elementSize {
            1 => Value::Byte(p.value as u8),
            2 => Value::Half(p.value as u16),
            4 => Value::Word(p.value),
            _ => return Err(INVALID),
        };
        let row = p.width.checked_mul(p.elementSize as usize).ok_or(INVALID)?;
        // Rows must not overlap (hipamd/src/hip_graph.cpp, `hipGraphAddMemsetNode`).
        if p.dst.is_null() || p.width == 0 || p.height == 0 || (p.height > 1 && row > p.pitch) {
            return Err(INVALID);
        }
        Ok(Self::Set(Filling {
            to: p.dst as usize,
            value,
            width: p.width,
            height: p.height,
            depth: 1,
            pitch: p.pitch,
            slice: 0,
        }))
    }

    /// # Safety
    /// `params` is null or readable.
    pub(crate) unsafe fn host(params: *const hipHostNodeParams) -> Result<Self> {
        if params.is_null() {
            return Err(INVALID);
        }
        // SAFETY: not null, so readable by this function's contract.
        let p = unsafe { params.read_unaligned() };
        Ok(Self::Host(HostCall {
            function: p.fn_.ok_or(INVALID)?,
            user: UserData(p.userData),
        }))
    }

    /// An event's recording or waiting, if there is such an event.
    pub(crate) fn of_event(event: hipEvent_t, records: bool) -> Result<Self> {
        if event.is_null() {
            return Err(INVALID);
        }
        event::point(event).map_err(|_| INVALID)?;
        Ok(if records {
            Self::Record(event as usize)
        } else {
            Self::Wait(event as usize)
        })
    }
}

impl Stream {
    /// Records `operation` if the stream captures, else queues it.
    pub(crate) fn issue(self: &Arc<Self>, call: &'static str, operation: Operation) -> Result<Option<Mark>> {
        if capture::record(self, || operation.clone())? {
            return Ok(None);
        }
        operation.submit(call, self, Vec::new()).map(Some)
    }

    /// As [`issue`](Self::issue), with the work prepared already.
    pub(crate) fn issue_task(
        self: &Arc<Self>,
        call: &'static str,
        task: Task,
        operation: impl FnOnce() -> Operation,
    ) -> Result<Option<Mark>> {
        if capture::record(self, operation)? {
            return Ok(None);
        }
        let work = Box::new(move || task());
        self.submit(call, Vec::new(), work).map(Some)
    }
}

/// A copy in the terms of `hipMemcpy3D`.
pub(super) fn copy_params(transfer: &Transfer) -> hipMemcpy3DParms {
    let shape = &transfer.shape;
    let side = |address: usize, layout: Layout| {
        let rows = layout.slice.checked_div(layout.pitch).unwrap_or(0);
        hipPitchedPtr {
            ptr: address as *mut c_void,
            pitch: layout.pitch,
            xsize: shape.width,
            ysize: rows.max(shape.height),
        }
    };
    hipMemcpy3DParms {
        srcPtr: side(transfer.from, shape.from),
        dstPtr: side(transfer.to, shape.to),
        extent: hipExtent {
            width: shape.width,
            height: shape.height,
            depth: shape.depth,
        },
        kind: transfer.kind,
        ..hipMemcpy3DParms::default()
    }
}

/// A fill in the terms of a graph node, which knows no slices.
pub(super) fn set_params(filling: &Filling) -> Result<hipMemsetParams> {
    if filling.depth > 1 {
        return Err(hipError_t::hipErrorNotSupported);
    }
    let (size, value) = match filling.value {
        Value::Byte(value) => (1, u32::from(value)),
        Value::Half(value) => (2, u32::from(value)),
        Value::Word(value) => (4, value),
    };
    Ok(hipMemsetParams {
        dst: filling.to as *mut c_void,
        elementSize: size,
        height: filling.height,
        pitch: filling.pitch,
        value,
        width: filling.width,
    })
}
