//! The real libraries only: the software device and its compiler back end are left out.

fn main() {
    match platform::select_named(Some("amd")) {
        Ok(selection) => println!("{}", selection.why),
        Err(error) => eprintln!("{error}"),
    }
}
