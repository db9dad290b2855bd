//! Lists what the test double of RCCL has.

fn main() {
    let rccl = hip_host_rccl::rccl_api();
    for name in rccl.present() {
        println!("{name}");
    }
}
