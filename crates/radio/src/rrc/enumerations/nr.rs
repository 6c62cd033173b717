//! Enumerations of TS 38.331 6.3.2.

use super::Enumeration;
use super::Unit::{Bytes, Count, Pdus, Periods, Slots, Symbols, Time};
use super::{kb, ms};

#[rustfmt::skip]
pub(super) static NR: [Enumeration; 25] = [
    // with v1610
    Enumeration::new("t-PollRetransmit", "RLC-Config", Time, ms![
        1, 2, 3, 4, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100,
        105, 110, 115, 120, 125, 130, 135, 140, 145, 150, 155, 160, 165, 170, 175, 180, 185, 190,
        195, 200, 205, 210, 215, 220, 225, 230, 235, 240, 245, 250, 300, 350, 400, 450, 500, 800,
        1000, 2000, 4000,
    ]),
    Enumeration::new("pollPDU", "RLC-Config", Pdus, &[
        4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 6144, 8192, 12288, 16384, 20480, 24576,
        28672, 32768, 40960, 49152, 57344, 65536,
    ]).or_infinity(),
    Enumeration::new("pollByte", "RLC-Config", Bytes, kb![
        1, 2, 5, 8, 10, 15, 25, 50, 75, 100, 125, 250, 375, 500, 750, 1000, 1250, 1500, 2000, 3000,
        4000, 4500, 5000, 5500, 6000, 6500, 7000, 7500, 8000, 9000, 10000, 11000, 12000, 13000,
        14000, 15000, 16000, 17000, 18000, 20000, 25000, 30000, 40000,
    ]).or_infinity(),
    Enumeration::new("maxRetxThreshold", "RLC-Config", Count, &[1, 2, 3, 4, 6, 8, 16, 32]),
    // with r17
    Enumeration::new("t-Reassembly", "RLC-Config", Time, ms![
        0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100, 110, 120,
        130, 140, 150, 160, 170, 180, 190, 200, 210, 220, 340, 350, 550, 1100, 1650, 2200,
    ]),
    // with v1610
    Enumeration::new("t-StatusProhibit", "RLC-Config", Time, ms![
        0, 1, 2, 3, 4, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95,
        100, 105, 110, 115, 120, 125, 130, 135, 140, 145, 150, 155, 160, 165, 170, 175, 180, 185,
        190, 195, 200, 205, 210, 215, 220, 225, 230, 235, 240, 245, 250, 300, 350, 400, 450, 500,
        800, 1000, 1200, 1600, 2000, 2400,
    ]),
    // with discardTimerExt-r16, which begins with half a millisecond, and -Ext2-r17
    Enumeration::new("discardTimer", "PDCP-Config", Time, &[
        500_000, 1_000_000, 2_000_000, 4_000_000, 6_000_000, 8_000_000, 10_000_000, 20_000_000,
        30_000_000, 40_000_000, 50_000_000, 60_000_000, 75_000_000, 100_000_000, 150_000_000,
        200_000_000, 250_000_000, 300_000_000, 500_000_000, 750_000_000, 1_500_000_000,
        2_000_000_000,
    ]).or_infinity(),
    Enumeration::new("t-Reordering", "PDCP-Config", Time, ms![
        0, 1, 2, 4, 5, 8, 10, 15, 20, 30, 40, 50, 60, 80, 100, 120, 140, 160, 180, 200, 220, 240,
        260, 280, 300, 500, 750, 1000, 1250, 1500, 1750, 2000, 2250, 2500, 2750, 3000,
    ]),
    // periodicityAndOffset from one slot on; sr_periods says which apply to a numerology
    Enumeration::new("sr-Periodicity", "SchedulingRequestResourceConfig", Slots, &[
        1, 2, 4, 5, 8, 10, 16, 20, 40, 80, 160, 320, 640,
    ]),
    // with v1700
    Enumeration::new("sr-ProhibitTimer", "SchedulingRequestConfig", Time, ms![
        1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 320, 384, 448, 512, 576, 640, 1082,
    ]),
    Enumeration::new("sr-TransMax", "SchedulingRequestConfig", Count, &[4, 8, 16, 32, 64]),
    Enumeration::new("periodicBSR-Timer", "BSR-Config", Time, ms![
        1, 5, 10, 16, 20, 32, 40, 64, 80, 128, 160, 320, 640, 1280, 2560,
    ]).or_infinity(),
    Enumeration::new("retxBSR-Timer", "BSR-Config", Time, ms![
        10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10240,
    ]),
    Enumeration::new("logicalChannelSR-DelayTimer", "BSR-Config", Time, ms![
        20, 40, 64, 128, 512, 1024, 2560,
    ]),
    Enumeration::new("timeAlignmentTimer", "TAG-Config", Time, ms![
        500, 750, 1280, 1920, 2560, 5120, 10240,
    ]).or_infinity(),
    // subMilliSeconds in 1/32 ms, then milliSeconds
    Enumeration::new("drx-onDurationTimer", "DRX-Config", Time, &[
        31_250, 62_500, 93_750, 125_000, 156_250, 187_500, 218_750, 250_000, 281_250, 312_500,
        343_750, 375_000, 406_250, 437_500, 468_750, 500_000, 531_250, 562_500, 593_750, 625_000,
        656_250, 687_500, 718_750, 750_000, 781_250, 812_500, 843_750, 875_000, 906_250, 937_500,
        968_750, 1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000, 6_000_000, 8_000_000,
        10_000_000, 20_000_000, 30_000_000, 40_000_000, 50_000_000, 60_000_000, 80_000_000,
        100_000_000, 200_000_000, 300_000_000, 400_000_000, 500_000_000, 600_000_000, 800_000_000,
        1_000_000_000, 1_200_000_000, 1_600_000_000,
    ]),
    Enumeration::new("drx-InactivityTimer", "DRX-Config", Time, ms![
        0, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 40, 50, 60, 80, 100, 200, 300, 500, 750, 1280, 1920,
        2560,
    ]),
    Enumeration::new("drx-HARQ-RTT-TimerDL", "DRX-Config", Symbols, &[
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
        25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
        48, 49, 50, 51, 52, 53, 54, 55, 56,
    ]),
    Enumeration::new("drx-HARQ-RTT-TimerUL", "DRX-Config", Symbols, &[
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24,
        25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
        48, 49, 50, 51, 52, 53, 54, 55, 56,
    ]),
    Enumeration::new("drx-RetransmissionTimerDL", "DRX-Config", Slots, &[
        0, 1, 2, 4, 6, 8, 16, 24, 33, 40, 64, 80, 96, 112, 128, 160, 320,
    ]),
    Enumeration::new("drx-RetransmissionTimerUL", "DRX-Config", Slots, &[
        0, 1, 2, 4, 6, 8, 16, 24, 33, 40, 64, 80, 96, 112, 128, 160, 320,
    ]),
    // drx-LongCycleStartOffset
    Enumeration::new("drx-LongCycle", "DRX-Config", Time, ms![
        10, 20, 32, 40, 60, 64, 70, 80, 128, 160, 256, 320, 512, 640, 1024, 1280, 2048, 2560, 5120,
        10240,
    ]),
    Enumeration::new("drx-ShortCycle", "DRX-Config", Time, ms![
        2, 3, 4, 5, 6, 7, 8, 10, 14, 16, 20, 30, 32, 35, 40, 64, 80, 128, 160, 256, 320, 512, 640,
    ]),
    Enumeration::new("drx-ShortCycleTimer", "DRX-Config", Periods, &[
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
    ]),
    // in 1/32 ms
    Enumeration::new("drx-SlotOffset", "DRX-Config", Time, &[
        0, 31_250, 62_500, 93_750, 125_000, 156_250, 187_500, 218_750, 250_000, 281_250, 312_500,
        343_750, 375_000, 406_250, 437_500, 468_750, 500_000, 531_250, 562_500, 593_750, 625_000,
        656_250, 687_500, 718_750, 750_000, 781_250, 812_500, 843_750, 875_000, 906_250, 937_500,
        968_750,
    ]),
];
