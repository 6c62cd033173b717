//! A state, and what is known of it until it changes.

#[cfg(debug_assertions)]
use std::cell::Cell;
use std::fmt;
use std::ops::Deref;

use crate::Instant;

#[cfg(all(debug_assertions, not(feature = "reference")))]
thread_local! {
    static FAST_PATHS: Cell<bool> = const { Cell::new(true) };
}

/// Whether fast paths may be taken. Not with the feature `reference`, and not within [`reference()`]: then
/// nothing that was worked out earlier is used again, and each rule is applied each time.
#[inline(always)]
pub fn fast_paths() -> bool {
    #[cfg(all(debug_assertions, not(feature = "reference")))]
    return FAST_PATHS.get();
    #[cfg(not(all(debug_assertions, not(feature = "reference"))))]
    !cfg!(feature = "reference")
}

/// Does the work without fast paths, on this thread: what it returns must be the same as with them. Only
/// in builds with debug assertions.
#[cfg(debug_assertions)]
pub fn reference<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(not(feature = "reference"))]
    let before = FAST_PATHS.replace(false);
    let result = work();
    #[cfg(not(feature = "reference"))]
    FAST_PATHS.set(before);
    result
}

#[cfg(debug_assertions)]
thread_local! {
    static PLANTED: Cell<&str> = const { Cell::new("") };
}

/// Whether the rule of this name applies, which only a clear way has. It never does outside of
/// [`with_rule()`].
#[inline(always)]
pub fn is_planted(rule: &str) -> bool {
    #[cfg(debug_assertions)]
    return PLANTED.get() == rule;
    #[cfg(not(debug_assertions))]
    {
        let _ = rule;
        false
    }
}

/// Does the work with one [planted rule](is_planted), on this thread: a comparison with [`reference()`] must
/// find it. Only in builds with debug assertions.
#[cfg(debug_assertions)]
pub fn with_rule<R>(rule: &'static str, work: impl FnOnce() -> R) -> R {
    let before = PLANTED.replace(rule);
    let result = work();
    PLANTED.set(before);
    result
}

/// A state of type `S`, and a value worked out from it, which is known until the state changes.
///
/// The state is read through `Deref`. There is no `DerefMut`: whoever changes the state goes through
/// [`touch`](Self::touch), which forgets the value, so that a change that leaves an outdated value
/// behind does not compile.
///
/// ```
/// use airpath_base::{Memo, fast_paths};
///
/// let mut list = Memo::new(vec![3, 1, 2]);
/// let largest = list.change(|list| {
///     list.push(7);
///     (7, Some(7))
/// });
/// assert_eq!((largest, list.known()), (7, fast_paths().then_some(7)));
/// list.touch().pop();
/// assert_eq!(list.known(), None);
/// ```
///
/// ```compile_fail,E0596
/// let mut list = airpath_base::Memo::<Vec<u8>, u8>::new(vec![1]);
/// list.push(2);
/// ```
#[derive(Clone)]
pub struct Memo<S, T> {
    state: S,
    known: Option<T>,
}

impl<S, T: Copy> Memo<S, T> {
    /// A state of which nothing is known yet.
    pub const fn new(state: S) -> Self {
        Self { state, known: None }
    }

    /// What is known of the state.
    #[inline(always)]
    pub fn known(&self) -> Option<T> {
        self.known.filter(|_| fast_paths())
    }

    /// Access for a change. Nothing is known afterwards.
    #[inline(always)]
    pub fn touch(&mut self) -> &mut S {
        self.known = None;
        &mut self.state
    }

    /// A change that returns, beside its result, what is known afterwards.
    #[inline(always)]
    pub fn change<R>(&mut self, change: impl FnOnce(&mut S) -> (R, Option<T>)) -> R {
        let (result, known) = change(&mut self.state);
        self.known = known;
        result
    }

    /// Access for a change that has no bearing on the value, such as a counter.
    #[inline(always)]
    pub fn aside(&mut self) -> &mut S {
        &mut self.state
    }

    /// Returns the state and drops what is known of it.
    pub fn into_state(self) -> S {
        self.state
    }
}

impl<S> Memo<S, Instant> {
    /// Whether the known time is later than `now`: until then, the state does not change by itself.
    ///
    /// ```
    /// use airpath_base::{Instant, Memo, fast_paths};
    ///
    /// let mut timers = Memo::new(vec![Instant::from_nanos(5)]);
    /// timers.change(|timers| ((), timers.iter().min().copied()));
    /// assert_eq!(timers.rests(Instant::from_nanos(4)), fast_paths());
    /// assert!(!timers.rests(Instant::from_nanos(5)));
    /// ```
    #[inline(always)]
    pub fn rests(&self, now: Instant) -> bool {
        self.known().is_some_and(|until| now < until)
    }
}

impl<S, T> Deref for Memo<S, T> {
    type Target = S;

    #[inline(always)]
    fn deref(&self) -> &S {
        &self.state
    }
}

/// The state alone: what is known follows from it.
impl<S: fmt::Debug, T> fmt::Debug for Memo<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.fmt(f)
    }
}

/// Equal states: what is known follows from them.
impl<S: PartialEq, T> PartialEq for Memo<S, T> {
    fn eq(&self, other: &Self) -> bool {
        self.state == other.state
    }
}
