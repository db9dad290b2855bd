//! The nvidia platform: OpenCL's PTX for CUDA.
//!
//! NVIDIA's OpenCL returns PTX as the binary. CUDA loads the same language, but passes less and has fewer kinds of
//! pointer (PTX ISA, "Environment registers `%envreg<32>`" and "Kernel Function Parameter Attributes: `.ptr`"). What
//! NVIDIA's OpenCL compiler writes, and what becomes of it:
//!
//! | in OpenCL's text | here |
//! |---|---|
//! | `.target sm_90, texmode_independent` | without `texmode_independent` |
//! | `.ptr .global .align 4` in a parameter list | dropped |
//! | `%envreg0` to `2`, the first group | 0 |
//! | `%envreg3` to `5`, the global offset, and `%envreg9`, the dimensions | parameters of the kernel, behind its own |
//! | `%envreg6` to `8`, the number of groups | `%nctaid.x` to `.z` |
//! | a `.ptr .shared` parameter | an offset into one array of dynamic shared memory |
//! | `ld.const` through a register | a generic `ld` |
//! | the address of a `.const` array | made generic, so both kinds of `constant` pointer are ordinary addresses |
//! | `.func vprintf`, declared | `.extern`, as CUDA's own compiler declares it |
//! | `.metadata_section` | dropped |
//! | the build option `-cl-nv-maxrregcount=64` | `.maxnreg 64` for kernels without a size of their own, as OpenCL counts it |
//!
//! A text with anything of these in another form is refused.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use super::layout::{Hidden, Image, Layout, Parameter, STRICTEST, What};

/// The array of dynamic shared memory that `local` arguments lie in.
const LOCAL: &str = "hipcl_local";
/// What CUDA offers to a module of the functions that it does not define itself.
const PROVIDED: [&str; 1] = ["vprintf"];

/// Why code cannot be loaded.
type Refused = String;

/// Reads the PTX that OpenCL's compiler made with these options, and makes CUDA's of it.
pub(super) fn image(binary: &[u8], options: &str) -> Result<Image, Refused> {
    let end = binary.iter().position(|byte| *byte == 0);
    let text = std::str::from_utf8(&binary[..end.unwrap_or(binary.len())]).map_err(|_| not_ptx())?;
    if !text.lines().any(|line| line.starts_with(".version ")) {
        return Err(not_ptx());
    }
    // The driver gives a C string.
    if end.is_none() {
        return Err("its PTX is truncated".to_owned());
    }
    let mut change = Change::of(text)?;
    change.registers = registers(options);
    for line in text.lines() {
        change.line(line)?;
    }
    change.finish()
}

fn not_ptx() -> Refused {
    "its binary is not PTX".to_owned()
}

/// Where in the text a line stands.
enum Place {
    /// Between functions.
    Outside,
    /// In a kernel's parameter list.
    Parameters,
    /// Behind a kernel's parameter list, or in its body.
    Kernel,
    /// In a function that is not a kernel, or in the declaration of one.
    Function,
    /// What OpenCL's runtime reads about the kernels' parameters; CUDA does not.
    Metadata,
}

struct Change<'t> {
    out: String,
    place: Place,
    /// The kernel that the line belongs to.
    name: &'t str,
    layout: Layout,
    /// The kernel's `.ptr .shared` parameters.
    shared: HashSet<&'t str>,
    /// Braces that are open.
    depth: usize,
    /// The most registers that a work-item may have.
    registers: Option<u32>,
    /// Whether the kernel demands a size of its work-groups.
    is_sized: bool,
    /// Functions that were declared and not yet defined.
    declared: HashSet<&'t str>,
    /// The function that the line belongs to.
    function: &'t str,
    /// The module's `.const` arrays.
    constants: HashSet<&'t str>,
    /// What each kernel of the module reads of its launch; known before its parameter list is written.
    reads: HashMap<&'t str, Vec<What>>,
    kernels: HashMap<String, Layout>,
}

impl<'t> Change<'t> {
    /// Looks for what has to be known before the first line is changed.
    fn of(text: &'t str) -> Result<Self, Refused> {
        let mut constants = HashSet::new();
        let mut reads: HashMap<&str, Vec<What>> = HashMap::new();
        let mut kernel = None;
        for line in text.lines().map(without_comment) {
            if let Some(name) = entry_name(line) {
                kernel = Some(name);
            } else if words(line).any(|word| word == ".func") {
                kernel = None;
            }
            if let Some(name) = constant_name(line) {
                constants.insert(name);
            }
            for register in environment(line) {
                let Some(what) = launched(register) else {
                    continue;
                };
                let Some(kernel) = kernel else {
                    return Err(format!(
                        "a function in its PTX that is not a kernel reads %envreg{register}"
                    ));
                };
                let read = reads.entry(kernel).or_default();
                if !read.contains(&what) {
                    read.push(what);
                }
            }
        }
        for list in reads.values_mut() {
            list.sort_by_key(|what| parameter_name("", *what));
        }
        let change = Self {
            out: String::with_capacity(text.len() + 1024),
            place: Place::Outside,
            name: "",
            layout: Layout::default(),
            shared: HashSet::new(),
            depth: 0,
            registers: None,
            is_sized: false,
            declared: HashSet::new(),
            function: "",
            constants,
            reads,
            kernels: HashMap::new(),
        };
        change.check_initialisers(text)?;
        Ok(change)
    }

    /// An address in a constant's initial value would be one of constant memory, which is not an ordinary address.
    fn check_initialisers(&self, text: &str) -> Result<(), Refused> {
        for line in text.lines().map(without_comment) {
            let Some((_, value)) = line.split_once('=') else {
                continue;
            };
            if symbols(value).any(|symbol| self.constants.contains(symbol)) {
                return Err("its PTX stores the address of a `constant` in another `constant`".to_owned());
            }
        }
        Ok(())
    }

    fn line(&mut self, line: &'t str) -> Result<(), Refused> {
        let code = without_comment(line);
        match self.place {
            Place::Outside => self.outside(line, code)?,
            Place::Parameters => self.parameter(line, code)?,
            Place::Kernel | Place::Function => self.statement(line, code)?,
            Place::Metadata => {}
        }
        self.depth += code.matches('{').count();
        self.depth = self
            .depth
            .checked_sub(code.matches('}').count())
            .ok_or("its PTX has unmatched braces")?;
        if matches!(self.place, Place::Function) && self.depth == 0 && code.trim_end().ends_with(';') {
            // It was a declaration.
            self.declared.insert(self.function);
            self.place = Place::Outside;
        }
        if code.contains('}') && self.depth == 0 {
            match self.place {
                Place::Kernel => {
                    let layout = std::mem::take(&mut self.layout);
                    self.kernels.insert(self.name.to_owned(), layout);
                    self.place = Place::Outside;
                }
                Place::Function => {
                    self.declared.remove(self.function);
                    self.place = Place::Outside;
                }
                Place::Metadata => self.place = Place::Outside,
                // The end of an initial value.
                Place::Outside => {}
                Place::Parameters => return Err(unknown(line)),
            }
        }
        Ok(())
    }

    fn outside(&mut self, line: &'t str, code: &'t str) -> Result<(), Refused> {
        if words(code).next() == Some(".target") {
            self.push(&line.replace(", texmode_independent", ""));
        } else if words(code).next() == Some(".address_size") {
            self.push(line);
            self.push(&format!(".extern .shared .align {STRICTEST} .b8 {LOCAL}[];"));
        } else if let Some(name) = entry_name(code) {
            self.name = name;
            self.is_sized = false;
            self.shared.clear();
            self.layout = Layout::default();
            let list = code.split_once('(').map(|(_, list)| list.trim());
            match list {
                Some("") => {
                    self.place = Place::Parameters;
                    self.push(line);
                }
                // No parameter.
                Some(")") => {
                    self.place = Place::Kernel;
                    let (head, _) = line.split_once('(').unwrap_or((line, ""));
                    self.push(&format!("{head}("));
                    self.push_hidden();
                    self.push(")");
                }
                _ => return Err(unknown(line)),
            }
        } else if words(code).any(|word| word == ".func") {
            self.place = Place::Function;
            self.function = function_name(code).ok_or_else(|| unknown(line))?;
            let is_extern = words(code).any(|word| word == ".extern");
            match PROVIDED.contains(&self.function) && !is_extern {
                true => self.push(&format!(".extern {line}")),
                false => self.push(line),
            }
        } else if words(code).next() == Some(".metadata_section") {
            self.place = Place::Metadata;
        } else {
            self.push(line);
        }
        Ok(())
    }

    /// A line of a kernel's parameter list.
    fn parameter(&mut self, line: &'t str, code: &'t str) -> Result<(), Refused> {
        let code = code.trim();
        if code == ")" {
            self.place = Place::Kernel;
            if self.reads.contains_key(self.name) && !self.layout.parameters.is_empty() {
                let end = self.out.trim_end().len();
                self.out.truncate(end);
                self.push(",");
            }
            self.push_hidden();
            self.push(line);
            return Ok(());
        }
        let mut rest: Vec<&str> = words(code.trim_end_matches(',')).collect();
        if rest.first() != Some(&".param") {
            return Err(unknown(line));
        }
        if rest.iter().any(|word| word.ends_with("ref")) {
            return Err(format!("kernel `{}` takes an image or a sampler", self.name));
        }
        let name = rest.pop().ok_or_else(|| unknown(line))?;
        let parameter = match rest[1..] {
            [".u64", ".ptr", ".shared", ref align @ ..] => {
                self.shared.insert(name);
                Parameter::Local {
                    alignment: alignment(align).ok_or_else(|| unknown(line))?,
                }
            }
            [".u64", ".ptr", ".global" | ".const", ref align @ ..] => {
                alignment(align).ok_or_else(|| unknown(line))?;
                Parameter::Memory
            }
            [".align", _, ".b8"] => Parameter::Value {
                bytes: array_length(name).ok_or_else(|| unknown(line))?,
            },
            [kind] => Parameter::Value {
                bytes: bytes_of(kind).ok_or_else(|| unknown(line))?,
            },
            _ => return Err(unknown(line)),
        };
        self.layout.parameters.push(parameter);
        match parameter {
            Parameter::Value { .. } => self.push(line),
            _ => {
                let comma = if code.ends_with(',') { "," } else { "" };
                self.push(&format!("\t.param .u64 {name}{comma}"));
            }
        }
        Ok(())
    }

    /// The parameters for what the kernel reads of its launch.
    fn push_hidden(&mut self) {
        let read = self.reads.get(self.name).cloned().unwrap_or_default();
        for (index, what) in read.iter().enumerate() {
            let comma = if index + 1 < read.len() { "," } else { "" };
            let name = parameter_name(self.name, *what);
            self.push(&format!("\t.param .u32 {name}{comma}"));
            self.layout.hidden.push(Hidden { what: *what, bytes: 4 });
        }
    }

    /// A line of a body, or before it.
    fn statement(&mut self, line: &'t str, code: &'t str) -> Result<(), Refused> {
        if self.depth == 0 && matches!(self.place, Place::Kernel) {
            self.is_sized |= code.contains(".reqntid");
            if let Some(registers) = self.registers.filter(|_| code.contains('{') && !self.is_sized) {
                self.push(&format!(".maxnreg {registers}"));
            }
        }
        if environment(code).next().is_some() {
            return self.environment_read(line, code);
        }
        if code.contains("cvta.const") || code.contains("cvta.to.const") {
            return Err(unknown(line));
        }
        if let Some((_, address)) = code.split_once("ld.const") {
            let through_register = address
                .split_once('[')
                .is_some_and(|(_, at)| at.trim_start().starts_with('%'));
            match through_register {
                true => self.push(&line.replacen("ld.const", "ld", 1)),
                false => self.push(line),
            }
            return Ok(());
        }
        if let Some(symbol) = symbols(code).find(|symbol| self.constants.contains(symbol)) {
            let (target, source) = moved(code).ok_or_else(|| unknown(line))?;
            if source.split('+').next().map(str::trim) != Some(symbol) {
                return Err(unknown(line));
            }
            self.push(line);
            self.push(&format!("\tcvta.const.u64 \t{target}, {target};"));
            return Ok(());
        }
        if let Some(parameter) = symbols(code).find(|symbol| self.shared.contains(symbol)) {
            let loaded = code
                .trim()
                .strip_prefix("ld.param.u64")
                .or_else(|| code.trim().strip_prefix("ld.param.b64"));
            let (target, source) = loaded.and_then(operands).ok_or_else(|| unknown(line))?;
            if source != format!("[{parameter}]") {
                return Err(unknown(line));
            }
            self.push(line);
            self.push(&format!(
                "\t{{ .reg .u64 %hipcl; mov.u64 %hipcl, {LOCAL}; add.u64 {target}, {target}, %hipcl; }}"
            ));
            return Ok(());
        }
        self.push(line);
        Ok(())
    }

    fn environment_read(&mut self, line: &str, code: &str) -> Result<(), Refused> {
        let (target, source) = moved(code).ok_or_else(|| unknown(line))?;
        let register: u32 = source
            .strip_prefix("%envreg")
            .and_then(|number| number.parse().ok())
            .ok_or_else(|| unknown(line))?;
        let changed = match (register, launched(register)) {
            (_, Some(what)) => {
                format!("\tld.param.u32 \t{target}, [{}];", parameter_name(self.name, what))
            }
            (0..=2, _) => format!("\tmov.u32 \t{target}, 0;"),
            (6, _) => format!("\tmov.u32 \t{target}, %nctaid.x;"),
            (7, _) => format!("\tmov.u32 \t{target}, %nctaid.y;"),
            (8, _) => format!("\tmov.u32 \t{target}, %nctaid.z;"),
            _ => return Err(unknown(line)),
        };
        self.push(&changed);
        Ok(())
    }

    fn push(&mut self, line: &str) {
        let _ = writeln!(self.out, "{line}");
    }

    fn finish(self) -> Result<Image, Refused> {
        if !matches!(self.place, Place::Outside) || self.depth != 0 {
            return Err("its PTX is truncated".to_owned());
        }
        if let Some(name) = self.declared.iter().find(|name| !PROVIDED.contains(*name)) {
            return Err(format!("it calls `{name}`, which CUDA does not provide"));
        }
        if self.kernels.is_empty() {
            return Err("its binary has no kernel".to_owned());
        }
        let code = self.out.lines().map(without_comment);
        for left in [
            "%envreg",
            ".ptr",
            "texmode_independent",
            "texref",
            "samplerref",
            "surfref",
        ] {
            if let Some(line) = code.clone().find(|line| line.contains(left)) {
                return Err(unknown(line));
            }
        }
        let mut code = self.out.into_bytes();
        code.push(0);
        Ok(Image {
            code,
            kernels: self.kernels,
        })
    }
}

fn unknown(line: &str) -> Refused {
    format!("its PTX has an unknown line, `{}`", line.trim())
}

fn without_comment(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace()
}

/// The names in a line, without directives and registers.
fn symbols(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.' | '%');
    line.split(move |c| !is_part(c))
        .filter(|word| word.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$')))
}

/// The kernel that a line begins.
fn entry_name(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(".entry ")?;
    let name = rest.split('(').next()?.trim();
    (!name.is_empty()).then_some(name)
}

/// The function that a line begins: `.func (.param .b32 result) name` or `.func name(`.
fn function_name(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(".func")?;
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix('(') {
        Some(result) => result.split_once(')')?.1,
        None => rest,
    };
    symbols(rest).next()
}

/// The array of constant memory that a line declares.
fn constant_name(line: &str) -> Option<&str> {
    words(line).take(2).find(|word| *word == ".const")?;
    let declaration = line.split('=').next()?.trim_end_matches(';').trim_end();
    let name = words(declaration).last()?;
    Some(name.split('[').next().unwrap_or(name))
}

/// The environment registers that a line reads.
fn environment(line: &str) -> impl Iterator<Item = u32> {
    line.split("%envreg").skip(1).map(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest[..digits].parse().unwrap_or(u32::MAX)
    })
}

/// What of the launch an environment register holds, where CUDA has no register for it.
fn launched(register: u32) -> Option<What> {
    match register {
        3..=5 => Some(What::Offset(register as usize - 3)),
        9 => Some(What::Dimensions),
        _ => None,
    }
}

fn parameter_name(kernel: &str, what: What) -> String {
    match what {
        What::Offset(axis) => format!("{kernel}_hipcl_offset_{axis}"),
        What::Dimensions => format!("{kernel}_hipcl_work_dim"),
    }
}

/// The limit passed to NVIDIA's OpenCL compiler.
fn registers(options: &str) -> Option<u32> {
    let given = words(options).filter_map(|option| option.strip_prefix("-cl-nv-maxrregcount="));
    given.last()?.parse().ok()
}

/// Target and source of an instruction that only moves.
fn moved(code: &str) -> Option<(&str, &str)> {
    let (instruction, rest) = code.trim().split_once(char::is_whitespace)?;
    matches!(instruction, "mov.u32" | "mov.b32" | "mov.u64" | "mov.b64").then_some(())?;
    operands(rest)
}

/// The two operands of an instruction that is alone on its line.
fn operands(rest: &str) -> Option<(&str, &str)> {
    let (target, source) = rest.trim().strip_suffix(';')?.split_once(',')?;
    let (target, source) = (target.trim(), source.trim());
    let is_one = target.starts_with('%') && !source.contains([',', ';']);
    is_one.then_some((target, source))
}

/// The alignment of what a pointer leads to.
fn alignment(words: &[&str]) -> Option<usize> {
    match words {
        [] => Some(STRICTEST),
        [".align", number] => number
            .parse()
            .ok()
            .filter(|align: &usize| align.is_power_of_two() && *align <= STRICTEST),
        _ => None,
    }
}

/// The number in `name[12]`.
fn array_length(name: &str) -> Option<usize> {
    name.strip_suffix(']')?.split_once('[')?.1.parse().ok()
}

fn bytes_of(kind: &str) -> Option<usize> {
    match kind {
        ".u8" | ".s8" | ".b8" => Some(1),
        ".u16" | ".s16" | ".b16" | ".f16" => Some(2),
        ".u32" | ".s32" | ".b32" | ".f32" => Some(4),
        ".u64" | ".s64" | ".b64" | ".f64" => Some(8),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
