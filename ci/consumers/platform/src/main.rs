//! Says which platform was chosen, and why.

fn main() -> Result<(), platform::Error> {
    let selection = platform::select()?;
    println!("{}: {}", selection.platform(), selection.why);
    for library in &selection.libraries {
        println!("{}: {}", library.name, library.state);
    }
    Ok(())
}
