//! Proof that an OpenCL library works: it compiles and runs a kernel, in a child process with a time limit.
//!
//! A driver is foreign code that may crash, hang or end the process while it loads; a child makes that an answer.

use std::ffi::{CStr, c_char, c_void};
use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::ptr;
use std::time::{Duration, Instant};

use crate::error::Result;

/// The hidden task that the child runs.
pub const CHILD_TASK: &str = "probe-opencl-library";

/// This very program, even after a build has put another file in its place: `cargo xtask ci` rebuilds
/// xtask with another feature while it runs.
const THIS_PROGRAM: &str = "/proc/self/exe";

/// A cold driver with a slow disk needs seconds, not minutes.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Loads `library` in a child; returns the device's description or the reason it is not usable.
pub fn in_child(library: &Path) -> std::result::Result<String, String> {
    let mut child = Command::new(THIS_PROGRAM)
        .arg(CHILD_TASK)
        .arg(library)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start the check: {error}"))?;
    // Read while the child runs, so a driver with much output does not block.
    let said = child.stderr.take().map(|mut stderr| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            // What was printed before a read error still counts.
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        })
    });
    let started = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if started.elapsed() < TIME_LIMIT => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(None) => break None,
            Err(error) => return Err(format!("cannot wait for the check: {error}")),
        }
    };
    let Some(status) = status else {
        // It may have ended just now; either way it is gone after the wait.
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("did not answer within {} s", TIME_LIMIT.as_secs()));
    };
    let mut text = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        // What was printed before a read error still counts.
        let _ = stdout.read_to_string(&mut text);
    }
    answer(&text).unwrap_or_else(|| {
        let said = said.and_then(|reader| reader.join().ok());
        Err(crashed(status, &said.unwrap_or_default()))
    })
}

/// Why the child ended without an answer: its last output, and what to try.
fn crashed(status: ExitStatus, said: &str) -> String {
    let mut reason = format!("the process that loaded it ended with {status}");
    if let Some(last) = said.lines().map(str::trim).rfind(|line| !line.is_empty()) {
        reason += &format!(" after \"{last}\"");
    }
    // PoCL reads the processor's topology there, and aborts if it finds none.
    if !Path::new("/sys/devices/system/cpu").exists() {
        reason += "; /sys is not mounted, and some drivers abort without it: mount it into the container (`--volume /sys:/sys:ro`), or use the other runtime (`cargo xtask setup --with intel`)";
    }
    reason
}

/// Drivers print too, so the answer is the last line with one of the two marks.
fn answer(text: &str) -> Option<std::result::Result<String, String>> {
    text.lines().rev().find_map(|line| {
        if let Some(found) = line.strip_prefix("usable: ") {
            Some(Ok(found.to_string()))
        } else {
            line.strip_prefix("not usable: ").map(|reason| Err(reason.to_string()))
        }
    })
}

/// The child's side.
pub fn child(library: &str) -> Result<()> {
    match try_library(library) {
        Ok(found) => println!("usable: {found}"),
        Err(reason) => println!("not usable: {}", reason.replace('\n', " ")),
    }
    Ok(())
}

type Handle = *mut c_void;
type Code = i32;

const DEVICE_TYPE_ALL: u64 = 0xFFFF_FFFF;
const PLATFORM_NAME: u32 = 0x0902;
const DEVICE_NAME: u32 = 0x102B;
const DEVICE_VERSION: u32 = 0x102F;
const DEVICE_NOT_FOUND: Code = -1;
const MEM_READ_WRITE: u64 = 1;
const BLOCKING: u32 = 1;

/// The few functions that one kernel takes, as `CL/cl.h` declares them.
struct Api {
    get_platforms: unsafe extern "C" fn(u32, *mut Handle, *mut u32) -> Code,
    platform_info: unsafe extern "C" fn(Handle, u32, usize, *mut c_void, *mut usize) -> Code,
    get_devices: unsafe extern "C" fn(Handle, u64, u32, *mut Handle, *mut u32) -> Code,
    device_info: unsafe extern "C" fn(Handle, u32, usize, *mut c_void, *mut usize) -> Code,
    create_context:
        unsafe extern "C" fn(*const isize, u32, *const Handle, *const c_void, *mut c_void, *mut Code) -> Handle,
    create_queue: unsafe extern "C" fn(Handle, Handle, u64, *mut Code) -> Handle,
    create_program: unsafe extern "C" fn(Handle, u32, *const *const c_char, *const usize, *mut Code) -> Handle,
    build_program: unsafe extern "C" fn(Handle, u32, *const Handle, *const c_char, *const c_void, *mut c_void) -> Code,
    create_kernel: unsafe extern "C" fn(Handle, *const c_char, *mut Code) -> Handle,
    create_buffer: unsafe extern "C" fn(Handle, u64, usize, *mut c_void, *mut Code) -> Handle,
    set_arg: unsafe extern "C" fn(Handle, u32, usize, *const c_void) -> Code,
    launch: unsafe extern "C" fn(
        Handle,
        Handle,
        u32,
        *const usize,
        *const usize,
        *const usize,
        u32,
        *const Handle,
        *mut Handle,
    ) -> Code,
    read: unsafe extern "C" fn(Handle, Handle, u32, usize, usize, *mut c_void, u32, *const Handle, *mut Handle) -> Code,
}

impl Api {
    fn load(library: &str) -> std::result::Result<Self, String> {
        // SAFETY: loading runs the library's initialisers; this process exists to find out whether they are sound.
        let library = unsafe { libloading::Library::new(library) }.map_err(|error| {
            // The loader's own words are in the source; the error itself names only the call.
            let detail = std::error::Error::source(&error).map(ToString::to_string);
            format!("cannot be loaded: {}", detail.unwrap_or(error.to_string()))
        })?;
        // The drivers' threads outlive any unload, so the library stays until the process ends.
        let library = std::mem::ManuallyDrop::new(library);
        macro_rules! function {
            ($name:literal) => {{
                // SAFETY: the field's type is the one `CL/cl.h` declares for this name.
                let symbol = unsafe { library.get($name) };
                *symbol.map_err(|_| format!("has no {}", String::from_utf8_lossy($name)))?
            }};
        }
        Ok(Self {
            get_platforms: function!(b"clGetPlatformIDs"),
            platform_info: function!(b"clGetPlatformInfo"),
            get_devices: function!(b"clGetDeviceIDs"),
            device_info: function!(b"clGetDeviceInfo"),
            create_context: function!(b"clCreateContext"),
            create_queue: function!(b"clCreateCommandQueue"),
            create_program: function!(b"clCreateProgramWithSource"),
            build_program: function!(b"clBuildProgram"),
            create_kernel: function!(b"clCreateKernel"),
            create_buffer: function!(b"clCreateBuffer"),
            set_arg: function!(b"clSetKernelArg"),
            launch: function!(b"clEnqueueNDRangeKernel"),
            read: function!(b"clEnqueueReadBuffer"),
        })
    }
}

fn checked(call: &str, code: Code) -> std::result::Result<(), String> {
    match code {
        0 => Ok(()),
        _ => Err(format!("{call} returned {code}")),
    }
}

fn created(call: &str, handle: Handle, code: Code) -> std::result::Result<Handle, String> {
    checked(call, code)?;
    if handle.is_null() {
        return Err(format!("{call} returned no object"));
    }
    Ok(handle)
}

fn try_library(library: &str) -> std::result::Result<String, String> {
    let api = Api::load(library)?;
    let mut count = 0;
    // SAFETY: a null list with length 0 asks for the number only.
    checked("clGetPlatformIDs", unsafe {
        (api.get_platforms)(0, ptr::null_mut(), &mut count)
    })?;
    let mut platforms = vec![ptr::null_mut(); count as usize];
    // SAFETY: the list has room for `count` handles.
    checked("clGetPlatformIDs", unsafe {
        (api.get_platforms)(count, platforms.as_mut_ptr(), ptr::null_mut())
    })?;
    let mut reasons = Vec::new();
    for platform in platforms {
        for device in devices(&api, platform)? {
            match try_device(&api, device) {
                Ok(()) => return Ok(describe(&api, platform, device)),
                Err(reason) => reasons.push(format!("{}: {reason}", describe(&api, platform, device))),
            }
        }
    }
    if reasons.is_empty() {
        return Err(format!("{count} platforms, no device"));
    }
    Err(reasons.join("; "))
}

fn devices(api: &Api, platform: Handle) -> std::result::Result<Vec<Handle>, String> {
    let mut count = 0;
    // SAFETY: the platform is live; a null list with length 0 asks for the number only.
    let code = unsafe { (api.get_devices)(platform, DEVICE_TYPE_ALL, 0, ptr::null_mut(), &mut count) };
    if code == DEVICE_NOT_FOUND || count == 0 {
        return Ok(Vec::new());
    }
    checked("clGetDeviceIDs", code)?;
    let mut devices = vec![ptr::null_mut(); count as usize];
    // SAFETY: the list has room for `count` handles.
    checked("clGetDeviceIDs", unsafe {
        (api.get_devices)(platform, DEVICE_TYPE_ALL, count, devices.as_mut_ptr(), ptr::null_mut())
    })?;
    Ok(devices)
}

fn describe(api: &Api, platform: Handle, device: Handle) -> String {
    let text = |query: unsafe extern "C" fn(Handle, u32, usize, *mut c_void, *mut usize) -> Code,
                object: Handle,
                name: u32| {
        let mut bytes = [0u8; 256];
        // SAFETY: the object is live and the buffer has the length that is passed.
        let code = unsafe {
            query(
                object,
                name,
                bytes.len() - 1,
                bytes.as_mut_ptr().cast(),
                ptr::null_mut(),
            )
        };
        match CStr::from_bytes_until_nul(&bytes) {
            Ok(text) if code == 0 => text.to_string_lossy().trim().to_string(),
            _ => "unnamed".to_string(),
        }
    };
    format!(
        "{}, {}, {}",
        text(api.device_info, device, DEVICE_NAME),
        text(api.device_info, device, DEVICE_VERSION),
        text(api.platform_info, platform, PLATFORM_NAME)
    )
}

/// Compiles a kernel, runs it on 64 items and compares. Objects are left to the end of the process.
fn try_device(api: &Api, device: Handle) -> std::result::Result<(), String> {
    const SOURCE: &CStr =
        c"__kernel void fill(__global uint *out) { size_t i = get_global_id(0); out[i] = 3 * i + 7; }";
    const ITEMS: usize = 64;
    let mut code = 0;
    // SAFETY: one live device, no properties, no callback.
    let context = unsafe { (api.create_context)(ptr::null(), 1, &device, ptr::null(), ptr::null_mut(), &mut code) };
    let context = created("clCreateContext", context, code)?;
    // SAFETY: the device belongs to the context.
    let queue = unsafe { (api.create_queue)(context, device, 0, &mut code) };
    let queue = created("clCreateCommandQueue", queue, code)?;
    let source = SOURCE.as_ptr();
    // SAFETY: one string, ended by a zero byte because no length is given.
    let program = unsafe { (api.create_program)(context, 1, &source, ptr::null(), &mut code) };
    let program = created("clCreateProgramWithSource", program, code)?;
    // SAFETY: no callback, so the call returns when the program is built.
    checked("clBuildProgram", unsafe {
        (api.build_program)(program, 1, &device, c"".as_ptr(), ptr::null(), ptr::null_mut())
    })?;
    // SAFETY: the program is built and has a kernel of that name.
    let kernel = unsafe { (api.create_kernel)(program, c"fill".as_ptr(), &mut code) };
    let kernel = created("clCreateKernel", kernel, code)?;
    let bytes = ITEMS * size_of::<u32>();
    // SAFETY: no host pointer is given and no flag asks for one.
    let buffer = unsafe { (api.create_buffer)(context, MEM_READ_WRITE, bytes, ptr::null_mut(), &mut code) };
    let buffer = created("clCreateBuffer", buffer, code)?;
    // SAFETY: argument 0 is a buffer, passed as the address of its handle.
    checked("clSetKernelArg", unsafe {
        (api.set_arg)(kernel, 0, size_of::<Handle>(), (&raw const buffer).cast())
    })?;
    // SAFETY: one dimension with one size; the buffer has room for every item; no events.
    checked("clEnqueueNDRangeKernel", unsafe {
        (api.launch)(
            queue,
            kernel,
            1,
            ptr::null(),
            &ITEMS,
            ptr::null(),
            0,
            ptr::null(),
            ptr::null_mut(),
        )
    })?;
    let mut out = [0u32; ITEMS];
    // SAFETY: a blocking read of as many bytes as both sides hold.
    checked("clEnqueueReadBuffer", unsafe {
        (api.read)(
            queue,
            buffer,
            BLOCKING,
            0,
            bytes,
            out.as_mut_ptr().cast(),
            0,
            ptr::null(),
            ptr::null_mut(),
        )
    })?;
    if out.iter().zip(0u32..).all(|(&value, item)| value == 3 * item + 7) {
        Ok(())
    } else {
        Err("computed a wrong answer".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_a_reason_not_a_panic() {
        let reason = try_library("libno-such-opencl.so").unwrap_err();
        assert!(reason.starts_with("cannot be loaded"), "{reason}");
    }

    #[test]
    fn a_library_without_opencl_is_refused_by_the_missing_name() {
        let reason = try_library("libc.so.6").unwrap_err();
        assert_eq!(reason, "has no clGetPlatformIDs");
    }

    #[test]
    fn a_crashed_child_is_reported_with_its_last_output() {
        use std::os::unix::process::ExitStatusExt;
        let aborted = ExitStatus::from_raw(6);
        let reason = crashed(aborted, "loading\nno topology!\n\n");
        assert!(
            reason.contains("signal: 6") && reason.contains("\"no topology!\""),
            "{reason}"
        );
        assert!(
            !reason.contains('\n') && !crashed(aborted, "").contains('"'),
            "{reason}"
        );
    }

    #[test]
    fn a_drivers_own_output_does_not_hide_the_answer() {
        assert_eq!(answer("driver v1\nusable: cpu\nbye\n"), Some(Ok("cpu".into())));
        assert_eq!(answer("not usable: x\n"), Some(Err("x".into())));
        assert_eq!(answer("killed\n"), None);
    }
}
