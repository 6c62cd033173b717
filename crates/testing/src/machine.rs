//! Finds out whether the machine had other work.

use std::fs;

/// A machine is busy if others use more than this fraction of its processor time.
const OTHERS: f64 = 0.05;
/// A machine is busy, too, if the hypervisor takes more than this fraction for other machines.
const STOLEN: f64 = 0.02;

/// Ticks of processor time so far (proc(5)), summed over the processors that this process may use.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// All ticks, idle or not.
    whole: f64,
    /// Ticks used by anybody, without interrupts, most of which are caused by our own packets.
    busy: f64,
    stolen: f64,
    /// Ticks of this process and the children it has waited for.
    own: f64,
}

/// Processor time that others used during a test, as fractions of the machine's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OtherWork {
    others: f64,
    stolen: f64,
}

impl Usage {
    /// Reads `/proc`; on a machine without it nothing is known.
    pub fn now() -> Self {
        let read = |file| fs::read_to_string(file).unwrap_or_default();
        Self::of(&read("/proc/stat"), &read("/proc/self/stat"), &read("/proc/self/status"))
    }

    fn of(machine: &str, process: &str, status: &str) -> Self {
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let allowed = processors(allowed.unwrap_or_default());
        let mut usage = Self { whole: 0.0, busy: 0.0, stolen: 0.0, own: 0.0 };
        for line in machine.lines() {
            let mut words = line.split_whitespace();
            let number = words.next().and_then(|name| name.strip_prefix("cpu")?.parse().ok());
            if !number.is_some_and(|number| allowed.contains(&number)) {
                continue;
            }
            // user nice system idle iowait irq softirq steal
            let ticks: Vec<f64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
            usage.whole += ticks.iter().sum::<f64>();
            usage.busy += ticks.iter().take(3).sum::<f64>();
            usage.stolen += ticks.get(7).unwrap_or(&0.0);
        }
        // After the name, which may contain spaces: utime, stime, cutime, cstime are fields 14 to
        // 17.
        let fields = process.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11);
        usage.own = fields.take(4).filter_map(|word| word.parse::<f64>().ok()).sum();
        usage
    }
}

impl OtherWork {
    /// The work of others since `before`.
    pub fn since(before: &Usage) -> Self {
        Self::between(before, &Usage::now())
    }

    fn between(before: &Usage, after: &Usage) -> Self {
        let whole = (after.whole - before.whole).max(1.0);
        let others = (after.busy - before.busy) - (after.own - before.own);
        Self { others: others.max(0.0) / whole, stolen: (after.stolen - before.stolen) / whole }
    }

    /// Why the machine was busy; `None` if it was not.
    pub fn busy(&self) -> Option<String> {
        let percent = |work: f64| format!("{:.0} %", 100.0 * work);
        if self.others > OTHERS {
            return Some(format!("other work took {} of the processors", percent(self.others)));
        }
        let stolen = self.stolen > STOLEN;
        stolen.then(|| format!("the hypervisor took {} of the processors", percent(self.stolen)))
    }
}

/// The numbers of a list such as `0-3,8`.
fn processors(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_processors_that_we_may_use() {
        let status = "Name:\tx\nCpus_allowed_list:\t0,2-3\n";
        // The process may not use the third processor.
        let machine = "cpu  9 9 9\ncpu0 100 0 50 800 10 5 5 30 0 0\ncpu1 999 9 9 9 9 9 9 999 0 0\n\
                       cpu2 0 0 0 1000 0 0 0 0 0 0\ncpu3 0 0 0 1000 0 0 0 0 0 0\nintr 1 2 3\n";
        let process = "77 (a (b) c) S 1 1 1 0 -1 4 1 2 3 4 10 20 30 40 20 0 1 0 9 9 9\n";
        let idle = Usage { whole: 0.0, busy: 0.0, stolen: 0.0, own: 0.0 };
        let work = OtherWork::between(&idle, &Usage::of(machine, process, status));
        // 150 ticks of work, of which 100 are ours, and 30 stolen.
        assert_eq!(work, OtherWork { others: 50.0 / 3000.0, stolen: 30.0 / 3000.0 });
        assert_eq!(work.busy(), None);
    }

    #[test]
    fn others_or_the_hypervisor_make_it_busy() {
        let busy = |others, stolen| OtherWork { others, stolen }.busy();
        assert_eq!(busy(0.05, 0.02), None);
        assert_eq!(busy(0.31, 0.0).as_deref(), Some("other work took 31 % of the processors"));
        assert_eq!(busy(0.0, 0.03).as_deref(), Some("the hypervisor took 3 % of the processors"));
    }

    #[test]
    fn this_machine_is_read() {
        let usage = Usage::now();
        assert!(usage.whole > usage.busy && usage.busy > 0.0, "{usage:?}");
    }
}
