//! Scenarios with a planted cause, drawn at random and verified by taking it away: does the
//! explanation name it? And is it silent where nothing is wrong? `make findings` draws more.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;

use airpath_base::Stream;
use airpath_findings::{Budget, Explanation, Measure, Question, compare, explain, measures};
use airpath_scenario::{Parsed, Source, parse};

/// A scenario in the making.
#[derive(Clone, Default)]
struct Draft {
    duration_s: f64,
    down: Vec<String>,
    up: Vec<String>,
    radio: String,
    flows: Vec<String>,
    /// Of its bottleneck, where it is a wire.
    rate_mbps: f64,
    rtt_ms: f64,
}

impl Draft {
    fn text(&self) -> String {
        let mut text = format!("[run]\nduration_s = {}\n", self.duration_s);
        for (direction, stages) in [("down", &self.down), ("up", &self.up)] {
            for stage in stages {
                text.push_str(&format!("[[path.{direction}]]\n{stage}\n"));
            }
        }
        text.push_str(&self.radio);
        for flow in &self.flows {
            text.push_str(&format!("[[flow]]\n{flow}\n"));
        }
        text
    }

    fn bdp(&self) -> f64 {
        self.rate_mbps * 1e6 / 8.0 * self.rtt_ms / 1e3
    }
}

struct Random(Stream);

impl Random {
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.unit()
    }

    fn log(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    fn below(&mut self, count: usize) -> usize {
        ((self.0.unit() * count as f64) as usize).min(count - 1)
    }

    fn chance(&mut self, share: f64) -> bool {
        self.0.unit() < share
    }
}

/// A path on which nothing but its rate holds a flow back.
fn base(random: &mut Random, radio: bool) -> Draft {
    let mut draft = Draft { duration_s: 20.0, ..Draft::default() };
    if radio {
        let presets = ["lte-10", "lte-20", "nr-fdd-20", "umts-hspa"];
        let preset = presets[random.below(presets.len())];
        let delay = random.between(5.0, 20.0);
        draft.duration_s = 12.0;
        draft.down.push(format!("stage = \"delay\"\ndelay_ms = {delay:.1}"));
        draft.up.push(format!("stage = \"delay\"\ndelay_ms = {delay:.1}"));
        draft.radio = format!(
            "[radio]\npreset = \"{preset}\"\n[radio.rlc]\naqm = \"codel\"\ncodel_target_ms = 30\n\
             codel_interval_ms = 200\n[radio.rrc]\nenabled = false\n"
        );
        (draft.rate_mbps, draft.rtt_ms) = (20.0, 2.0 * delay + 30.0);
    } else {
        draft.rate_mbps = random.log(5.0, 100.0);
        draft.rtt_ms = random.log(15.0, 120.0);
        let (rate, rtt) = (draft.rate_mbps, draft.rtt_ms);
        draft.down.push(format!(
            "stage = \"link\"\nrate_mbps = {rate:.2}\naqm = \"codel\"\ncodel_target_ms = {:.1}\n\
             codel_interval_ms = {:.1}",
            rtt / 5.0,
            2.0 * rtt
        ));
        draft.down.push(format!("stage = \"delay\"\ndelay_ms = {:.2}", rtt / 2.0));
        draft.up.push(format!("stage = \"delay\"\ndelay_ms = {:.2}", rtt / 2.0));
    }
    let control = ["cubic", "cubic", "cubic", "reno"][random.below(4)];
    draft.flows.push(format!(
        "kind = \"bulk\"\nprofile = \"linux-6.18\"\ncongestion = \"{control}\"\nslow_start = \"none\"\n\
         receive_buffer_bytes = 60000000\nsend_buffer_bytes = 60000000"
    ));
    if random.chance(0.4) {
        draft.flows.push("kind = \"ping\"\ninterval_ms = 200".to_owned());
    }
    draft
}

type Plant = fn(&mut Random, &mut Draft);

/// Names of causes, whether they need a radio, and how they are planted.
const PLANTS: &[(&str, bool, Plant)] = &[
    ("random-loss", false, |random, draft| {
        let share = random.log(0.0002, 0.02);
        draft.down.push(format!("stage = \"loss\"\nprobability = {share:.5}"));
    }),
    ("random-loss", true, |random, draft| {
        let share = random.log(0.0005, 0.02);
        draft.down.push(format!("stage = \"loss\"\nprobability = {share:.5}"));
    }),
    ("random-loss", false, |random, draft| {
        let enter = random.log(0.0001, 0.002);
        draft.down.push(format!(
            "stage = \"gilbert-elliott\"\ngood_to_bad = {enter:.5}\nbad_to_good = 0.3\nloss_good = 0\n\
             loss_bad = 0.5"
        ));
    }),
    ("policer", false, |random, draft| {
        let (rate, burst) = (draft.rate_mbps * random.between(0.3, 0.95), random.log(10e3, 60e3));
        draft
            .down
            .push(format!("stage = \"policer\"\nrate_mbps = {rate:.2}\nburst_bytes = {burst:.0}"));
    }),
    ("shaper", false, |random, draft| {
        let rate = draft.rate_mbps * random.between(0.3, 0.8);
        let (target, interval) = (draft.rtt_ms / 5.0, 2.0 * draft.rtt_ms);
        draft.down.push(format!(
            "stage = \"shaper\"\nrate_mbps = {rate:.2}\nburst_bytes = 20000\naqm = \"codel\"\n\
             codel_target_ms = {target:.1}\ncodel_interval_ms = {interval:.1}"
        ));
    }),
    ("short-queue", false, |random, draft| {
        let bytes = (draft.bdp() * random.log(0.02, 0.2)).max(3100.0);
        draft.down[0] = format!(
            "stage = \"link\"\nrate_mbps = {:.2}\nqueue_bytes = {bytes:.0}",
            draft.rate_mbps
        );
    }),
    ("bufferbloat", false, |random, draft| {
        let bytes = (draft.bdp() * random.log(1.0, 12.0)).max(60_000.0);
        draft.down[0] = format!(
            "stage = \"link\"\nrate_mbps = {:.2}\nqueue_bytes = {bytes:.0}",
            draft.rate_mbps
        );
    }),
    ("bufferbloat", true, |random, draft| {
        let bytes = random.log(500e3, 5e6);
        draft.radio = draft.radio.replace(
            "aqm = \"codel\"\ncodel_target_ms = 30\ncodel_interval_ms = 200",
            &format!("buffer_bytes = {bytes:.0}"),
        );
    }),
    ("reordering", false, |random, draft| {
        let jitter = random.log(1.0, 10.0);
        draft.down.push(format!(
            "stage = \"delay\"\ndelay_ms = 0\njitter_ms = {jitter:.2}\n\
             jitter_distribution = \"exponential\"\nkeep_order = false"
        ));
        let flow = &mut draft.flows[0];
        *flow = flow.replace("linux-6.18", "rfc");
    }),
    ("mtu", false, |_, draft| {
        draft.down.push("stage = \"mtu\"\nmtu_bytes = 1450".to_owned());
    }),
    ("one-way-path", false, |random, draft| {
        draft.up.push("stage = \"firewall\"\ntimeout_s = 100".to_owned());
        draft.down.insert(0, "stage = \"firewall\"".to_owned());
        let rate = draft.rate_mbps * random.between(0.1, 0.5);
        draft.flows = vec![format!("kind = \"udp\"\nrate_mbps = {rate:.2}")];
    }),
    ("nat-binding", false, |random, draft| {
        let timeout = random.between(2.0, 12.0);
        draft
            .up
            .push(format!("stage = \"nat\"\ntimeout_s = {timeout:.1}\ninward_refreshes = false"));
        draft.down.insert(0, "stage = \"nat\"".to_owned());
        let rate = draft.rate_mbps * random.between(0.1, 0.5);
        draft.flows =
            vec![format!("kind = \"udp\"\nrate_mbps = {rate:.2}\nopened_by = \"receiver\"")];
    }),
    ("double-nat", false, |random, draft| {
        let timeout = random.between(2.0, 12.0);
        draft.up.push("stage = \"nat\"\ntimeout_s = 300".to_owned());
        draft
            .up
            .push(format!("stage = \"nat\"\ntimeout_s = {timeout:.1}\ninward_refreshes = false"));
        draft.down.insert(0, "stage = \"nat\"".to_owned());
        draft.down.insert(0, "stage = \"nat\"".to_owned());
        let rate = draft.rate_mbps * random.between(0.1, 0.5);
        draft.flows =
            vec![format!("kind = \"udp\"\nrate_mbps = {rate:.2}\nopened_by = \"receiver\"")];
    }),
    ("stalling-host", false, |random, draft| {
        let (stall, between) = (random.log(10.0, 80.0), random.log(100.0, 600.0));
        let ring = [64, 128, 256][random.below(3)];
        draft.down.insert(
            0,
            format!(
                "stage = \"host\"\nstalls = \"at-random\"\nstall_ms = {stall:.1}\n\
             stall_mean_between_ms = {between:.1}\nring_packets = {ring}"
            ),
        );
    }),
    ("receive-window", false, |random, draft| {
        let bytes = (draft.bdp() * random.between(0.2, 0.85)).max(8000.0);
        let flow = &mut draft.flows[0];
        *flow = flow.replace(
            "receive_buffer_bytes = 60000000",
            &format!("receive_buffer_bytes = {bytes:.0}\ninitial_receive_buffer_bytes = 0"),
        );
    }),
    ("receive-window", true, |random, draft| {
        let bytes = random.log(8e3, 60e3);
        let flow = &mut draft.flows[0];
        *flow = flow.replace(
            "receive_buffer_bytes = 60000000",
            &format!("receive_buffer_bytes = {bytes:.0}\ninitial_receive_buffer_bytes = 0"),
        );
    }),
    ("send-buffer", false, |random, draft| {
        let bytes = (draft.bdp() * random.between(0.2, 0.85)).max(8000.0);
        let flow = &mut draft.flows[0];
        *flow = flow
            .replace("send_buffer_bytes = 60000000", &format!("send_buffer_bytes = {bytes:.0}"));
    }),
    ("application-limited", false, |random, draft| {
        let rate = draft.rate_mbps * random.between(0.3, 0.8);
        draft.flows[0].push_str(&format!("\nread_rate_mbps = {rate:.2}"));
    }),
    ("cross-traffic", false, |random, draft| {
        let rate = draft.rate_mbps * random.between(0.2, 0.6);
        draft.flows.push(format!("kind = \"udp\"\nrate_mbps = {rate:.2}"));
    }),
    ("ack-starvation", false, |random, draft| {
        let rate = draft.rate_mbps / random.log(45.0, 200.0);
        draft.up.push(format!("stage = \"link\"\nrate_mbps = {rate:.4}\nqueue_packets = 50"));
    }),
    ("placement", false, |random, draft| {
        draft.flows =
            vec![format!("kind = \"ping\"\ninterval_ms = {:.0}", random.between(100.0, 500.0))];
        let place = ["region", "ocean"][random.below(2)];
        draft.down.insert(0, format!("stage = \"server\"\nplace = \"{place}\""));
        draft.up.push(format!("stage = \"server\"\nplace = \"{place}\""));
    }),
    ("drx", true, |random, draft| {
        if draft.radio.contains("umts") {
            draft.radio = draft.radio.replace("umts-hspa", "lte-20");
        }
        let cycle = [80, 160, 320][random.below(3)];
        draft.radio.push_str(&format!(
            "[radio.drx]\nenabled = true\nlong_cycle_ms = {cycle}\ninactivity_ms = 10\n"
        ));
        draft.flows = vec!["kind = \"ping\"\ndirection = \"down\"\ninterval_ms = 530".to_owned()];
    }),
    ("rrc-promotion", true, |random, draft| {
        draft.radio =
            draft.radio.replace("[radio.rrc]\nenabled = false", "[radio.rrc]\nenabled = true");
        let size = random.log(20e3, 300e3);
        draft.flows = vec![format!(
            "kind = \"file\"\nsize_bytes = {size:.0}\nprofile = \"linux-6.18\"\nstart_s = 0.5"
        )];
    }),
    ("slow-start-exit", false, |random, draft| {
        draft.duration_s = random.between(3.0, 8.0);
        draft.flows[0] =
            draft.flows[0].replace("slow_start = \"none\"", "slow_start = \"hystart-4.19\"");
        let jitter = draft.rtt_ms * random.between(0.2, 0.5);
        draft.down.push(format!(
            "stage = \"delay\"\ndelay_ms = 0\njitter_ms = {jitter:.2}\njitter_distribution = \"uniform\"\n\
             keep_order = true"
        ));
        draft.flows.truncate(1);
    }),
];

/// Symptoms that hold nothing back.
const DECOYS: &[Plant] = &[
    |random, draft| {
        let share = random.log(0.000_001, 0.000_02);
        draft.down.push(format!("stage = \"loss\"\nprobability = {share:.7}"));
    },
    |_, draft| {
        let rate = 3.0 * draft.rate_mbps;
        draft
            .down
            .insert(0, format!("stage = \"policer\"\nrate_mbps = {rate:.2}\nburst_bytes = 100000"));
    },
    |_, draft| {
        let bytes = 3.0 * draft.bdp() + 100e3;
        let flow = &mut draft.flows[0];
        *flow = flow.replace(
            "receive_buffer_bytes = 60000000",
            &format!("receive_buffer_bytes = {bytes:.0}\ninitial_receive_buffer_bytes = 0"),
        );
    },
    |_, draft| {
        draft.up.push("stage = \"nat\"\ntimeout_s = 300".to_owned());
        draft.down.insert(0, "stage = \"nat\"".to_owned());
    },
    |_, draft| {
        draft.down.push("stage = \"mtu\"\nmtu_bytes = 1500".to_owned());
    },
    |random, draft| {
        let stall = random.between(0.1, 0.4);
        draft.down.insert(0, format!(
            "stage = \"host\"\nstalls = \"at-random\"\nstall_ms = {stall:.2}\nstall_mean_between_ms = 300"
        ));
    },
];

fn parsed(text: &str) -> Parsed {
    parse(&Source { name: "planted.toml", text, directory: None }, &[])
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn run(parsed: &Parsed, seeds: u64) -> Vec<Vec<Measure>> {
    let run = |seed| {
        let outcome = airpath_sim::simulate(&parsed.scenario, seed, &mut |_| true).expect("runs");
        measures(&parsed.scenario, &outcome.summary)
    };
    (1000..1000 + seeds).map(run).collect()
}

fn answer(text: &str, parsed: &Parsed) -> Explanation {
    let source = Source { name: "planted.toml", text, directory: None };
    let question =
        Question { source, sets: &[], parsed, seed: 1, budget: Budget::QUICK, threads: 2 };
    explain(&question, &mut |_| true).expect("not stopped")
}

fn named(answer: &Explanation) -> Vec<&'static str> {
    let findings = answer.findings.iter().map(|finding| finding.cause);
    findings.filter(|cause| !cause.ends_with("-capacity")).collect()
}

/// What was drawn, and what was said.
#[derive(Default)]
struct Tally {
    right: u64,
    judged: u64,
    /// Drawn, but taking the cause away changed too little.
    without_effect: u64,
    confusion: BTreeMap<(&'static str, String), u32>,
}

/// Draws until `count` scenarios have a cause that matters; `radio` allows radio cells, which take
/// longer.
fn planted(count: u64, seed: u64, radio: bool) -> Tally {
    let mut random = Random(Stream::new(seed, "planted"));
    let mut tally = Tally::default();
    for &(cause, on_radio, plant) in PLANTS.iter().cycle() {
        if tally.judged == count {
            return tally;
        }
        if on_radio && !radio {
            continue;
        }
        let healthy = base(&mut random, on_radio);
        let mut ill = healthy.clone();
        plant(&mut random, &mut ill);
        let cured = cured(cause, &healthy, &ill);
        let (text, with, without) = (ill.text(), parsed(&ill.text()), parsed(&cured.text()));
        if compare::score(&compare::effects(&run(&with, 3), &run(&without, 3))) < 0.15 {
            tally.without_effect += 1;
            continue;
        }
        tally.judged += 1;
        let answer = answer(&text, &with);
        let first = named(&answer).first().copied().unwrap_or("nothing").to_owned();
        tally.right += u64::from(first == cause);
        if first != cause {
            tell(&format!("{cause} was planted"), &text, &answer);
        }
        *tally.confusion.entry((cause, first)).or_default() += 1;
    }
    tally
}

/// The same without its cause. What a plant replaces besides (flows, duration) is not the cause.
fn cured(cause: &str, healthy: &Draft, ill: &Draft) -> Draft {
    let mut cured = ill.clone();
    if cause != "slow-start-exit" {
        cured.down.clone_from(&healthy.down);
        cured.up.clone_from(&healthy.up);
    }
    match cause {
        "receive-window" | "send-buffer" | "application-limited" | "cross-traffic" => {
            cured.flows.clone_from(&healthy.flows);
        }
        "bufferbloat" | "rrc-promotion" => cured.radio.clone_from(&healthy.radio),
        "drx" => {
            cured.radio =
                ill.radio.replace("[radio.drx]\nenabled = true", "[radio.drx]\nenabled = false")
        }
        "slow-start-exit" => cured.flows[0] = healthy.flows[0].clone(),
        _ => {}
    }
    cured
}

/// Scenarios with a symptom that holds nothing back, or with none: how many, and of how many
/// nothing false was said.
fn healthy(count: u64, seed: u64, radio: bool) -> (u64, u64) {
    let mut random = Random(Stream::new(seed, "healthy"));
    let mut clean = 0;
    for index in 0..count {
        let mut draft = base(&mut random, radio && index % 4 == 3);
        if index % 2 == 0 {
            DECOYS[(index / 2) as usize % DECOYS.len()](&mut random, &mut draft);
        }
        let text = draft.text();
        let answer = answer(&text, &parsed(&text));
        clean += u64::from(named(&answer).is_empty());
        if !named(&answer).is_empty() {
            tell("nothing was planted", &text, &answer);
        }
    }
    (clean, count)
}

fn tell(what: &str, text: &str, answer: &Explanation) {
    println!("{what}; said was {:?} after {} runs", named(answer), answer.runs);
    for finding in &answer.findings {
        println!("   {:.2} {}: {}", finding.score, finding.cause, finding.evidence);
    }
    for tried in &answer.tried {
        println!("   tried {} {:?}: {}", tried.cause, tried.set, tried.outcome);
    }
    println!("   {}", text.replace('\n', "; "));
}

/// What is drawn by `FINDINGS_COUNT` and `FINDINGS_SEED`, else these.
fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a whole number"))
}

#[test]
fn a_planted_cause_on_a_wire_is_named_first() {
    let tally = planted(24, 1, false);
    println!("{} of {}: {:?}", tally.right, tally.judged, tally.confusion);
    assert!(tally.right * 100 >= tally.judged * 95);
}

#[test]
fn where_nothing_is_wrong_nothing_is_said() {
    let (clean, all) = healthy(10, 1, false);
    assert!(clean * 100 >= all * 90, "{clean} of {all}");
}

#[test]
fn an_explanation_does_not_depend_on_the_number_of_threads() {
    let mut random = Random(Stream::new(3, "threads"));
    let mut draft = base(&mut random, false);
    draft.down.push("stage = \"loss\"\nprobability = 0.005".to_owned());
    let text = draft.text();
    let parsed = parsed(&text);
    let source = Source { name: "planted.toml", text: &text, directory: None };
    let with = |threads| {
        let question = Question {
            source,
            sets: &[],
            parsed: &parsed,
            seed: 1,
            budget: Budget::QUICK,
            threads,
        };
        serde_json::to_string(&explain(&question, &mut |_| true).expect("not stopped")).unwrap()
    };
    assert_eq!(with(1), with(7));
}

#[test]
fn it_can_be_stopped() {
    let mut random = Random(Stream::new(4, "stop"));
    let text = base(&mut random, false).text();
    let parsed = parsed(&text);
    let source = Source { name: "planted.toml", text: &text, directory: None };
    let question =
        Question { source, sets: &[], parsed: &parsed, seed: 1, budget: Budget::QUICK, threads: 2 };
    assert!(explain(&question, &mut |_| false).is_err());
}

/// `make findings`.
#[test]
#[ignore = "takes minutes"]
fn many() {
    let (count, seed) =
        (from_environment("FINDINGS_COUNT", 100), from_environment("FINDINGS_SEED", 1));
    let tally = planted(count, seed, true);
    let (clean, all) = healthy(count / 3, seed, true);
    println!("\n  planted                first-ranked           times");
    for ((cause, first), times) in &tally.confusion {
        println!("  {cause:22} {first:22} {times}");
    }
    println!(
        "FINDINGS_SEED={seed} FINDINGS_COUNT={count}: {} of {} planted causes are ranked first ({} more were \
         drawn and had no effect); nothing false on {clean} of {all} healthy scenarios and decoys.",
        tally.right, tally.judged, tally.without_effect
    );
    assert!(tally.right * 100 >= tally.judged * 95);
}
