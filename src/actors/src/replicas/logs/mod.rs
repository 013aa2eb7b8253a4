//! What looks after the logs of this broker: the keeper (retention, producers gone silent) and the cleaners (compaction).

mod board;
mod cleaner;
mod keeper;

use std::sync::Arc;

use super::manager::{Core, Manager};
use crate::supervision::{ActorRef, Spec, SupervisorRef, SupervisorSpec};

pub use cleaner::{Cleaner, CleanerOptions};
pub use keeper::{Keeper, Upkeep};

/// Starts them below `replicas`. It reads the checkpoints of compaction, thus blocks.
pub(super) fn start(replicas: &SupervisorRef, core: &Core, manager: &ActorRef<Manager>) {
    let logs = replicas.supervisor(SupervisorSpec::new("logs"));
    let (registry, upkeep) = (Arc::clone(&core.registry), core.setup.upkeep);
    let directories = Arc::clone(&core.setup.directories);
    let keeper = move || Keeper::new(Arc::clone(&registry), Arc::clone(&directories), upkeep);
    let _: ActorRef<Keeper> = logs.spawn(Spec::new("keeper", keeper));
    let options = core.setup.cleaners;
    if !options.enabled {
        return;
    }
    let board = Arc::new(board::Board::new(&core.setup.directories));
    for index in 0..options.threads {
        let (board, registry, manager) = (Arc::clone(&board), Arc::clone(&core.registry), manager.clone());
        let factory = move || Cleaner::new(index, options, &board, &registry, &manager);
        let _: ActorRef<Cleaner> = logs.spawn(Spec::new(format!("cleaner-{index}"), factory));
    }
}
