#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| airpath_capture::fuzz::second_reading(data));
