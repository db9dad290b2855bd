use std::fmt;
use std::str::FromStr;

/// How memory gets from one process to another.
///
/// | carrier | memory | if the exporter ends first |
/// |---|---|---|
/// | [`HipFd`](Self::HipFd) | [`Bridge::alloc_exportable`](crate::Bridge::alloc_exportable), [`Route::ExternalFd`](crate::Route::ExternalFd) | it lives on |
/// | [`DmaBuf`](Self::DmaBuf) | OpenCL's or HIP's own device memory that the HSA runtime exports | it lives on |
/// | [`IpcHandle`](Self::IpcHandle) | `hipMalloc` ([`Route::HipPointer`](crate::Route::HipPointer)) | it is lost |
///
/// A descriptor is a reference that the system counts. A handle is a name, and use of memory that was freed under it is
/// undefined on ROCm (HIP's documentation of `hipIpcOpenMemHandle`), so the exporter waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Carrier {
    /// A descriptor of HIP virtual memory (`hipMemExportToShareableHandle`).
    HipFd,
    /// A dma-buf of the block that the memory lies in (`hsa_amd_portable_export_dmabuf`), with the memory's offset.
    DmaBuf,
    /// A HIP handle (`hipIpcGetMemHandle`), with the memory's offset in its allocation. The process that made it cannot
    /// open it.
    IpcHandle,
}

impl Carrier {
    /// Every carrier, best first.
    pub const ALL: [Self; 3] = [Self::HipFd, Self::DmaBuf, Self::IpcHandle];

    /// The name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::HipFd => "hip-fd",
            Self::DmaBuf => "dma-buf",
            Self::IpcHandle => "ipc-handle",
        }
    }

    /// Whether the importer may keep the memory when the exporter has ended.
    #[must_use]
    pub fn outlives_exporter(self) -> bool {
        self != Self::IpcHandle
    }

    /// The number in a message.
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::HipFd => 1,
            Self::DmaBuf => 2,
            Self::IpcHandle => 3,
        }
    }

    pub(crate) fn of_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|carrier| carrier.number() == number)
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The name is not a carrier.
#[derive(Debug, thiserror::Error)]
#[error("unknown carrier `{name}`; use {}", Carrier::ALL.map(Carrier::name).join(", "))]
pub struct UnknownCarrier {
    name: String,
}

impl FromStr for Carrier {
    type Err = UnknownCarrier;

    fn from_str(name: &str) -> Result<Self, UnknownCarrier> {
        Self::ALL
            .into_iter()
            .find(|carrier| carrier.name() == name)
            .ok_or_else(|| UnknownCarrier { name: name.to_owned() })
    }
}
