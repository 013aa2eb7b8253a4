//! A node: its tree of actors, and what it offers the handlers of requests.

use std::fmt;
use std::sync::Arc;

use callboard_metadata::config::BrokerConfig;
use callboard_metadata::features::{KRAFT_VERSION, SUPPORTED};
use callboard_metadata::image::Image;

use crate::api::FetchSessions;
use crate::control::applied::BrokerMetadata;
use crate::control::controller::QuorumController;
use crate::producer_ids::ProducerIds;
use crate::replicas::Replicas;
use crate::supervision::{ActorRef, Clock, Shards};

/// What a node offers the handlers of requests.
pub struct Services {
    /// The settings it runs with.
    pub config: Arc<BrokerConfig>,
    /// The cluster it belongs to.
    pub cluster_id: String,
    /// `node.id`.
    pub node_id: i32,
    /// Its clock.
    pub clock: Clock,
    /// The cluster's metadata, as far as this node has carried it out.
    pub metadata: BrokerMetadata,
    /// The controller of this node.
    pub controller: QuorumController,
    /// The partitions it holds.
    pub replicas: Replicas,
    /// Where its actors run.
    pub shards: Shards,
    /// Ids for producers.
    pub producer_ids: ActorRef<ProducerIds>,
    /// `transaction.max.timeout.ms`.
    pub transaction_max_timeout_ms: i32,
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
    /// The cluster's metadata as this node knows it now.
    pub fn image(&self) -> Arc<Image> {
        self.metadata.current().image.clone()
    }

    /// The features supported and agreed on.
    pub fn features(&self) -> Features {
        let metadata = self.metadata.current();
        let mut finalized: Vec<(String, i16)> =
            metadata.image.features.iter().map(|(name, level)| (name.to_string(), level)).collect();
        // That of the quorum's log is not in the image.
        if self.controller.kraft_version() > 0 {
            finalized.push((KRAFT_VERSION.to_owned(), self.controller.kraft_version()));
        }
        let supported = SUPPORTED.iter().map(|(name, range)| (*name, range.min, range.max)).collect();
        Features { supported, finalized, finalized_epoch: metadata.offset }
    }
}
