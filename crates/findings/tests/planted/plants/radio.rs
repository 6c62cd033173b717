//! Causes in the radio.

use super::{Plant, file, only, ping, same_mcs, scaled, two_cells, two_legs};
use crate::bases::{CELLULAR, NR, RADIO};
use crate::draft::{Table, number};

pub(crate) const CELLS: &[Plant] = &[
    Plant::new("shaper", CELLULAR, 3, |_, severity, _, known| {
        let rate = number(known.rate_mbps * (0.98 - 0.8 * severity));
        Box::new(move |draft| {
            let key = if draft.up { "up_mbps" } else { "down_mbps" };
            draft.radio("ambr").set(key, &rate);
            draft.radio("ambr").set("bucket_bytes", 20_000);
        })
    }),
    Plant::new("drx", CELLULAR, 1, |random, severity, well, _| {
        only(well, ping("down", random.between(200.0, 700.0)));
        let cycle = [20, 40, 80, 160, 320][((severity * 5.0) as usize).min(4)];
        let inactivity = random.one_of(&[1, 5, 10]);
        Box::new(move |draft| {
            let drx = draft.radio("drx");
            drx.set("enabled", true);
            drx.set("long_cycle_ms", cycle);
            drx.set("on_duration_ms", 5);
            drx.set("inactivity_ms", inactivity);
        })
    })
    .up(false),
    Plant::new("uplink-access", CELLULAR, 1, |random, severity, well, _| {
        only(well, ping("up", random.between(150.0, 500.0)));
        let period = if severity > 0.5 { 80 } else { 40 };
        Box::new(move |draft| draft.radio("sr").set("period_ms", period))
    })
    .up(true),
    Plant::new("uplink-access", CELLULAR, 1, |random, severity, well, _| {
        only(well, ping("up", random.between(150.0, 500.0)));
        let share = 0.3 + 0.6 * severity;
        Box::new(move |draft| draft.radio("sr").set("miss_probability", number(share)))
    })
    .up(true),
    Plant::new("uplink-access", CELLULAR, 1, |random, severity, _, _| {
        let timer = if severity > 0.5 { 640 } else { random.one_of(&[160, 320]) };
        Box::new(move |draft| {
            draft.radio("grants").set("assume_more", false);
            draft.radio("bsr").set("retx_timer_ms", timer);
        })
    })
    .up(false),
    Plant::new("radio-loss", CELLULAR, 2, |_, severity, well, _| {
        let share = number(scaled(severity, 0.0003, 0.1));
        same_mcs(well, "0");
        Box::new(move |draft| {
            draft.radio_of_data("rlc").set("mode", "\"um\"");
            draft.radio_of_data("harq").set("max_transmissions", 1);
            draft.radio_of_data("link_adaptation").set("fixed_bler", &share);
        })
    }),
    Plant::new("radio-loss", CELLULAR, 2, |random, severity, well, _| {
        if random.chance(0.5) {
            only(well, ping(well.direction(), 50.0));
        }
        let share = number(0.2 + 0.6 * severity);
        same_mcs(well, "0.1");
        Box::new(move |draft| {
            let adaptation = draft.radio_of_data("link_adaptation");
            adaptation.set("fixed_bler", &share);
            adaptation.set("fixed_bler_retransmission", &share);
        })
    }),
    // Blocks are lost so rarely that it hardly matters, but each loss stops everything for a while.
    Plant::new("pdcp-gap", CELLULAR, 2, |random, severity, well, _| {
        if random.chance(0.3) {
            only(well, ping(well.direction(), 20.0));
        }
        same_mcs(well, &number(random.log(0.0003, 0.003)));
        well.radio_of_data("harq").set("max_transmissions", 1);
        well.radio_of_data("rlc").set("mode", "\"um\"");
        well.radio_of_data("rlc").set("t_reordering_ms", 10);
        let wait = scaled(severity, 60.0, 3000.0).round();
        Box::new(move |draft| draft.radio_of_data("rlc").set("t_reordering_ms", wait))
    })
    .brings(|draft| draft.radio_of_data("link_adaptation").set("fixed_bler", "0")),
    // A handover loses packets because they are not forwarded, and the UE waits for them.
    Plant::new("pdcp-gap", NR, 2, |random, severity, well, _| {
        two_cells(random, well);
        let mobility = well.radio("mobility");
        mobility.set("interruption_ms", 5);
        mobility.set("link_failure", false);
        mobility.set("forwarding", "\"none\"");
        well.radio("rlc").set("t_reordering_ms", 10);
        let wait = scaled(severity, 60.0, 3000.0).round();
        Box::new(move |draft| draft.radio("rlc").set("t_reordering_ms", wait))
    })
    .up(false)
    .brings(|draft| draft.radio("mobility").set("forwarding", "\"all\"")),
    // Half of the bytes travel to a leg that is far away.
    Plant::new("split-bearer", NR, 2, |_, severity, well, _| {
        two_legs(well);
        let delay = scaled(severity, 30.0, 200.0).round();
        Box::new(move |draft| {
            draft.radio("split").set("delay_ms", delay);
            draft.radio("split").set("secondary_share", "0.5");
        })
    })
    .up(false),
    Plant::new("rrc-promotion", RADIO, 1, |random, severity, well, known| {
        let bytes = known.rate_mbps * 1e6 / 8.0 * scaled(1.0 - severity, 0.05, 2.0);
        only(well, file(bytes.max(10_000.0)));
        let setup = random.log(80.0, 500.0).round();
        Box::new(move |draft| {
            let rrc = draft.radio("rrc");
            rrc.set("enabled", true);
            rrc.set("setup_ms", setup);
        })
    }),
    Plant::new("rrc-promotion", CELLULAR, 1, |random, severity, well, _| {
        only(well, ping("up", random.between(800.0, 1500.0)));
        let setup = (20.0 + 300.0 * severity).round();
        Box::new(move |draft| {
            let rrc = draft.radio("rrc");
            rrc.set("enabled", true);
            rrc.set("setup_ms", setup);
            rrc.set("inactivity_ms", 500);
        })
    }),
    Plant::new("handover", CELLULAR, 2, |random, severity, well, _| {
        two_cells(random, well);
        let none = random.chance(0.5);
        let interruption = scaled(severity, 60.0, 1500.0).round();
        let mobility = well.radio("mobility");
        mobility.set("interruption_ms", 5);
        mobility.set("link_failure", false);
        Box::new(move |draft| {
            let mobility = draft.radio("mobility");
            mobility.set("interruption_ms", interruption);
            mobility.set("t304_ms", 2000);
            if none {
                mobility.set("forwarding", "\"none\"");
            }
        })
    }),
    Plant::new("radio-link-failure", CELLULAR, 2, |_, severity, well, _| {
        // RLC gives up soon, and re-establishing the connection takes time.
        well.radio_of_data("harq").set("max_transmissions", 2);
        let adaptation = well.radio_of_data("link_adaptation");
        adaptation.set("fixed_bler", "0.05");
        adaptation.set("fixed_bler_retransmission", "0.01");
        well.radio("mobility").set("link_failure", false);
        let again = scaled(severity, 50.0, 3000.0).round();
        Box::new(move |draft| {
            draft.radio_of_data("rlc").set("max_retx_threshold", 1);
            draft.radio("").set("any_timer_value", true);
            let mobility = draft.radio("mobility");
            mobility.set("link_failure", true);
            mobility.set("reestablishment_ms", again);
        })
    })
    .brings(|draft| {
        // Failures of first transmissions are usual; those of second transmissions are not.
        draft.radio_of_data("link_adaptation").set("fixed_bler_retransmission", "0");
        draft.radio_of_data("harq").set("max_transmissions", 4);
    }),
    Plant::new("radio-link-failure", CELLULAR, 1, |random, severity, well, _| {
        // A UE that passes through a coverage hole.
        let mut channel = Table::default();
        channel.set("path_loss", "\"uma_nlos\"");
        channel.set("distance_m", 200);
        channel.set("turn_m", number(random.between(900.0, 1100.0)));
        channel.set("speed_kmh", 500);
        channel.set("transmit_dbm", 40);
        channel.set("interference_db", 20);
        well.radio.insert("channel".to_owned(), channel);
        well.radio("mobility").set("link_failure", false);
        well.seconds = 20.0;
        let (t310, again) = (50, scaled(severity, 300.0, 5000.0).round());
        Box::new(move |draft| {
            let mobility = draft.radio("mobility");
            mobility.set("link_failure", true);
            mobility.set("t310_ms", t310);
            mobility.set("reestablishment_ms", again);
        })
    })
    .brings(|draft| {
        // Blocks with data fail no more often than usual.
        let adaptation = draft.radio_of_data("link_adaptation");
        adaptation.set("fixed_bler", "0.1");
        adaptation.set("fixed_bler_retransmission", "0");
    }),
];
