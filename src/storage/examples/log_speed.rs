//! Times appends, reads and a recovery in DIR: `log_speed DIR [BATCH_BYTES [GIGABYTES]]`. In release only.

use std::path::Path;
use std::time::Instant;

use callboard_protocol::records::rebuild::Ready;
use callboard_protocol::records::{BatchBuilder, RecordBatch};
use callboard_storage::{Log, LogConfig, OpenOptions, Origin};

/// User and system time of this process in seconds.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn report(
    what: &str,
    units: f64,
    unit: &str,
    run: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (start, cpu) = (Instant::now(), cpu_s());
    run()?;
    let (wall, cpu) = (start.elapsed().as_secs_f64(), cpu_s() - cpu);
    println!("{what}: {:.3} s and {:.3} CPU s a {unit}", wall / units, cpu / units);
    Ok(())
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(dir) = arguments.next() else { anyhow::bail!("usage: log_speed DIR [BATCH_BYTES [GIGABYTES]]") };
    let batch_bytes: usize = arguments.next().map_or(Ok(16_384), |n| n.parse())?;
    let gigabytes: f64 = arguments.next().map_or(Ok(1.0), |n| n.parse())?;
    let mut builder = BatchBuilder::new(0);
    while builder.size_bytes() < batch_bytes {
        builder.append(1_000, None, Some(&[7; 100]), &[]);
    }
    let batch = RecordBatch::parse(builder.build()?)?;
    let row = [Ready { header: batch.header, payload: batch.payload() }];
    let count = (gigabytes * 1e9) as usize / batch.bytes.len();
    let options = OpenOptions { config: LogConfig::default(), ..OpenOptions::default() };
    let (mut log, _) = Log::open(Path::new(&dir), options.clone())?;
    report("append", gigabytes, "GB", || {
        for _ in 0..count {
            log.append_as_leader(&row, 0, Origin::Client, 0)?;
        }
        Ok(())
    })?;
    let (reader, end) = (log.reader(), log.log_end_offset());
    report("find a region", 0.1, "million", || {
        for i in 0..100_000 {
            reader.read(i * 7_919 % end, 1 << 20, end, true)?;
        }
        Ok(())
    })?;
    report("find the last batch", 0.1, "million", || {
        for _ in 0..100_000 {
            reader.read(end - 1, 1 << 20, end, true)?;
        }
        Ok(())
    })?;
    drop(log);
    report("recover", gigabytes, "GB", || {
        Log::open(Path::new(&dir), options.clone()).map(drop).map_err(Into::into)
    })?;
    let options = OpenOptions { clean_shutdown: true, ..options };
    Log::open(Path::new(&dir), options.clone())?.0.close()?;
    report("open after a clean stop", 1.0, "log", || {
        Log::open(Path::new(&dir), options).map(drop).map_err(Into::into)
    })?;
    Ok(())
}
