//! Memory and order shared with other APIs and other processes.

mod external;
mod ipc;
mod semaphore;
mod virtual_memory;

pub use external::ExternalMemory;
pub use ipc::{IpcEvent, IpcMemory};
pub use semaphore::ExternalSemaphore;
pub use virtual_memory::{Exporter, VirtualAccess, VirtualMemory};
