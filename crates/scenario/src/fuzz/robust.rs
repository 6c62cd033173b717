//! Tests the parser with shipped scenarios that were changed at random.

use proptest::prelude::*;

use super::judge;
use crate::shipped;

/// Fragments that lead the parser into corner cases.
const PIECES: &[&str] = &[
    "[[flow]]\n",
    "[[path.down]]\n",
    "[path]\n",
    "[profile.a]\n",
    "stage = \"proxy\"\n",
    "base = \"a\"\n",
    "profile = \"a\"\n",
    "kind = \"file\"\n",
    "stage = \"trace\"\n",
    "file = \"builtin:sawtooth\"\n",
    "aqm = \"codel\"\n",
    "congestion = \"fixed\"\n",
    "window_bytes = 1\n",
    "mss_bytes = 65495\n",
    "delay_ms = 1e400\n",
    "rate_mbps = -nan\n",
    "probability = 1\n",
    "start_s = 99999999999999999999\n",
    "seed = 0xffffffffffffffffffffffffffffffffffffffff\n",
    "id = \"\u{1f4f6}\"\n",
    "[radio]\n",
    "[[radio.ue]]\n",
    "[radio.cell]\n",
    "[radio.rlc]\n",
    "[radio.ue.channel]\n",
    "[[radio.carrier]]\n",
    "[radio.carrier.cell]\n",
    "[[radio.neighbour]]\n",
    "[radio.neighbour.cell]\n",
    "[radio.mobility]\n",
    "[[radio.handover]]\nat_s = 1\nto = \"cell-1\"\n",
    "[[radio.outage]]\nat_s = 1\nduration_s = 1\ncell = \"cell-1\"\n",
    "name = \"cell-1\"\n",
    "preset = \"nr-n78\"\n",
    "preset = \"lte-tdd-20\"\n",
    "model = \"process\"\n",
    "mode = \"um\"\n",
    "duplex = \"tdd\"\n",
    "tdd_pattern = \"SU 10:2:2\"\n",
    "t_reordering_ms = \"infinity\"\n",
    "count = 3\n",
    "enabled = false\n",
    "period_ms = \"none\"\n",
    "prbs_up = 1\n",
    "= 1\n",
    "\"\"\"",
    "\r\n",
    "{",
    "[",
    "é",
    "0",
    ".",
    "-",
];

/// Cuts bytes out of a shipped scenario and inserts fragments, at character boundaries.
fn mutate(text: &str, edits: &[(usize, usize, usize)]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for &(at, cut, piece) in edits {
        let at = at % (chars.len() + 1);
        let end = (at + cut).min(chars.len());
        chars.splice(at..end, PIECES[piece % PIECES.len()].chars());
    }
    chars.into_iter().collect()
}

/// Moves, drops and duplicates whole lines.
fn shuffle(text: &str, edits: &[(usize, usize, usize)]) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    for &(from, to, what) in edits {
        let (from, to) = (from % lines.len(), to % lines.len());
        match what % 4 {
            0 => lines.swap(from, to),
            1 if lines.len() > 1 => {
                lines.remove(from);
            }
            2 => lines.insert(to, lines[from]),
            _ => lines.insert(to, PIECES[what % PIECES.len()]),
        }
    }
    lines.concat()
}

fn edits(up_to: usize) -> impl Strategy<Value = Vec<(usize, usize, usize)>> {
    prop::collection::vec((0..4000_usize, 0..12_usize, 0..1000_usize), 1..up_to)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn mutated_files_never_panic(which in 0..100_usize, edits in edits(6)) {
        let text = shipped()[which % shipped().len()].1;
        judge(&mutate(text, &edits), &[]);
    }

    #[test]
    fn shuffled_files_never_panic(which in 0..100_usize, edits in edits(8)) {
        let text = shipped()[which % shipped().len()].1;
        judge(&shuffle(text, &edits), &[]);
    }

    #[test]
    fn any_setting_never_panics(
        which in 0..100_usize,
        sets in prop::collection::vec(
            prop_oneof![
                any::<String>(),
                "radio[.](cell|drx|rlc|rlc_up|sr|channel|harq|rach|rrc|grants|ue[.]0[.]bsr)[.](enabled|mode|mu|period_ms|long_cycle_ms|bandwidth_mhz|model|sinr_db|periodic_timer_ms|aqm|processes|inactive|proactive_period_ms|duplex)=(true|false|um|none|infinity|tdd|process|codel|[0-9]{1,4}|0[.]5)",
                "(run|flow|path|profile|title)([.](0|1|down|seed|id|kind|\"x\")){0,3}=[-0-9a-z.\\[\\]{}\"]{0,6}",
            ],
            1..4,
        ),
    ) {
        let text = shipped()[which % shipped().len()].1;
        judge(text, &sets);
    }
}
