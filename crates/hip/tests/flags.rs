//! Words that streams wait for and write.

mod common;

use common::device;
use hip::{Condition, Device, Error};

/// Whether the library has these functions; the answer of one that has not is the error that names them.
fn supported(device: &Device) -> bool {
    let stream = device.stream().unwrap();
    let flag = device.flag::<u32>().unwrap();
    match stream.write_flag(&flag, 1) {
        Ok(()) => true,
        Err(Error::MissingSymbol { symbol }) => {
            assert_eq!(symbol, "hipStreamWriteValue32");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_stream_goes_on_when_the_host_sets_the_flag() {
    let device = device();
    if !supported(&device) {
        return;
    }
    let stream = device.stream().unwrap();
    for (condition, before, after) in [
        (Condition::AtLeast(5), 4, 6),
        (Condition::Equal(5), 6, 5),
        (Condition::AnyBitOf(6), 1, 2),
        (Condition::Nor(!1), 1, 0),
    ] {
        let flag = device.flag::<u32>().unwrap();
        flag.store(before);
        stream.wait_flag(&flag, condition).unwrap();
        assert!(!stream.is_idle().unwrap(), "{condition:?}");
        flag.store(after);
        stream.synchronize().unwrap();
    }
}

#[test]
fn one_stream_waits_for_the_word_that_another_writes() {
    let device = device();
    if !supported(&device) {
        return;
    }
    if common::on_cuda() {
        common::skipped("CUDA has no mask for waits");
        return;
    }
    let (writer, reader) = (device.stream().unwrap(), device.stream().unwrap());
    let flag = device.flag::<u64>().unwrap();
    let value = 1 << 40 | 3;
    writer.write_flag(&flag, value).unwrap();
    reader
        .wait_flag_masked(&flag, Condition::Equal(1 << 40), !3)
        .unwrap();
    reader.synchronize().unwrap();
    assert_eq!(flag.load(), value);
}

#[test]
fn a_word_in_device_memory_orders_streams_like_a_flag() {
    let device = device();
    if !supported(&device) {
        return;
    }
    let (writer, reader) = (device.stream().unwrap(), device.stream().unwrap());
    let mut memory = device.alloc_from(&writer, &[4_u64, 9]).unwrap();
    let word = memory.on_mut(&writer).unwrap().as_mut_ptr();
    // SAFETY: an aligned word of memory that lives until the streams have been waited for.
    unsafe { reader.wait_word(word, Condition::AtLeast(5)) }.unwrap();
    assert!(!reader.is_idle().unwrap());
    // SAFETY: as above.
    unsafe { writer.write_word(word, 5) }.unwrap();
    reader.synchronize().unwrap();
    let mut seen = [0; 2];
    memory.copy_to_slice(&writer, &mut seen).unwrap();
    assert_eq!(seen, [5, 9]);
}

#[test]
fn a_flag_that_is_dropped_while_a_stream_waits_for_it_stays_until_the_wait_is_over() {
    let device = device();
    if !supported(&device) {
        return;
    }
    let stream = device.stream().unwrap();
    let flag = device.flag::<u32>().unwrap();
    let other = flag.clone();
    stream.wait_flag(&flag, Condition::Equal(1)).unwrap();
    stream.write_flag(&flag, 2).unwrap();
    drop(flag);
    other.store(1);
    drop(other);
    stream.synchronize().unwrap();
    assert!(device.runtime().take_deferred_errors().is_empty());
}
