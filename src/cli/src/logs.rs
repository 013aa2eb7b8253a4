//! `callboard dump-log` and `callboard verify-log`: looking at logs that no node has open.

use std::io::Write;

use callboard_actors::supervision::Exit;
use callboard_storage::{DumpMode, DumpOptions, Dumper, verify_dir};

use crate::args::{DumpLogArgs, VerifyLogArgs};

/// Prints the files as Kafka's dump-log does; what is wrong with them comes last, on standard error.
pub fn dump(args: &DumpLogArgs, out: &mut impl Write) -> anyhow::Result<Exit> {
    let mode = match (args.index_sanity_check, args.verify_index_only) {
        (true, _) => DumpMode::SanityCheck,
        (false, true) => DumpMode::VerifyIndex,
        (false, false) => DumpMode::Print,
    };
    let options = DumpOptions {
        deep: args.deep_iteration || args.print_data_log,
        print_data: args.print_data_log,
        skip_record_metadata: args.skip_record_metadata,
        max_bytes: args.max_bytes,
        mode,
    };
    let mut dumper = Dumper::new(std::io::BufWriter::new(out), options);
    for file in &args.files {
        dumper.file(file).map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?;
    }
    let problems: Vec<_> = dumper.problems().collect();
    drop(dumper);
    problems.iter().for_each(|problem| eprintln!("{problem}"));
    Ok(Exit::Clean)
}

/// Checks a directory, says what is wrong file by file, and fails if anything is.
pub fn verify(args: &VerifyLogArgs, out: &mut impl Write) -> anyhow::Result<Exit> {
    let report = verify_dir(&args.dir)?;
    for finding in &report.findings {
        writeln!(out, "{}: {}", finding.path.display(), finding.what)?;
    }
    writeln!(
        out,
        "{} partitions, {} segments, {} batches, {} records: {}",
        report.partitions,
        report.segments,
        report.batches,
        report.records,
        match report.findings.len() {
            0 => "nothing wrong".to_owned(),
            count => format!("{count} findings"),
        }
    )?;
    Ok(if report.findings.is_empty() { Exit::Clean } else { Exit::Refused })
}
