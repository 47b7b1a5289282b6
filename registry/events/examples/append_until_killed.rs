//! Appends to one session as fast as it can and prints `<number> <text>` for each entry once it is durable, until
//! somebody kills it. The crash test does.

use std::io::Write as _;
use std::sync::Arc;

use codemode_events::{
    ContentBlock, EventStore, OpenError, SessionId, SessionLog, Source, SqliteOptions, SqliteStore,
    StoreError, UserMessage, system_clock,
};

const WRITERS: usize = 8;

type Fault = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Fault> {
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next().ok_or("the first argument is the file")?;
    let session = SessionId::new("s")?;
    let store: Arc<dyn EventStore> = Arc::new(SqliteStore::open(&SqliteOptions::at(path))?);
    let log = match SessionLog::create(Arc::clone(&store), &session, system_clock()).await {
        Err(OpenError::Store(StoreError::SessionExists(_))) => {
            SessionLog::resume(store, &session, system_clock()).await?
        }
        made => made?,
    };
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write(log.clone(), writer));
    }
    while let Some(ended) = writers.join_next().await {
        ended??;
    }
    Ok(())
}

async fn write(log: SessionLog, writer: usize) -> Result<(), Fault> {
    for n in 0_u64.. {
        let text = format!("{writer}:{n}");
        let message = UserMessage { content: vec![ContentBlock::text(&text)], source: Source::user() };
        let appended = log.append(message).await?;
        let line = format!("{} {text}\n", appended.seq);
        appended.durable().await?;
        // One write for one line: whoever reads gets whole lines.
        let mut out = std::io::stdout().lock();
        out.write_all(line.as_bytes())?;
        out.flush()?;
    }
    Ok(())
}
