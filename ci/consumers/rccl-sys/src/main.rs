//! Says which functions for communicators this machine's RCCL has.

fn main() {
    // On NVIDIA's GPUs: `load_nccl`.
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
