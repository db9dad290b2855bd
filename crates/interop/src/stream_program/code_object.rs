//! The amd platform: OpenCL's code object for HIP.
//!
//! A code object describes in a note (`NT_AMDGPU_METADATA`, MessagePack) what each kernel takes, and both runtimes pass
//! what it describes (LLVM: "User Guide for AMDGPU Backend", Code Object V3 to V6 Metadata). Two kinds of argument mean
//! something else to HIP:
//!
//! - `dynamic_shared_pointer`, a `local` pointer. OpenCL's runtime places the memory by the size passed to
//!   `clSetKernelArg`; HIP takes the size of the argument itself for it (clr: rocclr/platform/kernel.cpp,
//!   `KernelParameters::set`), so two such arguments overlap.
//! - `hidden_global_offset_x` to `_z` and `hidden_grid_dims`. HIP always passes 0 and 3.
//!
//! Both become `by_value` here, so the launch passes them: an offset into the work-group's memory is what the code
//! expects in place of a `local` pointer. The note keeps its size: a MessagePack number or length may be written with
//! more bytes than it needs.

use std::collections::HashMap;
use std::ops::Range;

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};
use rmpv::Value;

use super::layout::{Hidden, Image, Layout, Parameter, STRICTEST, What};

/// The type of the note that holds the metadata.
const METADATA: u32 = 32;
const KERNELS: &str = "amdhsa.kernels";

/// Why code cannot be loaded.
type Refused = String;

/// Reads the code object that OpenCL's compiler made, and makes HIP's of it.
pub(super) fn image(binary: &[u8]) -> Result<Image, Refused> {
    let note = metadata(binary)?;
    let mut code = binary.to_vec();
    let mut kernels = HashMap::new();
    for kernel in kernel_maps(&binary[note.clone()])? {
        let mut layout = Layout {
            local_base: kernel.number(".group_segment_fixed_size").unwrap_or(0),
            ..Layout::default()
        };
        for argument in kernel.arguments(&binary[note.clone()])? {
            if let Some(changed) = argument.enter(&mut layout)? {
                let span = note.start + argument.span.start..note.start + argument.span.end;
                code[span].copy_from_slice(&changed);
            }
        }
        let name = kernel.text(".name").ok_or("a kernel without a name")?;
        kernels.insert(name.to_owned(), layout);
    }
    Ok(Image { code, kernels })
}

/// Where the metadata lies.
fn metadata(binary: &[u8]) -> Result<Range<usize>, Refused> {
    let not_complete = |error: object::Error| format!("its binary is not a complete code object ({error})");
    let header = elf::FileHeader64::<Endianness>::parse(binary).map_err(not_complete)?;
    let endian = header.endian().map_err(not_complete)?;
    let machine = header.e_machine(endian);
    if machine != elf::EM_AMDGPU {
        return Err(format!(
            "its binary is built for ELF machine {}, not for an AMD GPU",
            u32::from(machine)
        ));
    }
    let mut found = None;
    for segment in header.program_headers(endian, binary).map_err(not_complete)? {
        segment
            .data(endian, binary)
            .map_err(|()| "its binary ends before its code does".to_owned())?;
        let Some(mut notes) = segment.notes(endian, binary).map_err(not_complete)? else {
            continue;
        };
        while let Some(note) = notes.next().map_err(not_complete)? {
            if note.name() == b"AMDGPU" && note.n_type(endian) == METADATA {
                let start = note.desc().as_ptr().addr() - binary.as_ptr().addr();
                found = Some(start..start + note.desc().len());
            }
        }
    }
    found.ok_or_else(|| {
        "its binary does not describe the kernels' arguments (no AMDGPU metadata of code object version 3 or later)"
            .to_owned()
    })
}

/// A map of the metadata, and where each of its values lies.
struct Map {
    span: Range<usize>,
    entries: Vec<Pair>,
}

struct Pair {
    key: String,
    value: Value,
    /// Of the value.
    span: Range<usize>,
}

impl Map {
    /// The map that lies at `start`.
    fn read(bytes: &[u8], start: usize) -> Result<Self, Refused> {
        let mut rest = bytes.get(start..).unwrap_or_default();
        let count = rmp::decode::read_map_len(&mut rest).map_err(|_| damaged())?;
        let at = |rest: &[u8]| bytes.len() - rest.len();
        let mut entries = Vec::new();
        for _ in 0..count {
            let key = rmpv::decode::read_value(&mut rest).map_err(|_| damaged())?;
            let begin = at(rest);
            let value = rmpv::decode::read_value(&mut rest).map_err(|_| damaged())?;
            entries.push(Pair {
                key: key.as_str().ok_or_else(damaged)?.to_owned(),
                value,
                span: begin..at(rest),
            });
        }
        Ok(Self {
            span: start..at(rest),
            entries,
        })
    }

    fn get(&self, key: &str) -> Option<&Pair> {
        self.entries.iter().find(|pair| pair.key == key)
    }

    fn number(&self, key: &str) -> Option<usize> {
        usize::try_from(self.get(key)?.value.as_u64()?).ok()
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.value.as_str()
    }

    fn arguments(&self, bytes: &[u8]) -> Result<Vec<Self>, Refused> {
        match self.get(".args") {
            Some(pair) => maps(bytes, pair.span.start),
            None => Ok(Vec::new()),
        }
    }
}

fn damaged() -> Refused {
    "its binary has damaged kernel metadata".to_owned()
}

fn kernel_maps(bytes: &[u8]) -> Result<Vec<Map>, Refused> {
    let whole = Map::read(bytes, 0)?;
    match whole.get(KERNELS) {
        Some(pair) => maps(bytes, pair.span.start),
        None => Err("its binary has no kernel".to_owned()),
    }
}

/// The array of maps that lies at `start`.
fn maps(bytes: &[u8], start: usize) -> Result<Vec<Map>, Refused> {
    let mut rest = bytes.get(start..).unwrap_or_default();
    let count = rmp::decode::read_array_len(&mut rest).map_err(|_| damaged())?;
    let mut next = bytes.len() - rest.len();
    let mut list = Vec::new();
    for _ in 0..count {
        let map = Map::read(bytes, next)?;
        next = map.span.end;
        list.push(map);
    }
    Ok(list)
}

/// An argument of a kernel.
impl Map {
    /// Enters what a launch has to pass for it. Returns what the metadata must say instead, where HIP would misread it.
    fn enter(&self, layout: &mut Layout) -> Result<Option<Vec<u8>>, Refused> {
        let kind = self.text(".value_kind").ok_or_else(damaged)?;
        let bytes = self.number(".size").ok_or_else(damaged)?;
        let hidden = |what| Hidden { what, bytes };
        match kind {
            "by_value" => layout.parameters.push(Parameter::Value { bytes }),
            "global_buffer" => layout.parameters.push(Parameter::Memory),
            "dynamic_shared_pointer" => {
                let alignment = self.number(".pointee_align").unwrap_or(STRICTEST);
                layout.parameters.push(Parameter::Local {
                    alignment: alignment.clamp(1, STRICTEST).next_power_of_two(),
                });
                return self.by_value().map(Some);
            }
            "hidden_global_offset_x" => layout.hidden.push(hidden(What::Offset(0))),
            "hidden_global_offset_y" => layout.hidden.push(hidden(What::Offset(1))),
            "hidden_global_offset_z" => layout.hidden.push(hidden(What::Offset(2))),
            "hidden_grid_dims" => layout.hidden.push(hidden(What::Dimensions)),
            _ => {
                if let Some(reason) = unusable(kind) {
                    layout.refused = Some(reason);
                }
                return Ok(None);
            }
        }
        match kind.starts_with("hidden_") {
            true => self.by_value().map(Some),
            false => Ok(None),
        }
    }

    /// The same argument as a value, in as many bytes.
    fn by_value(&self) -> Result<Vec<u8>, Refused> {
        let mut tokens = Vec::new();
        for pair in &self.entries {
            tokens.push(Token::Text(pair.key.clone()));
            tokens.push(match (pair.key.as_str(), &pair.value) {
                (".value_kind", _) => Token::Text("by_value".to_owned()),
                // HIP would take the size of local memory for the value.
                (".address_space", _) => Token::Text("private".to_owned()),
                (_, Value::String(text)) => Token::Text(text.as_str().ok_or_else(damaged)?.to_owned()),
                (_, Value::Integer(number)) => Token::Number(number.as_u64().ok_or_else(damaged)?),
                (_, Value::Boolean(value)) => Token::Flag(*value),
                _ => return Err(damaged()),
            });
        }
        let mut bytes = Vec::new();
        let count = u32::try_from(self.entries.len()).map_err(|_| damaged())?;
        rmp::encode::write_map_len(&mut bytes, count).map_err(|_| damaged())?;
        let least: usize = tokens.iter().map(|token| token.widths()[0]).sum();
        let mut room = self
            .span
            .len()
            .checked_sub(bytes.len() + least)
            .ok_or("the argument metadata of its binary has no room for a change")?;
        for token in tokens {
            let widths = token.widths();
            let fits = widths.iter().rev().find(|width| *width - widths[0] <= room);
            let width = fits.copied().unwrap_or(widths[0]);
            room -= width - widths[0];
            token.write(width, &mut bytes);
        }
        match room {
            0 => Ok(bytes),
            _ => Err("the argument metadata of its binary cannot be changed in place".to_owned()),
        }
    }
}

/// Why a kernel with such an argument cannot be launched by HIP.
fn unusable(kind: &str) -> Option<Refused> {
    let what = match kind {
        "image" => "it takes an image",
        "sampler" => "it takes a sampler",
        "pipe" => "it takes a pipe",
        "queue" => "it takes a device queue",
        "hidden_default_queue" | "hidden_completion_action" => "its program enqueues kernels on the device",
        "hidden_printf_buffer" => {
            "its program uses `printf`, which ends the process on a HIP stream (build the kernels without `printf` as a separate program)"
        }
        // What HIP's runtime fills as OpenCL's does.
        "hidden_none"
        | "hidden_multigrid_sync_arg"
        | "hidden_heap_v1"
        | "hidden_hostcall_buffer"
        | "hidden_block_count_x"
        | "hidden_block_count_y"
        | "hidden_block_count_z"
        | "hidden_group_size_x"
        | "hidden_group_size_y"
        | "hidden_group_size_z"
        | "hidden_remainder_x"
        | "hidden_remainder_y"
        | "hidden_remainder_z"
        | "hidden_private_base"
        | "hidden_shared_base"
        | "hidden_queue_ptr"
        | "hidden_dynamic_lds_size" => return None,
        other => {
            return Some(format!("it takes an argument of an unknown kind, `{other}`"));
        }
    };
    Some(what.to_owned())
}

/// A value of the metadata, and the lengths in which it can be written.
enum Token {
    Text(String),
    Number(u64),
    Flag(bool),
}

impl Token {
    /// In bytes, the shortest first.
    fn widths(&self) -> Vec<usize> {
        match self {
            Self::Text(text) => {
                let len = text.len();
                [(len < 32, 1), (len < 1 << 8, 2), (len < 1 << 16, 3), (true, 5)]
                    .into_iter()
                    .filter_map(|(fits, header)| fits.then_some(len + header))
                    .collect()
            }
            Self::Number(number) => [(7, 1), (8, 2), (16, 3), (32, 5), (64, 9)]
                .into_iter()
                .filter_map(|(bits, width)| (bits == 64 || *number < 1 << bits).then_some(width))
                .collect(),
            Self::Flag(_) => vec![1],
        }
    }

    /// Writes it in `width` bytes, one of its [`widths`](Self::widths).
    fn write(&self, width: usize, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => {
                let len = text.len();
                match width - len {
                    1 => out.push(0xA0 | len as u8),
                    2 => out.extend([0xD9, len as u8]),
                    3 => {
                        out.push(0xDA);
                        out.extend((len as u16).to_be_bytes());
                    }
                    _ => {
                        out.push(0xDB);
                        out.extend((len as u32).to_be_bytes());
                    }
                }
                out.extend(text.as_bytes());
            }
            Self::Number(number) => {
                let bytes = number.to_be_bytes();
                match width {
                    1 => out.push(bytes[7]),
                    _ => {
                        out.push(match width {
                            2 => 0xCC,
                            3 => 0xCD,
                            5 => 0xCE,
                            _ => 0xCF,
                        });
                        out.extend(&bytes[9 - width..]);
                    }
                }
            }
            Self::Flag(value) => out.push(0xC2 | u8::from(*value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The metadata of one kernel, as LLVM writes it.
    fn written(arguments: &[&[(&str, Value)]]) -> Vec<u8> {
        let pairs = |list: &[(&str, Value)]| {
            Value::Map(
                list.iter()
                    .map(|(key, value)| (Value::from(*key), value.clone()))
                    .collect(),
            )
        };
        let arguments = arguments.iter().map(|list| pairs(list)).collect();
        let kernel = pairs(&[
            (".args", Value::Array(arguments)),
            (".group_segment_fixed_size", Value::from(264)),
            (".name", Value::from("k")),
        ]);
        let whole = pairs(&[
            (KERNELS, Value::Array(vec![kernel])),
            ("amdhsa.target", Value::from("amdgcn-amd-amdhsa--gfx908")),
        ]);
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, &whole).unwrap();
        bytes
    }

    fn local(name: &str) -> Vec<(&str, Value)> {
        vec![
            (".address_space", Value::from("local")),
            (".name", Value::from(name)),
            (".offset", Value::from(8)),
            (".pointee_align", Value::from(4)),
            (".size", Value::from(4)),
            (".type_name", Value::from("float*")),
            (".value_kind", Value::from("dynamic_shared_pointer")),
        ]
    }

    fn hidden(kind: &str, offset: u64, size: u64) -> Vec<(&'static str, Value)> {
        vec![
            (".offset", Value::from(offset)),
            (".size", Value::from(size)),
            (".value_kind", Value::from(kind)),
        ]
    }

    /// Changes the one kernel of the metadata in place, as `image` does.
    fn changed(bytes: &[u8]) -> (Layout, Vec<u8>) {
        let mut out = bytes.to_vec();
        let mut layout = Layout::default();
        for argument in kernel_maps(bytes).unwrap()[0].arguments(bytes).unwrap() {
            if let Some(new) = argument.enter(&mut layout).unwrap() {
                out[argument.span.clone()].copy_from_slice(&new);
            }
        }
        (layout, out)
    }

    #[test]
    fn what_opencls_runtime_passes_becomes_values_in_as_many_bytes() {
        let cases = [
            local("x"),
            local("a_name_of_more_than_thirty_one_characters"),
            hidden("hidden_global_offset_x", 40, 8),
            hidden("hidden_global_offset_z", 300, 8),
            hidden("hidden_grid_dims", 120, 2),
        ];
        for case in &cases {
            let before = written(&[case]);
            let (_, after) = changed(&before);
            assert_eq!(after.len(), before.len());
            let kernels = kernel_maps(&after).unwrap();
            let argument = &kernels[0].arguments(&after).unwrap()[0];
            assert_eq!(argument.text(".value_kind"), Some("by_value"));
            for (key, value) in case {
                match *key {
                    ".value_kind" => {}
                    ".address_space" => assert_eq!(argument.text(key), Some("private")),
                    _ => assert_eq!(&argument.get(key).unwrap().value, value, "{key}"),
                }
            }
            // What follows the argument is as it was.
            assert_eq!(kernels[0].text(".name"), Some("k"));
            assert_eq!(kernels[0].number(".group_segment_fixed_size"), Some(264));
        }
    }

    #[test]
    fn the_layout_follows_the_metadata() {
        let global = [
            (".address_space", Value::from("global")),
            (".size", Value::from(8)),
            (".value_kind", Value::from("global_buffer")),
        ];
        let value = vec![(".size", Value::from(12)), (".value_kind", Value::from("by_value"))];
        let bytes = written(&[
            &global,
            &value,
            &local("x"),
            &hidden("hidden_block_count_x", 32, 4),
            &hidden("hidden_global_offset_y", 40, 8),
            &hidden("hidden_grid_dims", 96, 2),
        ]);
        let (layout, _) = changed(&bytes);
        assert_eq!(
            layout.parameters,
            [
                Parameter::Memory,
                Parameter::Value { bytes: 12 },
                Parameter::Local { alignment: 4 },
            ]
        );
        let (y, dims) = (What::Offset(1), What::Dimensions);
        assert_eq!(
            layout.hidden,
            [Hidden { what: y, bytes: 8 }, Hidden { what: dims, bytes: 2 }]
        );
        assert_eq!(layout.refused, None);
    }

    #[test]
    fn what_does_not_work_there_is_named() {
        for (kind, word) in [
            ("image", "an image"),
            ("sampler", "a sampler"),
            ("pipe", "a pipe"),
            ("queue", "a device queue"),
            ("hidden_default_queue", "enqueues kernels"),
            ("hidden_printf_buffer", "printf"),
            ("hidden_of_tomorrow", "unknown kind, `hidden_of_tomorrow`"),
        ] {
            let (layout, _) = changed(&written(&[&hidden(kind, 0, 8)]));
            let reason = layout.refused.unwrap_or_default();
            assert!(reason.contains(word), "{kind}: {reason}");
        }
    }

    #[test]
    fn damaged_metadata_and_other_files_are_refused() {
        let whole = written(&[&local("x")]);
        for end in 0..whole.len() {
            let read = kernel_maps(&whole[..end]);
            let arguments = read.and_then(|kernels| {
                kernels
                    .iter()
                    .map(|kernel| kernel.arguments(&whole[..end]))
                    .collect::<Result<Vec<_>, _>>()
            });
            // What is cut off behind the last kernel does not matter to it.
            assert!(arguments.is_err() || end + 45 > whole.len(), "{end}");
        }
        for (other, word) in [
            (&b""[..], "not a complete code object"),
            (
                b"//\n// Generated by NVIDIA NVVM Compiler\n",
                "not a complete code object",
            ),
            (&std::fs::read(std::env::current_exe().unwrap()).unwrap(), "ELF machine"),
        ] {
            let reason = image(other).err().unwrap_or_default();
            assert!(reason.contains(word), "{reason}");
        }
    }

    #[test]
    fn every_length_of_a_value_reads_back() {
        let texts = ["", "x", &"y".repeat(31), &"z".repeat(40), &"w".repeat(300)];
        let tokens = texts.map(|text| (Token::Text(text.to_owned()), Value::from(text)));
        let numbers = [0, 127, 128, 255, 256, 70_000, 1 << 40];
        let numbers = numbers.map(|number| (Token::Number(number), Value::from(number)));
        let flags = [true, false].map(|flag| (Token::Flag(flag), Value::from(flag)));
        for (token, value) in tokens.into_iter().chain(numbers).chain(flags) {
            for width in token.widths() {
                let mut bytes = Vec::new();
                token.write(width, &mut bytes);
                assert_eq!(bytes.len(), width);
                assert_eq!(rmpv::decode::read_value(&mut &bytes[..]).unwrap(), value);
            }
        }
    }
}
