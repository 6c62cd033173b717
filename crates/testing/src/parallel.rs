//! Independent cases on all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Calls `work` with 0, 1, … up to `count` on all cores, and returns what it returned, in this order.
pub fn in_parallel<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(count);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(slot) = done.get(index) else { return };
                    let value = work(index);
                    *slot.lock().expect("no other thread has it") = Some(value);
                }
            });
        }
    });
    let ended = done.into_iter().map(|slot| slot.into_inner().expect("no thread has it"));
    ended.map(|value| value.expect("every case was worked on")).collect()
}
