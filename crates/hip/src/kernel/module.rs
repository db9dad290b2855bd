use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::{fmt, ptr};

use hip_sys::{hipFunction_t, hipModule_t};
use parking_lot::Mutex;

use super::KernelArg;
use crate::call::{c_text, call};
use crate::stream::Launched;
use crate::{Device, Error, LaunchConfig, Result, Stream, report};

/// Parameters of a launch whose addresses need no allocation. Kernels rarely have more; longer lists go to the heap.
const PARAMS_ON_STACK: usize = 16;

/// Code on one device. Cloning is cheap; the last owner waits for the device and unloads it.
#[derive(Clone)]
pub struct Module {
    code: Arc<Code>,
}

struct Code {
    device: Device,
    raw: hipModule_t,
    /// The symbols of template instances, by their C++ name.
    symbols: HashMap<String, String>,
    /// Streams that may still run a kernel of this module.
    launched: Mutex<Launched>,
    /// The address of the stream that was last found in the list, or null.
    latest: AtomicPtr<()>,
    /// HIP may keep pointing into the image passed to it.
    _image: Box<[u8]>,
}

// SAFETY: a module is a handle that HIP lets any host thread look up functions in; loading fixed its device. The image
// is never written, and the list is behind a lock.
unsafe impl Send for Code {}
// SAFETY: as for `Send`.
unsafe impl Sync for Code {}

/// A kernel. Cloning is cheap; it keeps its module loaded.
#[derive(Clone)]
pub struct Function {
    module: Module,
    raw: hipFunction_t,
    name: Arc<str>,
}

// SAFETY: a function is a handle into its module; see there. Launching does not change it.
unsafe impl Send for Function {}
// SAFETY: as for `Send`.
unsafe impl Sync for Function {}

impl Module {
    /// Loads a code object that was compiled for this device.
    ///
    /// # Safety
    ///
    /// `code` is a complete code object or fat binary: HIP gets no length and believes the headers in it. Code that
    /// runs when it is loaded (initialisers, on the host platform) is sound.
    ///
    /// # Errors
    ///
    /// HIP refused it, for example because it was compiled for another architecture.
    #[doc(alias = "hipModuleLoadData")]
    pub unsafe fn load(device: &Device, code: &[u8]) -> Result<Self> {
        // SAFETY: the caller's promise is the callee's demand.
        unsafe { Self::load_named(device, code, HashMap::new()) }
    }

    /// # Safety
    ///
    /// As [`Module::load`].
    pub(crate) unsafe fn load_named(device: &Device, code: &[u8], symbols: HashMap<String, String>) -> Result<Self> {
        device.make_current()?;
        let image: Box<[u8]> = code.into();
        let mut raw = ptr::null_mut();
        // SAFETY: writes one handle to the address given; the caller vouches for the image, which lives as long as the
        // module.
        unsafe {
            call!(
                device.runtime(),
                hipModuleLoadData(&mut raw, image.as_ptr().cast::<c_void>()),
                "hipModuleLoadData({} bytes, device {})",
                image.len(),
                device.ordinal()
            )?;
        }
        let code = Code {
            device: device.clone(),
            raw,
            symbols,
            launched: Mutex::default(),
            latest: AtomicPtr::default(),
            _image: image,
        };
        Ok(Self { code: Arc::new(code) })
    }

    /// The device it is loaded on.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.code.device
    }

    /// The kernel of this name, declared `extern "C"`, or an [instance](crate::rtc::Program::instance) of a template.
    ///
    /// # Errors
    ///
    /// There is no such kernel, or the name holds a NUL byte.
    #[doc(alias = "hipModuleGetFunction")]
    pub fn function(&self, name: &str) -> Result<Function> {
        let symbol = self.code.symbols.get(name).map_or(name, String::as_str);
        let text = c_text(symbol, "kernel name")?;
        let mut raw = ptr::null_mut();
        self.device().make_current()?;
        // SAFETY: writes one handle to the address given; the module is alive and the name ends with NUL.
        unsafe {
            call!(
                self.device().runtime(),
                hipModuleGetFunction(&mut raw, self.code.raw, text.as_ptr()),
                "hipModuleGetFunction(\"{name}\")"
            )?;
        }
        Ok(Function {
            module: self.clone(),
            raw,
            name: name.into(),
        })
    }
}

impl Function {
    /// The name it was looked up by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The handle, valid for as long as a clone of this function or its module lives.
    ///
    /// A launch through the handle keeps neither the module nor the arguments' memory alive.
    #[must_use]
    pub fn raw(&self) -> hipFunction_t {
        self.raw
    }

    /// The module it belongs to.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.module
    }

    #[cold]
    fn of_another_stream(&self, position: usize) -> Error {
        Error::WrongStream {
            call: "Function::launch",
            argument: format!("argument {position} of `{}`", self.name),
        }
    }

    /// Queues the kernel on `stream`. The host does not wait; the values of `args` are copied before it returns.
    ///
    /// # Safety
    ///
    /// - `args` match the kernel's parameters in number, order and type.
    /// - The kernel stays inside the slices passed to it, writes only those passed as
    ///   [`DeviceSliceMut`](crate::DeviceSliceMut), and a writable slice does not overlap another argument.
    /// - Block size and shared memory are what the kernel was written for, and it ends.
    ///
    /// # Errors
    ///
    /// [`Error::WrongStream`] for a slice of another stream, [`Error::WrongDevice`] for a stream of another device than
    /// the module's, [`Error::Launch`] for a grid or block that is empty or above the device's limits, or HIP refused
    /// the launch.
    #[doc(alias = "hipModuleLaunchKernel")]
    pub unsafe fn launch(&self, stream: &Stream, config: LaunchConfig, args: &[&dyn KernelArg]) -> Result<()> {
        let mut few = [ptr::null_mut(); PARAMS_ON_STACK];
        let mut many = Vec::new();
        let params = match few.get_mut(..args.len()) {
            Some(params) => params,
            None => {
                many.resize(args.len(), ptr::null_mut());
                many.as_mut_slice()
            }
        };
        for (position, (param, arg)) in params.iter_mut().zip(args).enumerate() {
            if arg.stream().is_some_and(|bound| bound != stream) {
                return Err(self.of_another_stream(position));
            }
            *param = arg.as_param();
        }
        // SAFETY: an address of a live value for each of the kernel's parameters, as the caller vouches.
        unsafe { self.launch_params(stream, config, params) }
    }

    /// As [`launch`](Self::launch), with the addresses of the arguments' values as the C call takes them. It does not
    /// check to which stream memory was granted.
    ///
    /// # Safety
    ///
    /// - `params` has an address of a live value for each of the kernel's parameters, in their order and of their type.
    /// - Memory that a value points to was granted for `stream`, if it was granted, and stays allocated until the
    ///   kernel has ended. The kernel stays inside of it, and what it writes overlaps no other argument.
    /// - Block size and shared memory are what the kernel was written for, and it ends.
    ///
    /// # Errors
    ///
    /// As for [`launch`](Self::launch).
    #[doc(alias = "hipModuleLaunchKernel")]
    pub unsafe fn launch_params(
        &self,
        stream: &Stream,
        config: LaunchConfig,
        params: &mut [*mut c_void],
    ) -> Result<()> {
        let device = self.module.device();
        device.check_same(stream.device(), "a launch", "stream")?;
        let limits = device.limits();
        if !limits.admit(&config)
            && let Some(reason) = limits.refuse(&config)
        {
            return Err(Error::Launch {
                function: self.name.to_string(),
                reason,
            });
        }
        self.module.code.note(stream);
        stream.keep_if_recording(&self.module.code);
        device.make_current()?;
        let LaunchConfig {
            grid,
            block,
            shared_bytes,
        } = config;
        // SAFETY: function and stream are alive and of one device. `params` has an address of a live value for each of
        // the kernel's parameters, as the caller vouches; HIP reads them before it returns.
        unsafe {
            call!(
                device.runtime(),
                hipModuleLaunchKernel(
                    self.raw,
                    grid.0,
                    grid.1,
                    grid.2,
                    block.0,
                    block.1,
                    block.2,
                    shared_bytes,
                    stream.raw_for_work()?,
                    params.as_mut_ptr(),
                    ptr::null_mut()
                ),
                "hipModuleLaunchKernel({}, grid {grid:?}, block {block:?}, {shared_bytes} shared bytes)",
                self.name
            )
        }
    }
}

impl Code {
    /// From now on the module is not unloaded before the stream is idle.
    fn note(&self, stream: &Stream) {
        // The address is that of a listed stream: it is taken back before the stream leaves the list, so a new stream
        // at the same address cannot be taken for it. A thread that sees the new stream sees that, too.
        if self.latest.load(Ordering::Relaxed) == stream.address() {
            return;
        }
        let mut launched = self.launched.lock();
        if !launched.contains(stream) {
            self.latest.store(ptr::null_mut(), Ordering::Relaxed);
            launched.push(stream);
        }
        self.latest.store(stream.address(), Ordering::Relaxed);
    }

    fn unload(&self) -> Result<()> {
        self.device.make_current()?;
        // SAFETY: the handle is alive, this is its last use, and no kernel of it runs.
        unsafe { call!(self.device.runtime(), hipModuleUnload(self.raw), "hipModuleUnload()") }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        if !self.launched.get_mut().settle() {
            std::mem::forget(std::mem::take(&mut self._image));
            report::leaked("module", 0);
        } else if let Err(error) = self.unload() {
            // It is still loaded.
            std::mem::forget(std::mem::take(&mut self._image));
            self.device.runtime().defer(error);
        }
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module")
            .field("device", self.device())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
