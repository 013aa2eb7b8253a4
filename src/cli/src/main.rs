//! The `callboard` binary: the server and its tools.

mod args;
mod dev;
mod logging;
mod logs;
mod properties;
mod server;
mod settings;
mod storage;

use std::process::ExitCode;

use callboard_actors::supervision::Exit;
use clap::Parser as _;

use crate::args::{Cli, Command};

/// Frames come and go at a high rate; the system's allocator gives their pages back each time, only to have them cleared
/// and mapped anew.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come as errors too; they go to standard output.
            let exit = if error.use_stderr() { Exit::Refused } else { Exit::Clean };
            let _ = error.print();
            return code(exit);
        }
    };
    match run(cli) {
        Ok(exit) => code(exit),
        Err(error) => {
            eprintln!("{}", describe(&error));
            code(Exit::Refused)
        }
    }
}

/// An error with its causes, without those that its text names already.
fn describe(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn code(exit: Exit) -> ExitCode {
    ExitCode::from(exit.code())
}

fn run(cli: Cli) -> anyhow::Result<Exit> {
    // `dev` says on standard output that it is ready, and needs no log for that.
    let quiet = !matches!(cli.command, Command::Server(_) | Command::Storage { .. });
    let default = if quiet { "warn" } else { "info" };
    logging::start(cli.log_level.as_deref(), default, cli.log_json).map_err(anyhow::Error::msg)?;
    match cli.command {
        Command::Dev(args) => dev::run(args),
        Command::Server(args) => server::run_file(args),
        Command::DumpLog(args) => logs::dump(&args, &mut std::io::stdout()),
        Command::VerifyLog(args) => logs::verify(&args, &mut std::io::stdout()),
        Command::Storage { command } => storage::run(command, &mut std::io::stdout()),
    }
}
