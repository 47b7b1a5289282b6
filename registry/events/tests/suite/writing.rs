//! What every store promises: leases, order, reading, lists, waiting.

use std::sync::Arc;

use codemode_events::{Batch, Head, Lease, Page, Record, StoreError};

use crate::stores::{Fixture, id, over_each_store};

over_each_store! {
    a_session_is_made_once,
    numbers_follow_without_a_gap,
    a_refused_batch_leaves_nothing_and_takes_the_rest_with_it,
    resuming_ends_the_earlier_right,
    closing_ends_the_right_and_resuming_gives_it_again,
    pages_end_at_their_bounds,
    sessions_are_listed_in_order,
    waiting_ends_with_an_entry_and_with_the_close,
    odd_session_ids_are_sessions_of_their_own,
    what_is_not_there_is_named,
}

fn record(seq: u64) -> Record {
    Record { seq, at: 1000 + seq, v: 1, event: format!(r#"{{"type":"x","n":{seq}}}"#) }
}

fn records(numbers: impl IntoIterator<Item = u64>) -> Vec<Record> {
    numbers.into_iter().map(record).collect()
}

async fn append(at: &Fixture, lease: &Lease, numbers: &[u64]) -> Result<(), StoreError> {
    let (batch, commit) = Batch::new(records(numbers.iter().copied()));
    at.store.append(lease, batch);
    commit.durable().await
}

async fn all(at: &Fixture, session: &str) -> Vec<Record> {
    at.store.read(&id(session), Page::from(0)).await.expect("the session is there")
}

async fn a_session_is_made_once(at: Fixture) {
    let lease = at.store.create(&id("s"), 5).await.expect("it is new");
    assert_eq!((lease.epoch, lease.last), (1, 0));
    let again = at.store.create(&id("s"), 6).await;
    assert!(matches!(again, Err(StoreError::SessionExists(session)) if session == id("s")));
    append(&at, &lease, &[1]).await.expect("the refusal has not touched the lease");
    let listed = at.store.sessions(None, 10).await.expect("sessions can be listed");
    assert_eq!(listed.first().map(|info| info.created_at), Some(5));
}

async fn numbers_follow_without_a_gap(at: Fixture) {
    let lease = at.store.create(&id("s"), 0).await.expect("it is new");
    append(&at, &lease, &[1, 2, 3]).await.expect("they follow");
    append(&at, &lease, &[]).await.expect("nothing is fine as well");
    for (numbers, expected, given) in [(&[5][..], 4, 5), (&[3], 4, 3), (&[4, 6], 5, 6), (&[0], 4, 0)] {
        let refused = append(&at, &lease, numbers).await;
        assert!(
            matches!(refused, Err(StoreError::OutOfOrder { expected: e, given: g, .. }) if (e, g) == (expected, given)),
            "{numbers:?}: {refused:?}"
        );
    }
    append(&at, &lease, &[4]).await.expect("it follows");
    assert_eq!(all(&at, "s").await, records(1..=4));
}

async fn a_refused_batch_leaves_nothing_and_takes_the_rest_with_it(at: Fixture) {
    let lease = at.store.create(&id("s"), 0).await.expect("it is new");
    let (batches, commits): (Vec<_>, Vec<_>) =
        [vec![1], vec![2, 4], vec![3]].into_iter().map(|numbers| Batch::new(records(numbers))).unzip();
    for batch in batches {
        at.store.append(&lease, batch);
    }
    let mut outcomes = Vec::new();
    for commit in commits {
        outcomes.push(commit.durable().await.is_ok());
    }
    assert_eq!(outcomes, [true, false, false]);
    assert_eq!(all(&at, "s").await, records([1]));
}

async fn resuming_ends_the_earlier_right(at: Fixture) {
    let first = at.store.create(&id("s"), 0).await.expect("it is new");
    append(&at, &first, &[1]).await.expect("it follows");
    let second = at.store.resume(&id("s")).await.expect("it is there");
    assert_eq!((second.epoch, second.last), (2, 1));
    let refused = append(&at, &first, &[2]).await;
    assert!(matches!(refused, Err(StoreError::Fenced { epoch: 1, .. })), "{refused:?}");
    assert!(matches!(at.store.close(&first).await, Err(StoreError::Fenced { epoch: 1, .. })));
    append(&at, &second, &[2]).await.expect("the latest lease holds");
    assert_eq!(all(&at, "s").await, records(1..=2));
}

async fn closing_ends_the_right_and_resuming_gives_it_again(at: Fixture) {
    let lease = at.store.create(&id("s"), 0).await.expect("it is new");
    append(&at, &lease, &[1]).await.expect("it follows");
    at.store.close(&lease).await.expect("the lease holds");
    assert_eq!(at.store.head(&id("s")).await.expect("it is there"), Head { last: 1, open: false });
    assert!(matches!(append(&at, &lease, &[2]).await, Err(StoreError::Fenced { .. })));
    assert!(matches!(at.store.close(&lease).await, Err(StoreError::Fenced { .. })));
    let lease = at.store.resume(&id("s")).await.expect("it is there");
    append(&at, &lease, &[2]).await.expect("the new lease holds");
    assert_eq!(at.store.head(&id("s")).await.expect("it is there"), Head { last: 2, open: true });
}

async fn pages_end_at_their_bounds(at: Fixture) {
    let lease = at.store.create(&id("s"), 0).await.expect("it is new");
    append(&at, &lease, &[1, 2, 3, 4, 5]).await.expect("they follow");
    let bytes = record(1).event.len();
    let cases = [
        (Page { from: 0, records: 2, bytes: 1 << 20 }, 1..3),
        (Page { from: 4, records: 9, bytes: 1 << 20 }, 4..6),
        (Page { from: 2, records: 9, bytes: bytes + 1 }, 2..4),
        (Page { from: 2, records: 9, bytes }, 2..3),
        (Page { from: 2, records: 9, bytes: 0 }, 2..3),
        (Page { from: 6, records: 9, bytes: 1 << 20 }, 6..6),
        (Page { from: u64::MAX, records: 9, bytes: 1 << 20 }, 6..6),
        (Page { from: 1, records: 0, bytes: 1 << 20 }, 6..6),
    ];
    for (page, expected) in cases {
        let read = at.store.read(&id("s"), page).await.expect("the session is there");
        assert_eq!(read, records(expected), "{page:?}");
    }
}

async fn sessions_are_listed_in_order(at: Fixture) {
    for session in ["b", "a", "Z", "ä", "a\0"] {
        at.store.create(&id(session), 7).await.expect("it is new");
    }
    let listed = async |after: Option<&str>, limit| {
        let after = after.map(id);
        let page = at.store.sessions(after.as_ref(), limit).await.expect("sessions can be listed");
        page.iter().map(|info| info.session.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(listed(None, 9).await, ["Z", "a", "a\0", "b", "ä"]);
    assert_eq!(listed(None, 2).await, ["Z", "a"]);
    assert_eq!(listed(Some("a"), 2).await, ["a\0", "b"]);
    assert_eq!(listed(Some("ä"), 2).await, Vec::<String>::new());
}

async fn waiting_ends_with_an_entry_and_with_the_close(at: Fixture) {
    let lease = at.store.create(&id("s"), 0).await.expect("it is new");
    let store = Arc::clone(&at.store);
    let waiting = tokio::spawn(async move { store.wait(&id("s"), 1).await });
    append(&at, &lease, &[1, 2]).await.expect("they follow");
    let head = waiting.await.expect("it does not panic").expect("the session is there");
    assert_eq!(head, Head { last: 2, open: true });
    let store = Arc::clone(&at.store);
    let waiting = tokio::spawn(async move { store.wait(&id("s"), 2).await });
    at.store.close(&lease).await.expect("the lease holds");
    let head = waiting.await.expect("it does not panic").expect("the session is there");
    assert_eq!(head, Head { last: 2, open: false });
}

async fn odd_session_ids_are_sessions_of_their_own(at: Fixture) {
    let long = "x".repeat(codemode_events::SESSION_ID_BYTES_MAX);
    let odd = ["a", "a\0", "a\0b", "\0", " ", "A", "'; DROP TABLE entries; --", "\u{feff}", "𝕊", &long];
    let mut leases = Vec::new();
    for session in odd {
        leases.push(at.store.create(&id(session), 0).await.expect("each is new"));
    }
    for lease in &leases {
        append(&at, lease, &[1]).await.expect("it follows");
        assert_eq!(all(&at, lease.session.as_str()).await, records([1]));
    }
}

async fn what_is_not_there_is_named(at: Fixture) {
    let missing = |error| matches!(error, StoreError::NoSuchSession(session) if session == id("?"));
    assert!(at.store.resume(&id("?")).await.is_err_and(missing));
    assert!(at.store.head(&id("?")).await.is_err_and(missing));
    assert!(at.store.wait(&id("?"), 0).await.is_err_and(missing));
    assert!(at.store.read(&id("?"), Page::from(1)).await.is_err_and(missing));
    let lease = Lease { session: id("?"), epoch: 1, last: 0 };
    assert!(append(&at, &lease, &[1]).await.is_err_and(missing));
    assert!(at.store.close(&lease).await.is_err_and(missing));
}
