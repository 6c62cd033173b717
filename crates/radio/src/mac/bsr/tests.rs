//! Scripts for TS 38.321 5.4.5, with levels from TS 38.321 table 6.1.3.1-1.

use proptest::prelude::*;

use super::*;

const TABLE: &[u32] = &[
    0, 10, 14, 20, 28, 38, 53, 74, 102, 142, 198, 276, 384, 535, 745, 1038, 1446, 2014, 2806, 3909,
    5446, 7587, 10570, 14726, 20516, 28581, 39818, 55474, 77284, 107669, 150000,
];

const FORMAT: BsrFormat =
    BsrFormat { generation: Generation::Nr, tables: BsrTables { short: TABLE, long: TABLE } };

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

fn channel(group: u8, priority: u8) -> LogicalChannel {
    LogicalChannel { group, priority, delays_request: false, masks_request: false }
}

/// Channel 0: signalling; 1 and 2: data, each in its own group.
fn config() -> BsrConfig {
    BsrConfig {
        regular: RegularTrigger::NewData,
        format: FORMAT,
        channels: vec![channel(0, 1), channel(6, 9), channel(7, 11)],
        periodic: Some(ms(10)),
        retransmission: ms(80),
        request_delay: ms(40),
        piggyback: Piggyback::Padding,
    }
}

/// Levels of groups 0, 6 and 7.
fn levels(report: &BsrReport) -> [Option<u8>; 3] {
    [report.levels[0], report.levels[6], report.levels[7]]
}

#[test]
fn new_data_triggers_where_its_priority_is_higher_or_nothing_waits() {
    let none = UplinkResource::None;
    let mut bsr = BufferStatus::new(&config());
    assert!(!bsr.wants_request(at(0), none));
    bsr.on_available(at(1), 1, 500);
    assert!(bsr.wants_request(at(1), none));
    let plan = bsr.plan(at(5), 100, 600).unwrap();
    assert_eq!((plan.trigger, plan.kind, plan.bytes), (BsrTrigger::Regular, BsrKind::Short, 2));
    bsr.on_available(at(5), 1, 402);
    assert_eq!(levels(&bsr.assemble(at(5), plan)), [None, Some(13), None]);
    assert!(!bsr.wants_request(at(5), none));
    // More of the same, and of lower priority: no Regular BSR. Higher priority: a Regular BSR.
    bsr.on_available(at(6), 1, 900);
    bsr.on_available(at(6), 2, 900);
    assert!(!bsr.wants_request(at(6), none));
    bsr.on_available(at(7), 0, 20);
    assert!(bsr.wants_request(at(7), none));
    assert!(!bsr.wants_request(at(7), UplinkResource::Granted));
    // Three groups have data: Long, 2 + 1 + 3 bytes.
    let plan = bsr.plan(at(8), 100, 2000).unwrap();
    assert_eq!((plan.kind, plan.bytes), (BsrKind::Long, 6));
    bsr.on_available(at(8), 0, 0);
    assert_eq!(levels(&bsr.assemble(at(8), plan)), [Some(0), Some(15), Some(15)]);
}

#[test]
fn data_that_remains_is_reported_again_after_the_retransmission_timer() {
    let mut bsr = BufferStatus::new(&config());
    bsr.on_available(at(0), 1, 5000);
    let plan = bsr.plan(at(5), 100, 5100).unwrap();
    bsr.assemble(at(5), plan);
    assert_eq!(bsr.next_event(), Some(at(85)));
    // A grant restarts retxBSR-Timer.
    bsr.on_grant(at(20));
    assert_eq!(bsr.next_event(), Some(at(100)));
    assert!(!bsr.wants_request(at(99), UplinkResource::None));
    assert!(bsr.wants_request(at(100), UplinkResource::None));
}

#[test]
fn an_empty_buffer_has_no_events() {
    let mut bsr = BufferStatus::new(&config());
    bsr.on_available(at(0), 1, 50);
    let plan = bsr.plan(at(5), 100, 55).unwrap();
    bsr.on_available(at(5), 1, 0);
    bsr.assemble(at(5), plan);
    assert_eq!(bsr.next_event(), None);
    assert!(!bsr.wants_request(at(200), UplinkResource::None));
}

#[test]
fn the_periodic_timer_triggers_a_report_but_no_request() {
    let mut bsr = BufferStatus::new(&config());
    bsr.on_available(at(0), 1, 5000);
    let plan = bsr.plan(at(5), 100, 5100).unwrap();
    bsr.assemble(at(5), plan);
    assert_eq!(bsr.plan(at(14), 100, 5100), None);
    assert_eq!(bsr.plan(at(15), 100, 5100).unwrap().trigger, BsrTrigger::Periodic);
    assert!(!bsr.wants_request(at(15), UplinkResource::None));
}

#[test]
fn the_request_waits_for_the_delay_timer_of_its_channel() {
    let mut config = config();
    config.channels[1].delays_request = true;
    let mut bsr = BufferStatus::new(&config);
    bsr.on_available(at(0), 1, 50);
    assert!(!bsr.wants_request(at(39), UplinkResource::None));
    assert_eq!(bsr.next_event(), Some(at(40)));
    assert!(bsr.wants_request(at(40), UplinkResource::None));
    // A channel without the timer stops it.
    let mut bsr = BufferStatus::new(&config);
    bsr.on_available(at(0), 1, 50);
    bsr.on_available(at(3), 0, 50);
    assert!(bsr.wants_request(at(3), UplinkResource::None));
}

#[test]
fn a_configured_grant_replaces_the_request_only_where_masked() {
    let mut config = config();
    let mut bsr = BufferStatus::new(&config);
    bsr.on_available(at(0), 1, 50);
    assert!(bsr.wants_request(at(0), UplinkResource::Configured));
    config.channels[1].masks_request = true;
    let mut bsr = BufferStatus::new(&config);
    bsr.on_available(at(0), 1, 50);
    assert!(!bsr.wants_request(at(0), UplinkResource::Configured));
}

#[test]
fn a_grant_for_all_data_but_not_the_report_cancels_it() {
    let mut bsr = BufferStatus::new(&config());
    bsr.on_available(at(0), 1, 50);
    assert_eq!(bsr.plan(at(5), 56, 55), None);
    assert!(!bsr.wants_request(at(5), UplinkResource::None));
    // With one more byte it is sent; so is one that displaces data.
    for (size, needed) in [(57, 55), (50, 55)] {
        let mut bsr = BufferStatus::new(&config());
        bsr.on_available(at(0), 1, 50);
        assert_eq!(bsr.plan(at(5), size, needed).map(|plan| plan.bytes), Some(2));
    }
}

/// The padding report for `groups` groups with data and `room` bytes of padding.
fn padding(generation: Generation, groups: usize, room: u32) -> Option<(BsrKind, u32, u32)> {
    let format = BsrFormat { generation, ..FORMAT };
    let channels = vec![channel(0, 1), channel(1, 9), channel(2, 11)];
    let mut bsr = BufferStatus::new(&BsrConfig { format, channels, ..config() });
    for channel in (0..groups).rev() {
        bsr.on_available(at(0), channel, 50);
    }
    bsr.reset();
    let plan = bsr.plan(at(5), 1000 + room, 1000)?;
    assert_eq!(plan.trigger, BsrTrigger::Padding);
    let reported = bsr.assemble(at(5), plan).levels.iter().flatten().count() as u32;
    Some((plan.kind, plan.bytes, reported))
}

#[test]
fn padding_reports_what_fits() {
    use BsrKind::{Long, LongTruncated, Short, ShortTruncated};
    let nr = |groups, room| padding(Generation::Nr, groups, room);
    assert_eq!(nr(1, 1), None);
    assert_eq!(nr(1, 3), Some((Short, 2, 1)));
    assert_eq!(nr(1, 4), Some((Long, 4, 1)));
    assert_eq!(nr(3, 2), Some((ShortTruncated, 2, 1)));
    assert_eq!(nr(3, 3), Some((LongTruncated, 3, 0)));
    assert_eq!(nr(3, 5), Some((LongTruncated, 5, 2)));
    assert_eq!(nr(3, 6), Some((Long, 6, 3)));
    let lte = |groups, room| padding(Generation::Lte, groups, room);
    assert_eq!(lte(1, 3), Some((Short, 2, 1)));
    assert_eq!(lte(3, 3), Some((ShortTruncated, 2, 1)));
    assert_eq!(lte(3, 4), Some((Long, 4, 3)));
}

#[test]
fn truncated_reports_start_with_the_highest_priority_and_no_timer() {
    let mut bsr = BufferStatus::new(&config());
    bsr.on_available(at(0), 2, 400);
    bsr.on_available(at(0), 1, 100);
    bsr.reset();
    let plan = bsr.plan(at(5), 502, 500).unwrap();
    assert_eq!(levels(&bsr.assemble(at(5), plan)), [None, Some(8), None]);
    assert_eq!(bsr.plan(at(60), 100, 500), None);
}

#[test]
fn piggybacked_in_every_block_with_room() {
    let mut bsr = BufferStatus::new(&BsrConfig { piggyback: Piggyback::Always, ..config() });
    bsr.on_available(at(0), 1, 5000);
    let plan = bsr.plan(at(5), 100, 5100).unwrap();
    bsr.assemble(at(5), plan);
    assert_eq!(bsr.plan(at(6), 100, 5000).unwrap().trigger, BsrTrigger::Piggyback);
    assert_eq!(bsr.plan(at(6), 1, 5000), None);
}

proptest! {
    #[test]
    fn a_level_covers_its_bytes_and_no_lower_level_does(bytes in 0u64..=150_000) {
        let level = FORMAT.level(BsrKind::Short, bytes);
        prop_assert!(FORMAT.estimate(BsrKind::Short, level) >= bytes);
        prop_assert!(level == 0 || FORMAT.estimate(BsrKind::Short, level - 1) < bytes);
    }

    /// Data never waits without a report pending: either a scheduling request is needed, or the
    /// retransmission timer runs.
    #[test]
    fn data_is_never_forgotten(
        script in proptest::collection::vec((1u64..50, 0usize..3, 0u64..3000, 0u32..400), 1..40),
    ) {
        let mut bsr = BufferStatus::new(&config());
        let mut now = 0;
        let mut buffers = [0u64; 3];
        for (gap, channel, bytes, grant) in script {
            now += gap;
            buffers[channel] += bytes;
            bsr.on_available(at(now), channel, buffers[channel]);
            if grant > 0 {
                let needed = buffers.iter().sum();
                let plan = bsr.plan(at(now), grant, needed);
                let mut room = u64::from(grant - plan.map_or(0, |plan| plan.bytes));
                for (channel, waiting) in buffers.iter_mut().enumerate() {
                    let sent = room.min(*waiting);
                    (*waiting, room) = (*waiting - sent, room - sent);
                    bsr.on_available(at(now), channel, *waiting);
                }
                if let Some(plan) = plan {
                    bsr.assemble(at(now), plan);
                }
            }
            if bsr.available() > 0 {
                let wants = bsr.wants_request(at(now), UplinkResource::None);
                prop_assert!(wants || bsr.next_event().is_some());
            }
        }
    }
}

#[test]
fn more_than_the_table_holds_is_taken_for_its_last_bound() {
    let level = FORMAT.level(BsrKind::Short, 1_000_000);
    assert_eq!(level, 31);
    assert_eq!(FORMAT.estimate(BsrKind::Short, level), 150_000);
}
