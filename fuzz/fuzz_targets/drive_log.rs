#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| airpath_path::fuzz::drive_log(data));
