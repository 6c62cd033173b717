//! Tests the packets of a time window: where each was, and when.

use serde_json::{Value, json};

/// Packets of the shipped scenario over LTE, whose wires add a delay of 10 ms each way.
fn packets(sets: &[&str], from_s: f64, to_s: f64) -> Vec<Value> {
    let ok = answer(sets, &json!({ "from_s": from_s, "to_s": to_s, "most": 100_000 }))["ok"].take();
    ok["packets"].as_array().expect("it has packets").clone()
}

fn answer(sets: &[&str], window: &Value) -> Value {
    let shipped = airpath_scenario::shipped();
    let (_, text) = shipped.iter().find(|(name, _)| *name == "lte-20").expect("it is shipped");
    let sets = [&["run.duration_s=1"], sets].concat();
    let mut request = json!({ "op": "packets", "name": "lte-20", "text": text, "sets": sets });
    for (key, value) in window.as_object().expect("it is a window") {
        request[key] = value.clone();
    }
    let answer = airpath_wasm::answer(&request.to_string(), &mut |_| true);
    serde_json::from_str(&answer.document).expect("it is JSON")
}

#[test]
fn they_are_at_the_base_station_between_wires_and_radio() {
    let all = packets(&[], 0.0, 1.0);
    let time = |one: &Value, key: &str| one[key].as_f64();
    for down in [true, false] {
        let there: Vec<_> = (all.iter().filter(|one| one["down"] == down))
            .filter_map(|one| {
                Some((time(one, "sent_s")?, time(one, "base_s")?, time(one, "arrived_s")?))
            })
            .collect();
        assert!(there.len() > 500, "{} packets", there.len());
        for (sent, base, arrived) in there {
            let (wires, radio) =
                if down { (base - sent, arrived - base) } else { (arrived - base, base - sent) };
            assert!((wires - 0.010).abs() < 1e-9, "{sent} {base} {arrived}");
            assert!(radio > 0.003, "{sent} {base} {arrived}");
        }
    }
}

#[test]
fn those_are_shown_to_which_something_happens() {
    let all = packets(&[], 0.0, 1.0);
    let (from, to) = (0.6, 0.61);
    let inside = |one: &Value| {
        ["sent_s", "base_s", "arrived_s"]
            .iter()
            .any(|key| one[*key].as_f64().is_some_and(|time| (from..=to).contains(&time)))
    };
    let expected: Vec<_> = all.into_iter().filter(inside).collect();
    assert!(expected.iter().any(|one| one["sent_s"].as_f64() < Some(from)));
    assert_eq!(packets(&[], from, to), expected);
}

/// A small buffer: what does not fit reached the base station, but went no further.
#[test]
fn a_packet_that_the_radio_drops_came_to_it() {
    let all = packets(&["radio.ue.0.rlc.buffer_bytes=30000"], 0.0, 1.0);
    let lost = all.iter().filter(|one| {
        one["down"] == true && one["arrived_s"].is_null() && one["sent_s"].as_f64() < Some(0.8)
    });
    let (reached, all) = lost.fold((0, 0), |(reached, all), one| {
        (reached + i32::from(!one["base_s"].is_null()), all + 1)
    });
    assert!(all > 10, "{all} lost");
    assert_eq!(reached, all);
}

#[test]
fn a_sample_has_an_equal_part_of_every_flow_and_direction() {
    let all = packets(&[], 0.0, 1.0);
    let window = json!({ "from_s": 0, "to_s": 1, "most": 1000, "sampled": true });
    let document = answer(&[], &window);
    let sample = document["ok"]["packets"].as_array().expect("it has packets");
    let every = document["ok"]["every"].as_u64().expect("it is a number") as usize;
    assert!(sample.len() > 500 && sample.len() <= 1000, "{} packets", sample.len());
    assert_eq!(document["ok"]["more"], 0);
    assert!(every.is_power_of_two() && all.len() / every <= 1000, "every {every}th");
    for flow in 0..2 {
        for down in [true, false] {
            let is_one = |one: &&Value| one["flow"] == flow && one["down"] == down;
            let expected: Vec<_> = all.iter().filter(is_one).step_by(every).collect();
            assert!(expected.len() > 10);
            assert_eq!(sample.iter().filter(is_one).collect::<Vec<_>>(), expected);
        }
    }
    // The radio's events would be more than the packets.
    assert_eq!(document["ok"]["tables"][0]["rows"].as_u64().unwrap_or(0), 0);
}

#[test]
fn packets_in_flight_during_the_whole_window_belong_to_it_if_wanted() {
    let all = packets(&[], 0.0, 1.0);
    let (from, to) = (0.6, 0.602);
    let window = json!({ "from_s": from, "to_s": to, "most": 100_000, "in_flight": true });
    let document = answer(&[], &window);
    let found = document["ok"]["packets"].as_array().expect("it has packets");
    let spans =
        |one: &Value| one["sent_s"].as_f64() < Some(from) && one["arrived_s"].as_f64() > Some(to);
    let expected = all.iter().filter(|one| spans(one)).count();
    assert!(expected > 10, "{expected} packets");
    assert_eq!(found.iter().filter(|one| spans(one)).count(), expected);
}
