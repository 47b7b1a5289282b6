//! Picks an executor for each attempt: of two neighbours in turn, the one with fewer live runs of ours.
//!
//! tonic's own balancer counts a request as done when its response's head is there, which for a stream that lasts as long as a
//! run says nothing; and it cannot be told which executor has just refused. Hence these few lines. A host name that
//! stands for several addresses (a headless service) counts as that many executors and is looked up again now and then.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::channel::{Client, client};
use super::config::{Address, GrpcConfig};

/// How long a failed executor is passed over where there is another.
const FAILURE_MEMORY: Duration = Duration::from_secs(2);
/// Live runs that such an executor counts as having on top.
const FAILURE_PENALTY: usize = 1 << 20;

/// How often host names are looked up, and how long that may hold up a run.
const LOOKUP_INTERVAL: Duration = Duration::from_secs(10);
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(1);
/// Addresses of one host name that are used.
const ADDRESSES_MAX: usize = 64;

/// One executor, as far as we can tell them apart.
struct Slot {
    id: usize,
    target: usize,
    pinned: Option<SocketAddr>,
    endpoint: String,
    client: Client,
    live: AtomicUsize,
    failed: Mutex<Option<Instant>>,
}

impl Slot {
    fn load(&self, now: Instant) -> usize {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let penalty = failed.is_some_and(|failed| now.duration_since(failed) < FAILURE_MEMORY);
        self.live.load(Ordering::Relaxed) + if penalty { FAILURE_PENALTY } else { 0 }
    }
}

/// All executors of a runtime.
pub(super) struct Pool {
    config: GrpcConfig,
    slots: Mutex<Vec<Arc<Slot>>>,
    turn: AtomicUsize,
    next_id: AtomicUsize,
    looked_up: tokio::sync::Mutex<Option<Instant>>,
}

impl Pool {
    /// Makes the clients; nothing is dialled yet.
    pub(super) fn new(config: &GrpcConfig) -> Result<Self, tonic::transport::Error> {
        let pool = Self {
            config: config.clone(),
            slots: Mutex::default(),
            turn: AtomicUsize::new(0),
            next_id: AtomicUsize::new(0),
            looked_up: tokio::sync::Mutex::default(),
        };
        let slots =
            (0..config.endpoints.len()).map(|target| pool.slot(target, None)).collect::<Result<_, _>>()?;
        pool.replace(slots);
        Ok(pool)
    }

    fn slot(&self, target: usize, pinned: Option<SocketAddr>) -> Result<Arc<Slot>, tonic::transport::Error> {
        let (name, address) = &self.config.endpoints[target];
        Ok(Arc::new(Slot {
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            target,
            pinned,
            endpoint: pinned.map_or_else(|| name.clone(), |pinned| format!("{name} ({pinned})")),
            client: client(&self.config, address, pinned)?,
            live: AtomicUsize::new(0),
            failed: Mutex::default(),
        }))
    }

    fn slots(&self) -> Vec<Arc<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, slots: Vec<Arc<Slot>>) {
        *self.slots.lock().unwrap_or_else(PoisonError::into_inner) = slots;
    }

    /// Whether there is an executor that is not in `tried`.
    pub(super) fn has_untried(&self, tried: &BTreeSet<usize>) -> bool {
        self.slots().iter().any(|slot| !tried.contains(&slot.id))
    }

    /// An executor for one attempt, outside `tried` if there is one.
    pub(super) async fn lease(&self, tried: &BTreeSet<usize>) -> Lease {
        self.look_up().await;
        let slots = self.slots();
        let untried: Vec<_> = slots.iter().filter(|slot| !tried.contains(&slot.id)).cloned().collect();
        let slot = self.pick(if untried.is_empty() { &slots } else { &untried });
        slot.live.fetch_add(1, Ordering::Relaxed);
        Lease { slot }
    }

    /// `slots` is never empty: every target keeps one.
    fn pick(&self, slots: &[Arc<Slot>]) -> Arc<Slot> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let (first, second) = pair(turn, slots.len());
        let now = Instant::now();
        let better = if slots[second].load(now) < slots[first].load(now) { second } else { first };
        Arc::clone(&slots[better])
    }

    /// Looks host names up again if that is due. A lookup that fails leaves things as they are.
    async fn look_up(&self) {
        if !self.config.endpoints.iter().any(|(_, address)| lookup_name(address).is_some()) {
            return;
        }
        let mut looked_up = self.looked_up.lock().await;
        if looked_up.is_some_and(|at| at.elapsed() < LOOKUP_INTERVAL) {
            return;
        }
        *looked_up = Some(Instant::now());
        for (target, (_, address)) in self.config.endpoints.iter().enumerate() {
            let Some(name) = lookup_name(address) else { continue };
            let found = tokio::time::timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host(name)).await;
            if let Ok(Ok(found)) = found {
                self.expand(target, &one_family(found.collect()));
            }
        }
    }

    /// Makes the slots of `target` those of the addresses; a single address stays with the unpinned slot.
    fn expand(&self, target: usize, addresses: &[SocketAddr]) {
        let wanted: Vec<Option<SocketAddr>> =
            if addresses.len() > 1 { addresses.iter().copied().map(Some).collect() } else { vec![None] };
        let (own, mut others): (Vec<_>, Vec<_>) =
            self.slots().into_iter().partition(|slot| slot.target == target);
        for pinned in wanted {
            let slot = match own.iter().find(|slot| slot.pinned == pinned) {
                Some(slot) => Ok(Arc::clone(slot)),
                None => self.slot(target, pinned),
            };
            match slot {
                Ok(slot) => others.push(slot),
                // The same settings made a client before; leave the slots alone rather than lose one.
                Err(error) => return tracing::warn!(%error, "no client for an address that was looked up"),
            }
        }
        self.replace(others);
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let endpoints: Vec<_> = self.slots().iter().map(|slot| slot.endpoint.clone()).collect();
        formatter.debug_struct("Pool").field("endpoints", &endpoints).finish_non_exhaustive()
    }
}

/// One attempt's executor; counts as a live run until it is dropped.
pub(super) struct Lease {
    slot: Arc<Slot>,
}

impl Lease {
    pub(super) fn id(&self) -> usize {
        self.slot.id
    }

    pub(super) fn endpoint(&self) -> &str {
        &self.slot.endpoint
    }

    pub(super) fn client(&self) -> Client {
        self.slot.client.clone()
    }

    /// Passes the executor over for a while.
    pub(super) fn mark_failed(&self) {
        *self.slot.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.slot.live.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Two different places (of more than one) that change with each turn, so that every pair has its turn.
fn pair(turn: usize, len: usize) -> (usize, usize) {
    let first = turn % len;
    if len == 1 {
        return (first, first);
    }
    let distance = 1 + (turn / len) % (len - 1);
    (first, (first + distance) % len)
}

/// What to look up: names only, and not `localhost`, whose two addresses are one machine.
fn lookup_name(address: &Address) -> Option<(&str, u16)> {
    match address {
        Address::Net { host, port, .. }
            if host != "localhost" && host.parse::<std::net::IpAddr>().is_err() =>
        {
            Some((host, *port))
        }
        Address::Net { .. } | Address::Unix(_) => None,
    }
}

/// A machine with both families must not count twice.
fn one_family(mut found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    if found.iter().any(SocketAddr::is_ipv4) {
        found.retain(SocketAddr::is_ipv4);
    }
    found.sort_unstable();
    found.dedup();
    found.truncate(ADDRESSES_MAX);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(addresses: &[&str]) -> Pool {
        Pool::new(&GrpcConfig::new(addresses).expect("addresses")).expect("clients")
    }

    #[test]
    fn pairs_differ_and_all_of_them_come() {
        for len in 2..6 {
            let pairs: BTreeSet<_> = (0..len * (len - 1)).map(|turn| pair(turn, len)).collect();
            assert!(pairs.iter().all(|(first, second)| first != second));
            assert_eq!(pairs.len(), len * (len - 1));
        }
        assert_eq!(pair(7, 1), (0, 0));
    }

    #[tokio::test]
    async fn live_runs_spread_evenly() {
        let pool = pool(&["http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"]);
        let mut leases = Vec::new();
        for _ in 0..30 {
            leases.push(pool.lease(&BTreeSet::new()).await);
        }
        for slot in pool.slots() {
            let live = slot.live.load(Ordering::Relaxed);
            assert!((9..=11).contains(&live), "{} has {live}", slot.endpoint);
        }
        drop(leases);
        assert!(pool.slots().iter().all(|slot| slot.live.load(Ordering::Relaxed) == 0));
    }

    #[tokio::test]
    async fn a_failed_executor_is_passed_over_unless_it_is_the_last() {
        let pool = pool(&["http://127.0.0.1:1", "http://127.0.0.1:2"]);
        let failed = pool.lease(&BTreeSet::new()).await;
        failed.mark_failed();
        for _ in 0..10 {
            assert_ne!(pool.lease(&BTreeSet::new()).await.id(), failed.id());
        }
        let other = pool.lease(&BTreeSet::from([failed.id()])).await;
        let all = BTreeSet::from([failed.id(), other.id()]);
        assert!(!pool.has_untried(&all));
        pool.lease(&all).await;
    }

    #[tokio::test]
    async fn addresses_of_a_name_become_slots_and_keep_their_state() {
        let pool = pool(&["http://executors.invalid:7", "http://127.0.0.1:2"]);
        let address = |last: u8| SocketAddr::from(([10, 0, 0, last], 7));
        pool.expand(0, &[address(1), address(2)]);
        let before: BTreeSet<_> = pool.slots().iter().map(|slot| slot.id).collect();
        assert_eq!(before.len(), 3);
        pool.expand(0, &[address(2), address(3)]);
        let after: BTreeSet<_> = pool.slots().iter().map(|slot| slot.id).collect();
        assert_eq!(before.intersection(&after).count(), 2, "the other target's and the address that stayed");
        pool.expand(0, &[]);
        assert_eq!(pool.slots().len(), 2);
    }

    #[test]
    fn only_names_are_looked_up_and_one_family_is_used() {
        for (address, looked_up) in [
            ("http://executors:1", true),
            ("http://localhost:1", false),
            ("http://10.0.0.1:1", false),
            ("http://[::1]:1", false),
            ("unix:/x", false),
        ] {
            let config = GrpcConfig::new([address]).expect("an address");
            assert_eq!(lookup_name(&config.endpoints[0].1).is_some(), looked_up, "{address}");
        }
        let v4: SocketAddr = "10.0.0.1:1".parse().expect("an address");
        let v6: SocketAddr = "[fd00::1]:1".parse().expect("an address");
        assert_eq!(one_family(vec![v6, v4, v4]), vec![v4]);
        assert_eq!(one_family(vec![v6]), vec![v6]);
    }
}
