//! Which compilations can be cached, and under which key.

use kernel_cache::{NotUnderstood, Scan};

use super::compiler::Compiler;
use super::options::Options;
use super::{BUILT_IN, HALF_HEADERS, Program, is_inside};

/// Checks that the compiler reads only what the program provides and what is built into the host
/// platform.
pub(super) fn reads_no_file(
    program: &Program,
    expressions: &[String],
    options: &Options,
    compiler: &Compiler,
) -> Result<(), NotUnderstood> {
    kernel_cache::unset(&kernel_cache::INCLUDE_VARIABLES)?;
    let mut scan = Scan::default();
    let all = options.preprocessor.iter().chain(&options.both);
    scan.options(all.map(String::as_str))?;
    scan.options(compiler.options())?;
    let headers = program.headers.iter().map(|(_, text)| text);
    let texts = std::iter::once(&program.source).chain(headers);
    for text in texts.chain(expressions) {
        for name in scan.text(text)? {
            let is_given = is_inside(&name) && program.headers.iter().any(|(own, _)| *own == name);
            let is_ours = BUILT_IN.contains(&name.as_str()) || HALF_HEADERS.contains(&name.as_str());
            if !is_given && !is_ours {
                return Err(NotUnderstood::new(format!(
                    "the program has no header `{name}`, which it includes"
                )));
            }
        }
    }
    Ok(())
}

/// Whether the preprocessor output holds everything the compiler reads, and is the same on every run.
pub(super) fn is_all_in(text: &str, program: &Program, options: &Options, compiler: &Compiler) -> bool {
    let mut scan = Scan::default();
    let understood = scan
        .options(options.both.iter().map(String::as_str))
        .and_then(|()| scan.options(compiler.options()));
    // An assembler can read files itself.
    let is_whole = Scan::preprocessed(text).is_ok();
    let headers = program.headers.iter().map(|(_, text)| text);
    let mut texts = std::iter::once(&program.source).chain(headers);
    let changes = |text: &String| {
        ["__TIME__", "__DATE__", "__TIMESTAMP__"]
            .iter()
            .any(|it| text.contains(it))
    };
    understood.is_ok() && is_whole && !texts.any(changes)
}
