//! Memory of what became of programs, bounded in bytes. Knows nothing of processes: its owner empties it.

use std::sync::Arc;

use lru::LruCache;

use super::Stripped;

/// What an entry costs beside its texts, bytes.
const ENTRY_OVERHEAD_BYTES: usize = 256;

/// Programs and what became of them, the least recently used forgotten first. The key is the whole text: a hash that
/// two programs share must never run one for the other.
#[derive(Debug)]
pub(super) struct Cache {
    entries: LruCache<Arc<str>, Arc<Stripped>>,
    bytes: usize,
    bytes_max: usize,
}

impl Cache {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { entries: LruCache::unbounded(), bytes: 0, bytes_max }
    }

    pub(super) fn get(&mut self, program: &str) -> Option<Arc<Stripped>> {
        if self.bytes_max == 0 { None } else { self.entries.get(program).cloned() }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    pub(super) fn insert(&mut self, program: &Arc<str>, stripped: &Arc<Stripped>) {
        let cost = cost(program, stripped);
        if cost > self.bytes_max / 2 {
            return;
        }
        if let Some(replaced) = self.entries.put(Arc::clone(program), Arc::clone(stripped)) {
            self.bytes -= self::cost(program, &replaced);
        }
        self.bytes += cost;
        while self.bytes > self.bytes_max {
            let Some((program, stripped)) = self.entries.pop_lru() else { break };
            self.bytes -= self::cost(&program, &stripped);
        }
    }
}

fn cost(program: &str, stripped: &Stripped) -> usize {
    let texts = match stripped {
        Stripped::Program { source, hints, .. } => {
            source.len() + hints.iter().map(String::len).sum::<usize>()
        }
        Stripped::Refused { message, .. } => message.len(),
    };
    program.len() + texts + ENTRY_OVERHEAD_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(message: &str) -> Arc<Stripped> {
        Arc::new(Stripped::Refused { message: message.to_owned(), line: 0, column: 0 })
    }

    #[test]
    fn the_cache_is_bounded_in_bytes_and_forgets_the_least_used() {
        let mut cache = Cache::new(8 * ENTRY_OVERHEAD_BYTES);
        let programs: Vec<Arc<str>> = (0..10).map(|i| Arc::from(format!("p{i}"))).collect();
        for program in &programs {
            cache.insert(program, &refused(""));
            cache.get("p0").expect("used all the time");
        }
        assert!(cache.bytes <= cache.bytes_max);
        assert!(cache.get("p1").is_none() && cache.get("p9").is_some());
        let kept: usize = cache.entries.iter().map(|(p, s)| cost(p, s)).sum();
        assert_eq!(kept, cache.bytes);
        cache.insert(&programs[0], &refused("other"));
        let kept: usize = cache.entries.iter().map(|(p, s)| cost(p, s)).sum();
        assert_eq!(kept, cache.bytes);
    }

    #[test]
    fn a_giant_is_not_cached_and_zero_turns_it_off() {
        let mut cache = Cache::new(4096);
        let giant: Arc<str> = Arc::from("x".repeat(3000));
        cache.insert(&giant, &refused(""));
        assert!(cache.get(&giant).is_none());
        let mut off = Cache::new(0);
        let small: Arc<str> = Arc::from("x");
        off.insert(&small, &refused(""));
        assert!(off.get("x").is_none());
    }
}
