//! Writes a log with all that a log can have, to be checked with Kafka's dump-log: `write_log DIR`.
//! Its last segment is closed in order; `write_log DIR crash` leaves it as a crash would, and opens it again.

use std::path::Path;

use callboard_protocol::records::control::EndTransactionMarker;
use callboard_protocol::records::rebuild::Ready;
use callboard_protocol::records::{BatchBuilder, Compression, CompressionLevels, RecordBatch, RecordError};
use callboard_storage::{Log, LogConfig, OpenOptions, Origin};

const NOW: i64 = 1_800_000_000_000;

fn ready(bytes: bytes::Bytes) -> Result<Ready, RecordError> {
    let batch = RecordBatch::parse(bytes)?;
    Ok(Ready { header: batch.header, payload: batch.payload() })
}

fn plain(i: i64, codec: Compression) -> Result<Ready, RecordError> {
    let mut builder = BatchBuilder::new(0).compression(codec, CompressionLevels::default());
    for r in 0..1 + i % 7 {
        let value = format!("{i} {r} {}", "x".repeat((i * 37 % 300) as usize));
        builder.append(NOW + i * 10 - i % 5 * 25, Some(b"key"), Some(value.as_bytes()), &[(b"h", None)]);
    }
    ready(builder.build()?)
}

fn transactional(i: i64) -> Result<Ready, RecordError> {
    let mut builder = BatchBuilder::new(0).producer(5, 0, i as i32).transactional(true);
    builder.append(NOW + i, None, Some(b"in a transaction"), &[]);
    ready(builder.build()?)
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(dir) = arguments.next() else { anyhow::bail!("usage: write_log DIR [crash]") };
    let options = OpenOptions {
        config: LogConfig { segment_bytes: 60_000, segment_index_bytes: 8_192, ..LogConfig::default() },
        now_ms: NOW,
        ..OpenOptions::default()
    };
    let (mut log, _) = Log::open(Path::new(&dir), options.clone())?;
    let codecs = [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
        Compression::None,
    ];
    for (i, codec) in (0..2_000).zip(codecs.iter().cycle()) {
        let epoch = i as i32 / 500;
        log.append_as_leader(&[plain(i, *codec)?], epoch, Origin::Client, NOW)?;
        if i % 4 == 0 {
            log.append_as_leader(&[transactional(i / 4)?], epoch, Origin::Client, NOW)?;
        }
        if i % 40 == 1 {
            let marker = EndTransactionMarker { committed: i % 80 == 1, coordinator_epoch: 0 };
            let marker = ready(marker.batch(0, 0, 5, 0, NOW + i)?)?;
            log.append_as_leader(&[marker], epoch, Origin::Coordinator, NOW)?;
        }
        if i == 1_700 {
            log.truncate_to(log.log_end_offset() - 900, NOW)?;
            // The truncation took some of the producer's batches.
            break;
        }
    }
    for i in 0..300 {
        log.append_as_leader(&[plain(i, Compression::None)?], 9, Origin::Client, NOW)?;
    }
    if arguments.next().as_deref() == Some("crash") {
        drop(log);
        let (reopened, report) = Log::open(Path::new(&dir), options)?;
        println!("{report:?}");
        log = reopened;
    }
    println!("{:?} to {}", log.reader().segments(), log.log_end_offset());
    log.close()?;
    Ok(())
}
