//! Puts an executor under load and prints what it took: `load ADDRESS RUNS IN_FLIGHT [PROGRAM]`, e.g.
//! `load unix:/tmp/x.sock 5000 64 'return 1 + 1'`. Each run is a `Run` stream of its own on one connection.
#![expect(clippy::print_stdout, reason = "a command line tool's answer")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use codemode_proto::executor_v1 as pb;
use pb::executor_client::ExecutorClient;
use tonic::transport::{Channel, Endpoint};

type Fault = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Fault> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, runs, in_flight, rest @ ..] = args.as_slice() else {
        return Err("usage: load ADDRESS RUNS IN_FLIGHT [PROGRAM]".into());
    };
    let (runs, in_flight): (usize, usize) = (runs.parse()?, in_flight.parse()?);
    let program = rest.first().map_or("return 1 + 1", String::as_str);
    let channel = Endpoint::from_shared(address.clone())?
        .initial_stream_window_size(8 << 20)
        .initial_connection_window_size(64 << 20)
        .connect()
        .await?;
    let client = ExecutorClient::new(channel).max_decoding_message_size(1 << 30);
    let program: Arc<str> = Arc::from(program.replace("\\n", "\n"));
    let next = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let workers: Vec<_> = (0..in_flight)
        .map(|_| {
            let (client, program, next) = (client.clone(), Arc::clone(&program), Arc::clone(&next));
            tokio::spawn(work(client, program, next, runs))
        })
        .collect();
    let mut all = Vec::with_capacity(runs);
    let mut failed = 0;
    let mut phases = [0; 6];
    for worker in workers {
        for sample in worker.await?? {
            failed += usize::from(sample.failed);
            all.push(sample.took);
            for (sum, phase) in phases.iter_mut().zip(sample.phases) {
                *sum += phase;
            }
        }
    }
    let elapsed = began.elapsed();
    all.sort_unstable();
    let at = |percent: usize| all[(all.len() - 1) * percent / 100];
    println!(
        "{runs} runs, {in_flight} in flight: {:.0}/s, p50 {:?}, p90 {:?}, p99 {:?}, max {:?}, {failed} failed",
        f64::from(u32::try_from(runs)?) / elapsed.as_secs_f64(),
        at(50),
        at(90),
        at(99),
        at(100),
    );
    let mean = phases.map(|sum| sum / runs as u64);
    println!(
        "mean µs: admission {}, strip {}, fork {}, lockdown {}, run {}, settle {}",
        mean[0], mean[1], mean[2], mean[3], mean[4], mean[5]
    );
    Ok(())
}

struct Sample {
    took: Duration,
    failed: bool,
    phases: [u64; 6],
}

async fn work(
    mut client: ExecutorClient<Channel>,
    program: Arc<str>,
    next: Arc<AtomicUsize>,
    runs: usize,
) -> Result<Vec<Sample>, Fault> {
    let mut samples = Vec::new();
    while next.fetch_add(1, Ordering::Relaxed) < runs {
        let began = Instant::now();
        let start = pb::StartRun { program: program.to_string(), ..Default::default() };
        let request = pb::RunRequest { message: Some(pb::run_request::Message::Start(start)) };
        let mut responses = client.run(tokio_stream::iter([request])).await?.into_inner();
        while let Some(response) = responses.message().await? {
            if let Some(pb::run_response::Message::Outcome(outcome)) = response.message {
                let phases = outcome.usage.and_then(|usage| usage.phases).unwrap_or_default();
                samples.push(Sample {
                    took: began.elapsed(),
                    failed: outcome.failure.is_some(),
                    phases: [
                        phases.admission_us,
                        phases.strip_us,
                        phases.fork_us,
                        phases.lockdown_us,
                        phases.run_us,
                        phases.settle_us,
                    ],
                });
            }
        }
    }
    Ok(samples)
}
