//! Drivers that export no OpenCL function but the ICD entry points.
//!
//! The extension `cl_khr_icd` says how a loader reaches such a driver: `clIcdGetPlatformIDsKHR`
//! returns its platforms, and the first field of every object points at the table of functions.

use std::ffi::{CStr, c_char, c_void};

use opencl_sys::cl_icd::_cl_icd_dispatch as Dispatch;

use crate::api::extension::clIcdGetPlatformIDsKHR;
use crate::api::{Api, core_functions};
use crate::handle::Handle;
use crate::platform;

type GetAddress = unsafe extern "C" fn(*const c_char) -> *mut c_void;

/// The platforms of a driver, each with the table that its objects carry.
pub(crate) fn open(
    exported: &Api,
    resolve: &dyn Fn(&CStr) -> Option<*mut c_void>,
    hook: &dyn Fn(&mut Api),
) -> Result<Vec<(Handle, Api)>, String> {
    const ENTRY: &CStr = c"clIcdGetPlatformIDsKHR";
    let address = resolve(ENTRY).or_else(|| {
        let lookup = resolve(c"clGetExtensionFunctionAddress")?;
        // SAFETY: a library that exports this name is an OpenCL driver, and this is its signature.
        let lookup = unsafe { std::mem::transmute::<*mut c_void, GetAddress>(lookup) };
        // SAFETY: the name is a C string; the driver only reads it.
        let address = unsafe { lookup(ENTRY.as_ptr()) };
        (!address.is_null()).then_some(address)
    });
    let Some(address) = address else {
        return Err(match exported.clGetPlatformIDs {
            None => "it exports neither clGetPlatformIDs nor clIcdGetPlatformIDsKHR".to_owned(),
            // what sent it here
            Some(_) => "it exports clGetPlatformIDs, but neither clCreateContext nor clIcdGetPlatformIDsKHR, so it is not a complete OpenCL library".to_owned(),
        });
    };
    // SAFETY: `cl_khr_icd` gives this name this signature, and a data pointer has the size and the
    // validity of an `Option` of a function pointer.
    let get = unsafe { std::mem::transmute::<*mut c_void, clIcdGetPlatformIDsKHR>(address) };
    let Some(get) = get else {
        return Err("its clIcdGetPlatformIDsKHR is null".to_owned());
    };
    let platforms = platform::collect("clIcdGetPlatformIDsKHR", |entries, ids, count| {
        // SAFETY: `ids` is null with `entries` zero, or has room for `entries` handles; `count` is
        // a valid place.
        unsafe { get(entries, ids, count) }
    })
    .map_err(|error| error.to_string())?;
    if platforms.is_empty() {
        return Err("it reports no platform".to_owned());
    }
    let tables: Vec<(Handle, Api)> = platforms
        .into_iter()
        .filter_map(|platform| {
            // SAFETY: `cl_khr_icd`: "Every OpenCL object … must have a pointer to its dispatch
            // table as its first field", and the platform is such an object of this driver.
            let mut api = unsafe { table_of(platform, exported) }?;
            hook(&mut api);
            Some((platform, api))
        })
        .collect();
    if tables.is_empty() {
        return Err("its platforms have no dispatch table, which `cl_khr_icd` requires".to_owned());
    }
    Ok(tables)
}

/// Reads the dispatch table of a platform; there is none if the object's pointer to it is null.
///
/// The table of an old driver ends where its OpenCL version ended, so no field is read before the version that brought
/// it is known to be there.
///
/// # Safety
///
/// `platform` is a platform of a driver with `cl_khr_icd`.
unsafe fn table_of(platform: Handle, exported: &Api) -> Option<Api> {
    let mut api = *exported;
    // SAFETY: the caller's promise: the first field is the pointer to the table.
    let table: *const Dispatch = unsafe { *platform.0.cast::<*const Dispatch>() };
    if table.is_null() {
        return None;
    }
    // The version is asked for with functions of 1.0; until then nothing later is read.
    // SAFETY: every table has the functions of 1.0.
    unsafe { take(&mut api, table, (1, 0)) };
    let version = platform::version(&api, platform)
        .ok()
        .and_then(|text| platform::version_numbers(&text))
        .unwrap_or((1, 0));
    // SAFETY: the table has the functions of the platform's version.
    unsafe { take(&mut api, table, version) };
    Some(api)
}

/// Takes the functions of OpenCL up to `version` out of a dispatch table.
///
/// The fields have opencl-sys' types and the slots those of Khronos' headers, so this also holds the one against the
/// other.
///
/// # Safety
///
/// `table` is a dispatch table that has the functions of this version.
unsafe fn take(api: &mut Api, table: *const Dispatch, version: (u32, u32)) {
    macro_rules! fields {
        ($($name:ident $major:literal $minor:literal;)*) => {
            $(if ($major, $minor) <= version {
                // SAFETY: the field lies within the table, by its version, and is read as a copy.
                let function = unsafe { (&raw const (*table).$name).read() };
                // A field that the driver leaves empty takes nothing away from what it exports.
                api.$name = function.or(api.$name);
            })*
        };
    }
    core_functions!(fields);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicPtr;

    use opencl_sys::{cl_int, cl_platform_id, cl_uint};

    use super::*;

    /// A platform: the pointer to its table, which is missing.
    static PLATFORM: AtomicPtr<Dispatch> = AtomicPtr::new(std::ptr::null_mut());

    unsafe extern "C" fn one_platform(_: cl_uint, platforms: *mut cl_platform_id, count: *mut cl_uint) -> cl_int {
        if !platforms.is_null() {
            // SAFETY: the caller gives a place for one, or null.
            unsafe { *platforms = PLATFORM.as_ptr().cast() };
        }
        if !count.is_null() {
            // SAFETY: the caller gives a valid place, or null.
            unsafe { *count = 1 };
        }
        0
    }

    #[test]
    fn a_platform_without_a_table_is_refused_and_not_followed() {
        let resolve = |name: &CStr| {
            let known = name == c"clIcdGetPlatformIDsKHR";
            known.then_some(one_platform as *const () as *mut c_void)
        };
        let refused = open(&Api::EMPTY, &resolve, &|_| panic!("there is nothing to hook"));
        let reason = refused.expect_err("no table");
        assert!(reason.contains("no dispatch table"), "{reason}");
    }

    #[test]
    fn half_a_library_is_refused_for_what_it_lacks() {
        let half = Api {
            clGetPlatformIDs: Some(one_platform),
            ..Api::EMPTY
        };
        let reason = open(&half, &|_| None, &|_| {}).expect_err("half");
        assert!(
            reason.contains("exports clGetPlatformIDs, but neither clCreateContext"),
            "{reason}"
        );
        let reason = open(&Api::EMPTY, &|_| None, &|_| {}).expect_err("none");
        assert!(reason.contains("exports neither clGetPlatformIDs"), "{reason}");
    }
}
