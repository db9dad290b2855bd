//! One call, as its rank made it.

use rccl_sys::{ncclDataType_t, ncclRedOp_t};
use serde::{Deserialize, Serialize};

use crate::reduce::is_known;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    AllReduce,
    Reduce,
    Broadcast,
    AllGather,
    ReduceScatter,
    /// To the peer in `root`.
    Send,
    /// From the peer in `root`.
    Recv,
}

impl Kind {
    pub(crate) fn call(self) -> &'static str {
        match self {
            Self::AllReduce => "ncclAllReduce",
            Self::Reduce => "ncclReduce",
            Self::Broadcast => "ncclBroadcast",
            Self::AllGather => "ncclAllGather",
            Self::ReduceScatter => "ncclReduceScatter",
            Self::Send => "ncclSend",
            Self::Recv => "ncclRecv",
        }
    }

    pub(crate) fn reduces(self) -> bool {
        matches!(self, Self::AllReduce | Self::Reduce | Self::ReduceScatter)
    }
}

/// Addresses are numbers, because raw pointers are not `Send`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operation {
    pub(crate) kind: Kind,
    pub(crate) send: usize,
    pub(crate) recv: usize,
    pub(crate) count: usize,
    pub(crate) datatype: ncclDataType_t,
    /// `ncclSum` where nothing is reduced.
    pub(crate) op: ncclRedOp_t,
    /// Or the peer; 0 where there is none.
    pub(crate) root: usize,
    /// Whether a graph repeats it, which all ranks have to agree on.
    pub(crate) captured: bool,
}

impl Operation {
    /// Bytes of one element; `None` for a type that is none.
    pub(crate) fn element(&self) -> Option<usize> {
        use ncclDataType_t as T;
        Some(match self.datatype {
            T::ncclInt8 | T::ncclUint8 | T::ncclFloat8e4m3 | T::ncclFloat8e5m2 => 1,
            T::ncclFloat16 | T::ncclBfloat16 => 2,
            T::ncclInt32 | T::ncclUint32 | T::ncclFloat32 => 4,
            T::ncclInt64 | T::ncclUint64 | T::ncclFloat64 => 8,
            _ => return None,
        })
    }

    /// Bytes that the rank reads and writes among `ranks`; `None` if no address space has them.
    pub(crate) fn bytes(&self, rank: usize, ranks: usize) -> Option<(usize, usize)> {
        let one = self.count.checked_mul(self.element()?)?;
        let all = one.checked_mul(ranks)?;
        let at_root = rank == self.root;
        Some(match self.kind {
            Kind::AllReduce => (one, one),
            Kind::Reduce => (one, if at_root { one } else { 0 }),
            Kind::Broadcast => (if at_root { one } else { 0 }, one),
            Kind::AllGather => (one, all),
            Kind::ReduceScatter => (all, one),
            Kind::Send => (one, 0),
            Kind::Recv => (0, one),
        })
    }

    /// Whether the model can reduce the elements, if the call does.
    pub(crate) fn has_arithmetic(&self) -> bool {
        !self.kind.reduces() || is_known(self.datatype, self.op)
    }

    /// Whether ranks that make these two calls mean the same.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        let means = |call: &Self| (call.kind, call.count, call.datatype, call.op, call.root, call.captured);
        means(self) == means(other)
    }

    /// For messages.
    pub(crate) fn describe(&self) -> String {
        let Self {
            kind, count, datatype, ..
        } = self;
        let mut text = format!("{}({count} x {datatype:?}", kind.call());
        if kind.reduces() {
            text += &format!(", {:?}", self.op);
        }
        match kind {
            Kind::Reduce | Kind::Broadcast => text += &format!(", root {}", self.root),
            Kind::Send => text += &format!(", to rank {}", self.root),
            Kind::Recv => text += &format!(", from rank {}", self.root),
            _ => {}
        }
        text + if self.captured { ") in a graph" } else { ")" }
    }
}
