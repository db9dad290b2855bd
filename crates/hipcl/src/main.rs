//! The command `hipcl`.

use std::process::ExitCode;

fn main() -> ExitCode {
    hipcl::cli::main(std::env::args_os())
}
