//! Compiling, loading and looking a kernel up are safe, whatever the source says.

mod common;

use common::device;
use hip::rtc::Program;
use hip::{Device, LaunchConfig, Module};

/// What the kernel `set` writes.
fn value(device: &Device, module: &Module) -> i32 {
    let stream = device.stream().unwrap();
    let function = module.function("set").unwrap();
    let mut x = device.alloc_zeroed::<i32>(1).unwrap();
    let config = LaunchConfig::linear(1, 1).unwrap();
    // SAFETY: one thread on one element.
    unsafe { function.launch(&stream, config, &[&x.on_mut(&stream).unwrap()]) }.unwrap();
    let mut seen = [0];
    x.copy_to_slice(&stream, &mut seen).unwrap();
    seen[0]
}

#[test]
fn a_source_cannot_put_its_own_table_in_the_place_of_the_modules() {
    if !common::on_host() {
        return;
    }
    let device = device();
    // The real table moves to another symbol, and the source's own has entries where no memory is.
    let source = r#"
        extern "C" const __hipcl_table __hipcl_kernels __asm__("somewhere_else");
        struct Fake { unsigned version, count; const void *entries; };
        extern "C" __attribute__((visibility("default"), used))
        const Fake fake __asm__("__hipcl_kernels") = {2u, 1000u, (const void *)0x10};
        extern "C" __attribute__((visibility("default"))) void not_a_kernel() {}
        extern "C" __global__ void set(int *x) { *x = 7; }
    "#;
    let module = Program::new(source).compile(&device).unwrap();
    assert!(module.function("not_a_kernel").is_err());
    assert_eq!(value(&device, &module), 7);
}

#[test]
fn an_option_for_symbols_that_stay_does_not_make_a_module_the_next_one() {
    if !common::on_host() {
        return;
    }
    let device = device();
    for expected in [1, 2] {
        let source = format!("extern \"C\" __global__ void set(int *x) {{ *x = {expected}; }}");
        let module = Program::new(&source).option("-fgnu-unique").compile(&device).unwrap();
        assert_eq!(value(&device, &module), expected);
    }
}

#[test]
fn a_source_with_a_symbol_that_would_stay_is_refused() {
    if !common::on_host() {
        return;
    }
    let device = device();
    let source = r#"
        asm(".globl stays; .type stays, @gnu_unique_object; .section .rodata; stays: .long 1; .size stays, 4; .text");
        extern "C" __global__ void set(int *x) { *x = 1; }
    "#;
    let error = Program::new(source).compile(&device).unwrap_err();
    assert!(error.to_string().contains("unique"), "{error}");
}

/// The loader would change every stack of the process.
#[test]
fn a_source_that_asks_for_executable_stacks_is_refused() {
    if !common::on_host() {
        return;
    }
    let source = r#"
        asm(".section .note.GNU-stack,\"x\",@progbits\n.previous");
        extern "C" __global__ void set(int *x) { *x = 7; }
    "#;
    let stacks = || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|line| line.contains(" rwx")).count()
    };
    let before = stacks();
    let error = Program::new(source).compile(&device()).unwrap_err().to_string();
    assert!(error.contains("stacks"), "{error}");
    assert_eq!(stacks(), before);
}

/// The linker puts what a source adds before its own entries, and the loader would read both as one table.
#[test]
fn a_source_that_adds_to_what_the_loader_reads_is_refused() {
    if !common::on_host() {
        return;
    }
    let device = device();
    for (section, words) in [
        // One entry that ends the table, and a second table of symbols.
        (".dynamic", "0, 0"),
        (".dynamic", "6, 0x1000"),
        // The module would stay loaded, and its relocations would be made in its code.
        (".dynamic", "0x6ffffffb, 8"),
        (".dynamic", "0x16, 0"),
        (".dynsym", "0, 0, 0"),
        (".dynstr", "0x3131"),
        (".gnu.hash", "1, 1"),
        // A write far behind the module, and one of a kind that no module has.
        (".rela.dyn", "0x10000000, 8, 0"),
        (".rela.dyn", "0x4000, 5, 0"),
        // The linker gathers these, too. The symbol would be whatever lies behind the table of symbols.
        (".rela.rodata.own", "0x10000000, 8, 0"),
        (".rela.rodata.own", "0x4000, 0x14000000006, 0"),
        // Of thread-local variables, which the module does not have.
        (".rela.rodata.own", "0x4000, 18, 0"),
    ] {
        let source = format!(
            "asm(\".section {section},\\\"a\\\"\\n.quad {words}\\n.previous\");
            extern \"C\" void *writable[2] = {{(void *)1, (void *)2}};
            extern \"C\" __global__ void set(int *x) {{ *x = 7; }}"
        );
        let text = match Program::new(&source).compile(&device) {
            Ok(_) => "it is loaded".to_owned(),
            Err(error) => error.to_string(),
        };
        assert!(
            text.contains("adds to what the loader reads"),
            "{section} {words}: {text}"
        );
    }
}

/// The loader would run that library's constructors.
#[test]
fn a_source_that_makes_the_loader_load_another_library_is_refused() {
    if !common::on_host() {
        return;
    }
    // DT_NEEDED, and a place among the module's own names.
    let source = r#"
        asm(".section .dynamic,\"a\"\n.quad 1, 1\n.previous");
        extern "C" __global__ void set(int *x) { *x = 7; }
    "#;
    let error = Program::new(source).compile(&device()).unwrap_err().to_string();
    assert!(error.contains("would load another library"), "{error}");
}
