//! A list of tables, some of which are switched off.

/// The tables of a list, in file order. Those with `enabled = false` are kept apart, so that
/// nothing takes them for a part of the scenario.
pub(crate) struct List<T> {
    /// The enabled tables.
    pub(crate) on: Vec<T>,
    /// The disabled tables, each with its position in the file's list.
    off: Vec<(usize, T)>,
}

impl<T> List<T> {
    /// An empty list.
    pub(crate) const fn new() -> Self {
        Self { on: Vec::new(), off: Vec::new() }
    }

    /// Appends an item.
    pub(crate) fn push(&mut self, item: T, enabled: bool) {
        if enabled {
            self.on.push(item);
        } else {
            self.off.push((self.len(), item));
        }
    }

    /// All items in the file's order.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = &T> {
        let (mut on, mut off) = (self.on.iter(), self.off.iter().peekable());
        (0..self.len()).filter_map(move |place| match off.next_if(|(at, _)| *at == place) {
            Some((_, item)) => Some(item),
            None => on.next(),
        })
    }

    fn len(&self) -> usize {
        self.on.len() + self.off.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_the_files() {
        let mut list = List::new();
        for (item, enabled) in [(0, false), (1, true), (2, true), (3, false), (4, false)] {
            list.push(item, enabled);
        }
        assert_eq!(list.on, [1, 2]);
        assert!(list.in_order().eq(&[0, 1, 2, 3, 4]));
    }
}
