//! Followers over each store: everything once and in order, whatever happens meanwhile.

use std::sync::Arc;

use codemode_events::{CorruptEntry, Event, ReadError, StoreError, follow};
use futures::{StreamExt, TryStreamExt};

use crate::events::user;
use crate::stores::{Fixture, id, over_each_store};

over_each_store! {
    followers_see_everything_once_and_in_order,
    a_slow_follower_misses_nothing,
    a_follower_sees_what_a_later_writer_appends,
    following_ends_with_the_close,
    following_what_is_not_there_is_an_error,
    a_broken_entry_ends_the_stream,
}

/// Numbers and texts from `from` on.
async fn followed(at: &Fixture, from: u64) -> Vec<(u64, String)> {
    let entries: Vec<_> =
        follow(Arc::clone(&at.store), id("s"), from).try_collect().await.expect("the store is well");
    let text = |event: &Event| match event {
        Event::UserMessage(said) => {
            said.content.first().and_then(|block| block.as_text()).unwrap_or_default()
        }
        other => other.tag().to_owned(),
    };
    entries.iter().map(|entry| (entry.seq, text(&entry.event))).collect()
}

fn numbered(numbers: impl IntoIterator<Item = u64>) -> Vec<(u64, String)> {
    numbers.into_iter().map(|n| (n, n.to_string())).collect()
}

async fn followers_see_everything_once_and_in_order(at: Fixture) {
    let at = Arc::new(at);
    let log = at.log().await;
    let mut followers = tokio::task::JoinSet::new();
    for from in [0, 1, 300, 700, 1500, 1501, 9000] {
        let at = Arc::clone(&at);
        followers.spawn(async move { (from, followed(&at, from).await) });
    }
    for n in 1..=1500 {
        let text = n.to_string();
        let appended = log.append(user(&text)).await.expect("it is welcome");
        if n % 100 == 0 {
            appended.durable().await.expect("the store is well");
            let at = Arc::clone(&at);
            followers.spawn(async move { (n - 50, followed(&at, n - 50).await) });
        }
    }
    log.close().await.expect("the store is well");
    for (from, entries) in followers.join_all().await {
        assert!(entries == numbered(from.max(1)..=1500), "from {from}: {} entries", entries.len());
    }
}

async fn a_slow_follower_misses_nothing(at: Fixture) {
    let log = at.log().await;
    let mut slow = log.follow(1);
    for n in 1..=1200 {
        log.append(user(&n.to_string())).await.expect("it is welcome");
        if n % 400 == 1 {
            let entry = slow.next().await.expect("it goes on").expect("the store is well");
            assert_eq!(entry.seq, n / 400 + 1);
        }
    }
    log.close().await.expect("the store is well");
    let rest: Vec<_> = slow.map_ok(|entry| entry.seq).try_collect().await.expect("the store is well");
    assert!(rest.into_iter().eq(4..=1200));
}

async fn a_follower_sees_what_a_later_writer_appends(at: Fixture) {
    let first = at.log().await;
    first.append_durable(user("1")).await.expect("it is welcome");
    let mut follower = first.follow(1);
    let mut next = async || follower.next().await.expect("it goes on").expect("the store is well").seq;
    assert_eq!(next().await, 1);
    let second = at.resumed().await;
    drop(first);
    second.append_durable(user("2")).await.expect("it is welcome");
    assert_eq!(next().await, 2);
    second.close().await.expect("the store is well");
    assert!(follower.next().await.is_none());
}

async fn following_ends_with_the_close(at: Fixture) {
    let log = at.log().await;
    let waiting = tokio::spawn(log.follow(1).try_collect::<Vec<_>>());
    let beyond = tokio::spawn(log.follow(u64::MAX).try_collect::<Vec<_>>());
    log.close().await.expect("the store is well");
    for follower in [waiting, beyond] {
        let entries = follower.await.expect("it does not panic").expect("the store is well");
        assert!(entries.is_empty());
    }
    assert_eq!(followed(&at, 1).await, []);
}

async fn following_what_is_not_there_is_an_error(at: Fixture) {
    let entries: Vec<_> = follow(Arc::clone(&at.store), id("?"), 1).collect().await;
    assert!(matches!(entries[..], [Err(ReadError::Store(StoreError::NoSuchSession(_)))]), "{entries:?}");
}

async fn a_broken_entry_ends_the_stream(at: Fixture) {
    let lease = at.store.create(&id("s"), 0).await.expect("it is new");
    let record = |seq, event: &str| codemode_events::Record { seq, at: 0, v: 1, event: event.to_owned() };
    let good = r#"{"type":"turn/start","turnId":"t"}"#;
    let (batch, commit) = codemode_events::Batch::new(vec![
        record(1, good),
        record(2, r#"{"type":"turn/start"}"#),
        record(3, good),
    ]);
    at.store.append(&lease, batch);
    commit.durable().await.expect("stores do not look into events");
    let entries: Vec<_> = follow(Arc::clone(&at.store), id("s"), 1).collect().await;
    let broken = |error: &ReadError| matches!(error, ReadError::Corrupt(CorruptEntry { seq: 2, .. }));
    assert!(matches!(&entries[..], [Ok(_), Err(error)] if broken(error)), "{entries:?}");
}
