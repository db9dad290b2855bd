//! Bridges, their reports and counters.

use std::ffi::c_char;
use std::fmt::Write;
use std::sync::{Arc, Weak};
use std::time::Duration;

use interop::{Bridge, ForeignObjects, Options};
use parking_lot::Mutex;
use platform::Selection;
use serde_json::{Value, json};

use crate::call::{Out, VersionedOut, call, destroy, optional_text, versioned, versioned_input};
use crate::failure::Failure;
use crate::handle::{Object, object};
use crate::status::hipcl_status;
use crate::text::hipcl_text;
use crate::values::{
    _cl_command_queue, _cl_context, _cl_device_id, _cl_platform_id, Format, HIPCL_GRADE_AUTO, HIPCL_POLICY_DIRECT_ONLY,
    HIPCL_ROUTE_AUTO, format, grade, hipcl_format, hipcl_grade, hipcl_policy, hipcl_route, ihipStream_t, policy, route,
};

/// What a hipcl_bridge points to.
pub enum hipcl_bridge_s {}
/// One OpenCL device and one HIP device that are the same hardware, proven to share memory.
pub type hipcl_bridge = *mut hipcl_bridge_s;

pub(crate) struct BridgeObject(pub(crate) Bridge, Streams);
object!(BridgeObject, hipcl_bridge_s, Bridge);

/// The streams of a bridge that have handles. One stream is one value, whatever the number of its handles: accesses and
/// records tell streams apart by that.
type Streams = Mutex<Vec<Weak<hip::Stream>>>;

impl BridgeObject {
    fn new(bridge: Bridge) -> Self {
        Self(bridge, Mutex::default())
    }

    /// The value of a stream that the caller names by HIP's handle.
    ///
    /// # Safety
    /// As [`hip::Stream::from_raw`] with `()` for its owner.
    pub(crate) unsafe fn stream(&self, raw: *mut ihipStream_t) -> Result<Arc<hip::Stream>, Failure> {
        let main = self.0.main_stream();
        if main.raw().cast() == raw {
            return Ok(self.known(main.clone()));
        }
        let mut streams = self.1.lock();
        streams.retain(|stream| stream.strong_count() > 0);
        let known = streams.iter().filter_map(Weak::upgrade);
        if let Some(known) = known.into_iter().find(|stream| stream.raw().cast() == raw) {
            return Ok(known);
        }
        // SAFETY: the caller's promise.
        let stream = Arc::new(unsafe { hip::Stream::from_raw(self.0.hip_device(), raw.cast(), ()) }?);
        streams.push(Arc::downgrade(&stream));
        Ok(stream)
    }

    /// The value of a stream of the library's own, to be found by its handle from now on.
    pub(crate) fn known(&self, stream: hip::Stream) -> Arc<hip::Stream> {
        let mut streams = self.1.lock();
        streams.retain(|stream| stream.strong_count() > 0);
        let stream = Arc::new(stream);
        streams.push(Arc::downgrade(&stream));
        stream
    }
}

/// What to pair and which routes to permit. hipcl_bridge_options_init() fills it with the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipcl_bridge_options {
    /// sizeof of this structure, set by the caller before the call.
    pub struct_size: usize,
    /// "amd", "nvidia" or "host"; null to choose by the environment variable HIPCL_PLATFORM, else by the devices present.
    pub platform: *const c_char,
    /// Exactly this route, or HIPCL_ROUTE_AUTO, the default.
    pub route: hipcl_route,
    /// What may be done where no direct route works. Default: HIPCL_POLICY_DIRECT_ONLY.
    pub policy: hipcl_policy,
    /// Exactly this hand-off, or HIPCL_GRADE_AUTO, the default.
    pub grade: hipcl_grade,
    /// The HIP device's ordinal, or -1, the default: hipcl_bridge_open() takes 0, and hipcl_bridge_adopt() the device of the
    /// stream, or for the default stream the one that pairs with the OpenCL device.
    pub hip_device: i32,
    /// The index of the OpenCL device, or -1, the default, to find the one that pairs with the HIP device.
    /// hipcl_bridge_adopt() does not use it.
    pub opencl_device: i32,
    /// Whether memory may be exported as a dma-buf by releases of ROCm that are known to crash. Default: 0.
    pub force_dma_buf: i32,
    /// The longest that one side waits for the other, in milliseconds. 0, the default, is 60 s, but no limit with
    /// HIPCL_GRADE_HOST.
    pub handoff_limit_ms: u64,
}

/// The handles that a bridge works with. None is retained for the caller: they last as long as the bridge.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipcl_native_handles {
    /// sizeof of this structure, set by the caller before the call.
    pub struct_size: usize,
    /// The OpenCL platform.
    pub platform: *mut _cl_platform_id,
    /// The one device of the context.
    pub device: *mut _cl_device_id,
    /// The OpenCL context.
    pub context: *mut _cl_context,
    /// The queue of the bridge's transfers.
    pub queue: *mut _cl_command_queue,
    /// The stream of the bridge's transfers; null for the default stream.
    pub stream: *mut ihipStream_t,
    /// The HIP device's ordinal.
    pub hip_device: i32,
}

/// Bytes that the copy calls of both APIs moved since a bridge was opened.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipcl_counters {
    /// sizeof of this structure, set by the caller before the call.
    pub struct_size: usize,
    /// Copies of the data set itself: 0 on a direct route.
    pub data_set: u64,
    /// Input, brought to the device by hipcl_buffer_upload().
    pub input: u64,
    /// Results, brought back by hipcl_buffer_download().
    pub result: u64,
    /// Scalars and the like.
    pub control: u64,
}

/// Where the programs of a bridge came from.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct hipcl_program_cache_stats {
    /// sizeof of this structure, set by the caller before the call.
    pub struct_size: usize,
    /// Requests answered from memory.
    pub memory_hits: u64,
    /// Requests answered from disk.
    pub disk_hits: u64,
    /// Requests that compiled.
    pub compiled: u64,
}

versioned! {
    hipcl_bridge_options 48;
    hipcl_native_handles 56;
    hipcl_counters 40;
    hipcl_program_cache_stats 32;
}

/// Fills options with the defaults.
///
/// @param options  A structure of which `struct_size` is set.
///
/// Errors: HIPCL_ERROR_ARGUMENT for null and for a wrong size.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_bridge_options_init(options: *mut hipcl_bridge_options) -> hipcl_status {
    call("hipcl_bridge_options_init", || {
        // SAFETY: the C caller's place for the structure.
        unsafe { VersionedOut::new(options, "options") }?.set(defaults());
        Ok(())
    })
}

fn defaults() -> hipcl_bridge_options {
    hipcl_bridge_options {
        struct_size: size_of::<hipcl_bridge_options>(),
        platform: std::ptr::null(),
        route: HIPCL_ROUTE_AUTO,
        policy: HIPCL_POLICY_DIRECT_ONLY,
        grade: HIPCL_GRADE_AUTO,
        hip_device: -1,
        opencl_device: -1,
        force_dma_buf: 0,
        handoff_limit_ms: 0,
    }
}

/// # Safety
/// `options` is null or the C caller's structure.
unsafe fn read(options: *const hipcl_bridge_options) -> Result<(Selection, Options), Failure> {
    let options = match options.is_null() {
        true => defaults(),
        // SAFETY: the caller's promise.
        false => unsafe { versioned_input(options, "options") }?,
    };
    let ordinal = |value: i32, field: &str| match value {
        -1 => Ok(None),
        value => usize::try_from(value).map(Some).map_err(|_| {
            Failure::argument(format!(
                "`options.{field}` is {value}; use a device's number, or -1 to leave it to the library"
            ))
        }),
    };
    let read = Options {
        route: route(options.route, "options.route")?,
        policy: policy(options.policy, "options.policy")?,
        grade: grade(options.grade, "options.grade")?,
        hip_device: ordinal(options.hip_device, "hip_device")?,
        opencl_device: ordinal(options.opencl_device, "opencl_device")?,
        handoff_limit: match options.handoff_limit_ms {
            0 => None,
            limit => Some(Duration::from_millis(limit)),
        },
        force_dma_buf: options.force_dma_buf != 0,
    };
    // SAFETY: null or the C caller's text.
    let selection = match unsafe { optional_text(options.platform, "options.platform") }? {
        Some(name) => platform::select_asked(name, "options.platform")?,
        None => platform::select()?,
    };
    Ok((selection, read))
}

/// Opens a bridge on fresh objects: it pairs the devices, creates an OpenCL context of one device, a queue and a stream,
/// and proves every route, which takes up to some seconds.
///
/// @param options  Options, or null for the defaults.
/// @param bridge   Receives the bridge, which the caller destroys with hipcl_bridge_destroy().
///
/// Errors: HIPCL_ERROR_NO_DEVICE without a platform or a pair of devices, HIPCL_ERROR_NOT_SUPPORTED if no permitted
/// route works, HIPCL_ERROR_ARGUMENT for wrong options, and what the drivers refuse.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_bridge_open(
    options: *const hipcl_bridge_options,
    bridge: *mut hipcl_bridge,
) -> hipcl_status {
    call("hipcl_bridge_open", || {
        // SAFETY: the C caller's place for a handle, and its options.
        let (place, (selection, options)) = unsafe { (Out::new(bridge, "bridge")?, read(options)?) };
        place.publish(BridgeObject::new(Bridge::open(&selection, &options)?))
    })
}

/// Opens a bridge on objects that the caller created. Context and queue are retained, and released once the bridge and
/// all of its objects are destroyed; the caller's own references stay the caller's. HIP does not count references of
/// streams: the caller destroys the stream only after that, and nothing captures it during a call. The bridge's own
/// transfers go through the queue and the stream, in order with the caller's work there; a hand-off waits for all
/// work in them.
///
/// @param context  A living cl_context of exactly one device.
/// @param device   That device.
/// @param queue    A living, in-order queue of the context.
/// @param stream   A living stream of the HIP device, from the HIP library of the chosen platform; null for the default
///                 stream of `options.hip_device`. On the platform "host" the HIP library is inside of this one: a stream comes from
///                 hipcl_stream_native() or hipcl_bridge_native().
/// @param options  Options, or null for the defaults.
/// @param bridge   Receives the bridge, which the caller destroys with hipcl_bridge_destroy().
///
/// Errors: HIPCL_ERROR_ARGUMENT for null, for a context of several devices, and for objects that do not belong
/// together; otherwise as hipcl_bridge_open(). A handle that is neither null nor alive is undefined behaviour, as in
/// OpenCL.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_bridge_adopt(
    context: *mut _cl_context,
    device: *mut _cl_device_id,
    queue: *mut _cl_command_queue,
    stream: *mut ihipStream_t,
    options: *const hipcl_bridge_options,
    bridge: *mut hipcl_bridge,
) -> hipcl_status {
    call("hipcl_bridge_adopt", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(bridge, "bridge") }?;
        for (is_null, argument) in [
            (context.is_null(), "context"),
            (device.is_null(), "device"),
            (queue.is_null(), "queue"),
        ] {
            if is_null {
                return Err(Failure::argument(format!("`{argument}` is null; pass OpenCL's handle")));
            }
        }
        // SAFETY: the C caller's options.
        let (selection, options) = unsafe { read(options) }?;
        let objects = ForeignObjects {
            context: context.cast(),
            device: device.cast(),
            queue: queue.cast(),
            stream: stream.cast(),
        };
        // SAFETY: the C caller's objects are alive; the stream outlives all that is used on it and is not captured
        // during calls.
        place.publish(BridgeObject::new(unsafe {
            Bridge::adopt(&selection, objects, &options)
        }?))
    })
}

/// Destroys the handle. Buffers, queues and other objects of the bridge keep what they need of it and may be destroyed
/// later, in any order.
///
/// Errors: HIPCL_ERROR_HANDLE, HIPCL_ERROR_STALE_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn hipcl_bridge_destroy(bridge: hipcl_bridge) -> hipcl_status {
    destroy::<BridgeObject>("hipcl_bridge_destroy", bridge, "bridge")
}

/// The handles that the bridge works with, for calls of OpenCL and HIP.
///
/// @param bridge   A bridge.
/// @param handles  Receives them; release none. Its `struct_size` is set.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_bridge_native(bridge: hipcl_bridge, handles: *mut hipcl_native_handles) -> hipcl_status {
    call("hipcl_bridge_native", || {
        // SAFETY: the C caller's place for the structure.
        let place = unsafe { VersionedOut::new(handles, "handles") }?;
        let native = BridgeObject::of(bridge, "bridge")?.0.native_handles();
        place.set(hipcl_native_handles {
            struct_size: size_of::<hipcl_native_handles>(),
            platform: native.platform.cast(),
            device: native.device.cast(),
            context: native.context.cast(),
            queue: native.queue.cast(),
            stream: native.stream.cast(),
            hip_device: i32::try_from(native.hip_device).unwrap_or(i32::MAX),
        });
        Ok(())
    })
}

/// What was found when the bridge was opened: platform, devices, routes and hand-offs, each with the reason where it does
/// not work; and what went wrong since: failovers from one route to another.
///
/// @param bridge  A bridge.
/// @param format  HIPCL_FORMAT_TEXT or HIPCL_FORMAT_JSON.
/// @param report  Receives the report, which the caller destroys with hipcl_text_destroy().
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_bridge_report(
    bridge: hipcl_bridge,
    format: hipcl_format,
    report: *mut hipcl_text,
) -> hipcl_status {
    call("hipcl_bridge_report", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(report, "report") }?;
        let bridge = BridgeObject::of(bridge, "bridge")?;
        place.text(match self::format(format)? {
            Format::Json => format!("{:#}", as_json(&bridge.0)),
            Format::Text => as_text(&bridge.0),
        })
    })
}

fn as_json(bridge: &Bridge) -> Value {
    let report = bridge.report();
    let routes = report.routes.iter().map(|route| {
        json!({
            "route": route.route.name(),
            "works": route.works(),
            "residency": route.outcome.as_ref().ok().map(ToString::to_string),
            "reason": route.outcome.as_ref().err(),
        })
    });
    let grades = bridge.grades().iter().map(|grade| {
        let mechanisms = grade.outcome.as_ref().ok();
        json!({
            "grade": grade.grade.to_string(),
            "works": grade.works(),
            "opencl_to_hip": mechanisms.map(|it| it.cl_to_hip),
            "hip_to_opencl": mechanisms.map(|it| it.hip_to_cl),
            "reason": grade.outcome.as_ref().err(),
        })
    });
    let failovers = bridge.failovers();
    let failovers = failovers
        .iter()
        .map(|it| json!({ "from": it.from.name(), "to": it.to.name(), "during": it.during, "reason": it.reason }));
    json!({
        "platform": report.platform.to_string(),
        "platform_why": report.platform_why,
        "hip_device": report.hip_device,
        "hip_pci": report.hip_pci,
        "opencl_device": report.opencl_device,
        "opencl_platform": report.opencl_platform,
        "opencl_library": report.opencl_library.to_string_lossy(),
        "pairing": report.pairing.to_string(),
        "route": bridge.route().name(),
        "grade": bridge.grade().to_string(),
        "opencl_counted": report.opencl_counted,
        "routes": routes.collect::<Value>(),
        "grades": grades.collect::<Value>(),
        "failovers": failovers.collect::<Value>(),
    })
}

fn as_text(bridge: &Bridge) -> String {
    let report = bridge.report();
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name:<16} {value}");
    };
    line("platform", format!("{} ({})", report.platform, report.platform_why));
    line("HIP device", report.hip_device.clone());
    line("OpenCL device", report.opencl_device.clone());
    line("OpenCL platform", report.opencl_platform.clone());
    line("OpenCL library", report.opencl_library.display().to_string());
    line("paired by", report.pairing.to_string());
    line("route", bridge.route().to_string());
    line("hand-off", bridge.grade().to_string());
    for route in &report.routes {
        let outcome = match &route.outcome {
            Ok(residency) => format!("{}: works, {residency}", route.route),
            Err(reason) => format!("{}: {reason}", route.route),
        };
        line("  route", outcome);
    }
    for grade in bridge.grades() {
        let outcome = match &grade.outcome {
            Ok(by) => format!("{}: works, by {} and {}", grade.grade, by.cl_to_hip, by.hip_to_cl),
            Err(reason) => format!("{}: {reason}", grade.grade),
        };
        line("  hand-off", outcome);
    }
    for it in bridge.failovers() {
        line(
            "  failover",
            format!("{} to {} during {}: {}", it.from, it.to, it.during, it.reason),
        );
    }
    text
}

/// The bytes that both APIs' copy calls moved since the bridge was opened, through the tables of this bridge. Copies
/// that the caller makes by OpenCL's or HIP's own functions are not counted.
///
/// @param bridge    A bridge.
/// @param counters  Receives the bytes. Its `struct_size` is set.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_bridge_counters(bridge: hipcl_bridge, counters: *mut hipcl_counters) -> hipcl_status {
    call("hipcl_bridge_counters", || {
        // SAFETY: the C caller's place for the structure.
        let place = unsafe { VersionedOut::new(counters, "counters") }?;
        let counts = BridgeObject::of(bridge, "bridge")?.0.meter().snapshot();
        place.set(hipcl_counters {
            struct_size: size_of::<hipcl_counters>(),
            data_set: counts.data_set,
            input: counts.input,
            result: counts.result,
            control: counts.control,
        });
        Ok(())
    })
}

/// Where the bridge's programs came from so far. Programs are kept in memory and in the folder that HIPCL_CACHE_DIR
/// names, else in the user's cache folder.
///
/// @param bridge  A bridge.
/// @param stats   Receives the numbers. Its `struct_size` is set.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_bridge_program_cache(
    bridge: hipcl_bridge,
    stats: *mut hipcl_program_cache_stats,
) -> hipcl_status {
    call("hipcl_bridge_program_cache", || {
        // SAFETY: the C caller's place for the structure.
        let place = unsafe { VersionedOut::new(stats, "stats") }?;
        let stats = BridgeObject::of(bridge, "bridge")?.0.programs().stats();
        place.set(hipcl_program_cache_stats {
            struct_size: size_of::<hipcl_program_cache_stats>(),
            memory_hits: stats.memory_hits,
            disk_hits: stats.disk_hits,
            compiled: stats.compiled,
        });
        Ok(())
    })
}

/// Takes the errors that could not be returned, because they came up when something was destroyed: of buffers, streams,
/// queues, BLAS handles, programs and what they keep. One line each, HIP's errors last; empty if there are none. At
/// most 64 of each API are kept. Call it before hipcl_bridge_destroy(): errors that come up later are
/// lost.
///
/// @param bridge  A bridge.
/// @param errors  Receives the text, which the caller destroys with hipcl_text_destroy().
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_bridge_take_deferred_errors(
    bridge: hipcl_bridge,
    errors: *mut hipcl_text,
) -> hipcl_status {
    call("hipcl_bridge_take_deferred_errors", || {
        // SAFETY: the C caller's place for a handle.
        let place = unsafe { Out::new(errors, "errors") }?;
        let bridge = &BridgeObject::of(bridge, "bridge")?.0;
        let mut lines: Vec<String> = Vec::new();
        lines.extend(bridge.take_deferred_errors().iter().map(ToString::to_string));
        lines.extend(
            bridge
                .cl_context()
                .take_deferred_errors()
                .iter()
                .map(ToString::to_string),
        );
        let runtime = bridge.hip_device().runtime();
        lines.extend(runtime.take_deferred_errors().iter().map(ToString::to_string));
        place.text(lines.iter().map(|line| format!("{line}\n")).collect())
    })
}
