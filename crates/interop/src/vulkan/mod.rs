//! Vulkan beside OpenCL and HIP: its memory as a [`Shared`](crate::Shared) buffer, its commands in the order of a HIP
//! stream.
//!
//! ```text
//!   Vulkan                          HIP                      OpenCL
//!   VkDeviceMemory --opaque fd--> hipImportExternalMemory --> HIP's address     (amd, host)
//!                  --opaque fd-------------------------------> cl_mem           (nvidia)
//!   VkSemaphore    --opaque fd--> hipImportExternalSemaphore, clCreateSemaphoreWithPropertiesKHR
//!                                                                               (nvidia)
//! ```
//!
//! A [`Link`] joins a bridge with a Vulkan device that is the same hardware, by its PCI address, and proves that by
//! patterns before it allocates any memory. Its [`Buffer`]s belong to Vulkan. The commands that use them are
//! [enqueued](Link::enqueue) as work of a HIP stream, under the guards of that stream: so OpenCL and HIP work is
//! ordered with Vulkan's as with each other's. Semaphores keep that order on the device where HIP imports them; ROCm on
//! Linux does not (rocclr/device/rocm/rocdevice.hpp, `importExtSemaphore`), so there, and on the host platform, the
//! calling thread waits for the stream and for a fence.
//!
//! With semaphores that both drivers import, OpenCL and HIP can also hand over to each other on the device:
//! [`Bridge::with_semaphores`](crate::Bridge::with_semaphores).
//!
//! Not supported: images (their layout in memory is the driver's secret), memory that HIP or OpenCL allocated, several
//! Vulkan devices for one bridge.

mod buffer;
mod choose;
mod device;
mod grade;
mod lanes;
mod link;
mod loader;
mod memory;
mod pool;
mod proof;
mod semaphore;
mod semaphores;
mod turns;

pub use buffer::Buffer;
pub use choose::{Identity, Match};
pub use device::Objects;
pub use link::{Link, LinkReport};
pub use turns::Mechanism;

pub use crate::error::vulkan::Error;
