//! What a node offers the handlers of requests.

use std::fmt;
use std::sync::Arc;

use callboard_metadata::config::BrokerConfig;
use callboard_metadata::features::{KRAFT_VERSION, SUPPORTED};

use crate::api::FetchSessions;
use crate::control::applied::{AppliedMetadata, BrokerMetadata};
use crate::control::controller::QuorumController;
use crate::control::raft::Raft;
use crate::groups::Groups;
use crate::producer_ids::ProducerIds;
use crate::replicas::Replicas;
use crate::supervision::{ActorRef, Clock, Shards};
use crate::transactions::Transactions;

/// What a node offers the handlers of requests.
pub struct Services {
    /// The settings it was started with.
    pub config: Arc<BrokerConfig>,
    /// The cluster it belongs to.
    pub cluster_id: String,
    /// `node.id`.
    pub node_id: i32,
    /// Its clock.
    pub clock: Clock,
    /// Where its actors run.
    pub shards: Shards,
    /// The cluster's metadata as carried out here.
    pub metadata: BrokerMetadata,
    /// The active controller.
    pub controller: QuorumController,
    /// The quorum's log.
    pub raft: Raft,
    /// The partitions it holds.
    pub replicas: Replicas,
    /// The group coordinator.
    pub groups: Groups,
    /// The transaction coordinator.
    pub transactions: Transactions,
    /// Ids for producers.
    pub producer_ids: ActorRef<ProducerIds>,
    /// What its clients read.
    pub fetch_sessions: FetchSessions,
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services").field("node_id", &self.node_id).finish_non_exhaustive()
    }
}

/// The features of a cluster.
#[derive(Debug, Clone, Default)]
pub struct Features {
    /// Those this build knows: name, lowest and highest level.
    pub supported: Vec<(&'static str, i16, i16)>,
    /// Those the cluster has agreed on: name and level.
    pub finalized: Vec<(String, i16)>,
    /// The offset up to which the metadata log says so; -1 before any is known.
    pub finalized_epoch: i64,
}

impl Services {
    /// The cluster's metadata as carried out here now.
    pub fn metadata(&self) -> Arc<AppliedMetadata> {
        self.metadata.current()
    }

    /// A numeric setting of the node, or 0 if there is none of that name.
    pub fn int_setting(&self, name: &str) -> i64 {
        self.config.settings.value(name).and_then(|value| value.as_i64()).unwrap_or(0)
    }

    /// The features supported and agreed on.
    pub fn features(&self) -> Features {
        let metadata = self.metadata();
        let mut finalized: Vec<_> =
            metadata.image.features.iter().map(|(name, level)| (name.to_string(), level)).collect();
        // Its level is in the quorum's log, not in the image.
        if self.controller.kraft_version() > 0 {
            finalized.push((KRAFT_VERSION.to_owned(), self.controller.kraft_version()));
        }
        Features {
            supported: SUPPORTED.iter().map(|(name, range)| (*name, range.min, range.max)).collect(),
            finalized,
            finalized_epoch: metadata.offset,
        }
    }
}
