//! What an append costs: for each store and 1, 8 and 64 writers of one session, entries made durable per second, and
//! how long an append takes until it is ordered and until it is durable. `cargo bench -p codemode-events`.

use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use codemode_events::{
    CodeDispatchStart, EventStore, Json, MemoryStore, SessionId, SessionLog, SqliteOptions, SqliteStore,
    TurnStart, system_clock,
};

const TIME: Duration = Duration::from_secs(2);

type Fault = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Fault> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build()?;
    runtime.block_on(run())
}

async fn run() -> Result<(), Fault> {
    let mut out = std::io::stdout();
    // The file belongs on a disk, which a temporary directory may not be.
    let directory = tempfile::tempdir_in(std::env::current_dir()?)?;
    let file = SqliteOptions::at(directory.path().join("events.sqlite"));
    let stores: [(&str, Arc<dyn EventStore>); 2] =
        [("memory", Arc::new(MemoryStore::new())), ("sqlite", Arc::new(SqliteStore::open(&file)?))];
    writeln!(out, "store   writers  entries/s  ordered p50  ordered p99  durable p50  durable p99")?;
    for (name, store) in stores {
        for writers in [1, 8, 64] {
            let figures = measure(Arc::clone(&store), writers).await?;
            writeln!(out, "{name:<7} {writers:>7}  {figures}")?;
        }
    }
    Ok(())
}

/// Lets writers append one after the other, each waiting until its entry is durable.
async fn measure(store: Arc<dyn EventStore>, writers: usize) -> Result<String, Fault> {
    let session = SessionId::new(&format!("{writers}"))?;
    let log = SessionLog::create(store, &session, system_clock()).await?;
    log.append_durable(TurnStart { turn_id: "t".to_owned() }).await?;
    let began = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..writers {
        tasks.spawn(write(log.clone(), writer, began));
    }
    let (mut ordered, mut durable) = (Vec::new(), Vec::new());
    while let Some(task) = tasks.join_next().await {
        let (mut first, mut second) = task??;
        ordered.append(&mut first);
        durable.append(&mut second);
    }
    let seconds = began.elapsed().as_secs_f64();
    let count = u32::try_from(durable.len())?;
    ordered.sort_unstable();
    durable.sort_unstable();
    let micros =
        |times: &[Duration], per_cent: usize| times[(times.len() - 1) * per_cent / 100].as_nanos() / 100;
    let columns = [(&ordered, 50), (&ordered, 99), (&durable, 50), (&durable, 99)];
    let columns = columns.map(|(times, per_cent)| {
        let tenths = micros(times, per_cent);
        format!("{:>8}.{} µs", tenths / 10, tenths % 10)
    });
    Ok(format!("{:>9.0}  {}", f64::from(count) / seconds, columns.join("  ")))
}

type Times = (Vec<Duration>, Vec<Duration>);

async fn write(log: SessionLog, writer: usize, began: Instant) -> Result<Times, Fault> {
    let mut times = Times::default();
    let arguments = Json::parse(r#"{"path":"src/main.rs","limit":100,"pattern":"fn main"}"#)?;
    for n in 0.. {
        let start = Instant::now();
        if start - began > TIME {
            break;
        }
        let event = CodeDispatchStart {
            root_call_id: "c".to_owned(),
            parent_call_id: "c".to_owned(),
            sub_call_id: format!("c:code:{writer}:{n}"),
            name: "search".to_owned(),
            arguments: arguments.clone(),
        };
        let appended = log.append(event).await?;
        times.0.push(start.elapsed());
        appended.durable().await?;
        times.1.push(start.elapsed());
    }
    Ok(times)
}
