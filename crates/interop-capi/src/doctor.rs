//! The findings of the command `hipcl doctor`.
//!
//! The doctor tries everything that may crash or hang in child processes, and each of them is the command itself. So the
//! library runs the command, and does not contain it.

use std::ffi::c_char;
use std::io::ErrorKind;
use std::process::{Command, Stdio};

use crate::call::{Out, call, optional_text};
use crate::failure::Failure;
use crate::status::{HIPCL_ERROR_FAILED, hipcl_status};
use crate::text::hipcl_text;
use crate::values::{Format, format, hipcl_format};

/// Examines this machine: libraries, devices, the system around them, routes and hand-offs. Runs the command
/// `hipcl doctor`, which tries each in a child process with a time limit, and waits for it: some seconds, and a minute
/// for whatever hangs.
///
/// @param program  The path of the command, or a name that is looked up in PATH; null for "hipcl".
/// @param format   HIPCL_FORMAT_TEXT or HIPCL_FORMAT_JSON.
/// @param report   Receives the findings, which the caller destroys with hipcl_text_destroy(). That no route works is a
///                 finding, not an error.
///
/// Errors: HIPCL_ERROR_SYSTEM if the command cannot be started or read, HIPCL_ERROR_OUT_OF_MEMORY if the system has no
/// memory for it, HIPCL_ERROR_FAILED with its first line if it fails.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn hipcl_doctor(
    program: *const c_char,
    format: hipcl_format,
    report: *mut hipcl_text,
) -> hipcl_status {
    call("hipcl_doctor", || {
        // SAFETY: the C caller's place for a handle, and its text.
        let (place, program) = unsafe { (Out::new(report, "report")?, optional_text(program, "program")?) };
        let format = self::format(format)?;
        place.text(examine(program.unwrap_or("hipcl"), format)?)
    })
}

/// The system's refusal, with its code.
fn of_system(error: &std::io::Error, what: &str, remedy: &str) -> Failure {
    Failure {
        text: format!("{what}: {error}{remedy}"),
        ..Failure::from_io(error)
    }
}

fn examine(program: &str, format: Format) -> Result<String, Failure> {
    let mut command = Command::new(program);
    command.arg("doctor").stdin(Stdio::null());
    if format == Format::Json {
        command.arg("--json");
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::NotFound => "; pass the path of the command hipcl, or put its folder into PATH",
            ErrorKind::PermissionDenied => "; pass the path of a program that may be executed",
            _ => "",
        };
        of_system(&error, &format!("cannot start `{program}`"), remedy)
    })?;
    let output = child.wait_with_output();
    let output =
        output.map_err(|error| of_system(&error, &format!("cannot read what `{program} doctor` prints"), ""))?;
    // 1 says that no direct route works.
    if !matches!(output.status.code(), Some(0 | 1)) || output.stdout.is_empty() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let first = errors.lines().next().unwrap_or("it printed nothing");
        let status = output.status;
        return Err(Failure::new(
            HIPCL_ERROR_FAILED,
            format!("`{program} doctor` ended with {status}: {first}"),
        ));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| Failure::new(HIPCL_ERROR_FAILED, format!("`{program} doctor` did not print UTF-8")))
}
