//! The `callboard` binary: the server and its tools.

mod args;
mod exit;
mod properties;
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
            // Help and version are printed as errors too, to standard output.
            let exit = if error.use_stderr() { Exit::Refused } else { Exit::Success };
            let _ = error.print();
            return exit.into();
        }
    };
    let result = match cli.command {
        Command::Storage { command } => storage::run(command, &mut std::io::stdout()),
    };
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("{error:#}");
            Exit::Refused.into()
        }
    }
}
