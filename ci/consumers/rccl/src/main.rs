//! A table without functions has no version, and says so.

fn main() {
    // SAFETY: no slot is filled.
    let library = unsafe { rccl::Library::from_tables(std::sync::Arc::default()) };
    match library.version() {
        Ok(version) => println!("{version}"),
        Err(error) => eprintln!("{error}"),
    }
}
