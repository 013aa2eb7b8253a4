//! The `callboard` binary: the server and its tools.

mod args;
mod dev;
mod directories;
mod exit;
mod logging;
mod properties;
mod server;
mod settings;
mod storage;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Command};
use crate::exit::Exit;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come as errors too; they go to standard output.
            let exit = if error.use_stderr() { Exit::Refused } else { Exit::Success };
            let _ = error.print();
            return exit.into();
        }
    };
    match run(cli) {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("{error:#}");
            Exit::Refused.into()
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<Exit> {
    logging::start(cli.log_level.as_deref(), cli.log_json).map_err(anyhow::Error::msg)?;
    match cli.command {
        Command::Dev(args) => dev::run(args),
        Command::Server(args) => server::run_file(args),
        Command::Storage { command } => storage::run(command, &mut std::io::stdout()),
    }
}
