//! Lists what the test double of RCCL has.

fn main() {
    for name in hip_host_rccl::rccl_api().present() {
        println!("{name}");
    }
}
