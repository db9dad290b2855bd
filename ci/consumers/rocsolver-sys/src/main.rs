//! Says which factorisations this machine's rocSOLVER has.

fn main() {
    match rocsolver_sys::Api::load() {
        Ok((solver, library)) => {
            println!("{}", library.path().display());
            for name in solver.present().filter(|name| name.ends_with("potrf")) {
                println!("{name}");
            }
        }
        Err(error) => eprintln!("{error}"),
    }
}
