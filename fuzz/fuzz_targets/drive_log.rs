#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| airpath_radio::fuzz::drive_log(data));
