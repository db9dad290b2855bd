//! Whether this machine's drivers are known to survive an export of device memory.
//!
//! ROCr up to ROCm 7.2 follows a null pointer when the kernel refuses it a hardware queue (rocm-systems pull request
//! 2850). Programs on ROCm 7.2 that had exported memory as dma-bufs ran into this at their next allocation
//! (rocm-systems issue 8517); no small program did, and an export by itself does not crash. The release number does not
//! say where it happens. So a [`Trial`](crate::Trial) of the route exports memory and then does what programs do next,
//! in a process that may be lost. If the process lives to tell, that is kept for this machine and these drivers.

use kernel_cache::{Key, KeyBuilder, Store};

use crate::core::Core;

const FORMAT: &[u8; 16] = b"hipcl survival 1";
const SURVIVED: &[u8] = b"survived\n";
const NOT_KNOWN: &[u8] = b"not known\n";

/// What is stored about the machine that `core` is on.
pub(crate) struct Survival {
    store: Option<Store>,
    key: Key,
}

impl Survival {
    pub(crate) fn of(core: &Core) -> Self {
        let device = core.context.device();
        let versions = core.hip.versions().ok();
        let mut key = KeyBuilder::default();
        key.part(env!("CARGO_PKG_VERSION"))
            .part(core.platform.to_string())
            .part(device.name())
            .part(device.platform_version())
            .part(device.driver_version())
            .part(std::fs::read("/proc/sys/kernel/osrelease").unwrap_or_default())
            .part(core.hip_device.arch().unwrap_or_default())
            .part(versions.map_or_else(String::new, |it| format!("{} {}", it.runtime, it.driver)));
        let folder = kernel_cache::folder("survival");
        Self {
            store: folder.map(|folder| Store::new(&folder, FORMAT, "txt")),
            key: key.finish(),
        }
    }

    /// Whether a process has exported memory here and lived.
    pub(crate) fn is_known(&self) -> bool {
        let kept = self.store.as_ref().map(|store| store.read(self.key));
        matches!(kept, Some(Ok(Some(content))) if content == SURVIVED)
    }

    /// A process is about to find out: until it has, earlier knowledge is void.
    pub(crate) fn begin(&self) {
        self.keep(NOT_KNOWN);
    }

    pub(crate) fn survived(&self) {
        self.keep(SURVIVED);
    }

    fn keep(&self, content: &[u8]) {
        if let Some(store) = &self.store {
            // What is not kept is found out again.
            // SAFETY: the entries of this format are words that are compared, not run.
            let _ = unsafe { store.write(self.key, content) };
        }
    }
}
