//! Says which functions for communicators this machine's RCCL has.

fn main() {
    match rccl_sys::Api::load() {
        Ok((rccl, library)) => {
            println!("{}", library.path().display());
            for name in rccl.present().filter(|name| name.starts_with("ncclComm")) {
                println!("{name}");
            }
        }
        Err(error) => eprintln!("{error}"),
    }
}
