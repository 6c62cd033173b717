//! Enumerations of TS 36.331 6.3.2.

use super::Enumeration;
use super::Unit::{Bytes, Count, PdcchSubframes, Pdus, Periods, Time};
use super::{kb, ms};

#[rustfmt::skip]
pub(super) static LTE: [Enumeration; 22] = [
    Enumeration::new("t-PollRetransmit", "RLC-Config", Time, ms![
        5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100, 105, 110,
        115, 120, 125, 130, 135, 140, 145, 150, 155, 160, 165, 170, 175, 180, 185, 190, 195, 200,
        205, 210, 215, 220, 225, 230, 235, 240, 245, 250, 300, 350, 400, 450, 500, 800, 1000, 2000,
        4000,
    ]),
    // with v1310
    Enumeration::new("pollPDU", "RLC-Config", Pdus, &[
        4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 6144, 8192, 12288, 16384,
    ]).or_infinity(),
    // with r14
    Enumeration::new("pollByte", "RLC-Config", Bytes, kb![
        1, 2, 5, 8, 10, 15, 25, 50, 75, 100, 125, 250, 375, 500, 750, 1000, 1250, 1500, 2000, 3000,
        3500, 4000, 4500, 5000, 5500, 6000, 6500, 7000, 7500, 8000, 9000, 10000, 11000, 12000,
        13000, 14000, 15000, 16000, 17000, 18000, 19000, 20000, 25000, 30000, 35000, 40000,
    ]).or_infinity(),
    Enumeration::new("maxRetxThreshold", "RLC-Config", Count, &[1, 2, 3, 4, 6, 8, 16, 32]),
    Enumeration::new("t-Reordering", "RLC-Config", Time, ms![
        0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100, 110, 120,
        130, 140, 150, 160, 170, 180, 190, 200, 1600,
    ]),
    Enumeration::new("t-StatusProhibit", "RLC-Config", Time, ms![
        0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95, 100, 105, 110,
        115, 120, 125, 130, 135, 140, 145, 150, 155, 160, 165, 170, 175, 180, 185, 190, 195, 200,
        205, 210, 215, 220, 225, 230, 235, 240, 245, 250, 300, 350, 400, 450, 500, 800, 1000, 1200,
        1600, 2000, 2400,
    ]),
    Enumeration::new("discardTimer", "PDCP-Config", Time, ms![
        50, 100, 150, 300, 500, 750, 1500,
    ]).or_infinity(),
    // TS 36.213 table 10.1.5-1
    Enumeration::new("sr-Periodicity", "SchedulingRequestConfig", Time, ms![
        1, 2, 5, 10, 20, 40, 80,
    ]),
    Enumeration::new("dsr-TransMax", "SchedulingRequestConfig", Count, &[4, 8, 16, 32, 64]),
    // sr-ProhibitTimer-r9, in SR periods
    Enumeration::new("sr-ProhibitTimer", "MAC-MainConfig", Periods, &[0, 1, 2, 3, 4, 5, 6, 7]),
    Enumeration::new("periodicBSR-Timer", "MAC-MainConfig", Time, ms![
        5, 10, 16, 20, 32, 40, 64, 80, 128, 160, 320, 640, 1280, 2560,
    ]).or_infinity(),
    Enumeration::new("retxBSR-Timer", "MAC-MainConfig", Time, ms![
        320, 640, 1280, 2560, 5120, 10240,
    ]),
    Enumeration::new("logicalChannelSR-ProhibitTimer", "MAC-MainConfig", Time, ms![
        20, 40, 64, 128, 512, 1024, 2560,
    ]),
    Enumeration::new("maxHARQ-Tx", "MAC-MainConfig", Count, &[
        1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 28,
    ]),
    Enumeration::new("timeAlignmentTimer", "MAC-MainConfig", Time, ms![
        500, 750, 1280, 1920, 2560, 5120, 10240,
    ]).or_infinity(),
    // with v1310
    Enumeration::new("onDurationTimer", "DRX-Config", PdcchSubframes, &[
        1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 40, 50, 60, 80, 100, 200, 300, 400, 500, 600, 800, 1000,
        1200, 1600,
    ]),
    // with v1020
    Enumeration::new("drx-InactivityTimer", "DRX-Config", PdcchSubframes, &[
        0, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 40, 50, 60, 80, 100, 200, 300, 500, 750, 1280, 1920,
        2560,
    ]),
    // with v1130 and v1310
    Enumeration::new("drx-RetransmissionTimer", "DRX-Config", PdcchSubframes, &[
        0, 1, 2, 4, 6, 8, 16, 24, 33, 40, 64, 80, 96, 112, 128, 160, 320,
    ]),
    Enumeration::new("drx-ULRetransmissionTimer", "DRX-Config", PdcchSubframes, &[
        0, 1, 2, 4, 6, 8, 16, 24, 33, 40, 64, 80, 96, 112, 128, 160, 320,
    ]),
    // longDRX-CycleStartOffset, with v1130
    Enumeration::new("longDRX-Cycle", "DRX-Config", Time, ms![
        10, 20, 32, 40, 60, 64, 70, 80, 128, 160, 256, 320, 512, 640, 1024, 1280, 2048, 2560,
    ]),
    // with v1130
    Enumeration::new("shortDRX-Cycle", "DRX-Config", Time, ms![
        2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 128, 160, 256, 320, 512, 640,
    ]),
    Enumeration::new("drxShortCycleTimer", "DRX-Config", Periods, &[
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
    ]),
];
