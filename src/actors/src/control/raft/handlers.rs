//! What the raft actor does with each message.

use super::actor::{Ctx, RaftActor};
use super::control_records::QuorumRecords;
use super::feed::Subscriber;
use super::messages::{
    Append, AppendFailed, AppendedRange, DescribeQuorum, QuorumInfo, ReadBootstrap, Resign, Subscribe,
    WriteSnapshot,
};
use super::{open, snapshot};
use crate::supervision::{Handler, Message, ReplyTo};
use callboard_raft::Input;

impl Handler<Append> for RaftActor {
    fn handle(&mut self, append: Append, reply: ReplyTo<Result<AppendedRange, AppendFailed>>, ctx: &mut Ctx) {
        let result = self.append(append, ctx);
        reply.send(result);
    }
}

impl Handler<Subscribe> for RaftActor {
    fn handle(&mut self, subscribe: Subscribe, reply: ReplyTo<()>, ctx: &mut Ctx) {
        self.next_subscription += 1;
        // Ids of an earlier life of this actor must not come again.
        let id = (ctx.generation() << 32) + self.next_subscription;
        let name = subscribe.name;
        self.shared.subscribers().insert(name, Subscriber::new(subscribe, id));
        reply.send(());
        self.feed(ctx);
    }
}

impl Handler<WriteSnapshot> for RaftActor {
    fn handle(&mut self, message: WriteSnapshot, reply: ReplyTo<Result<(), String>>, ctx: &mut Ctx) {
        let Some(open) = &self.open else { return reply.send(Err("the log is not open yet".to_owned())) };
        let snapshot = message.snapshot;
        let id = snapshot.id;
        if open.snapshots.last().is_some_and(|newest| newest.end_offset >= id.end_offset) {
            return reply.send(Ok(()));
        }
        if id.end_offset > open.machine.high_watermark() {
            return reply.send(Err(format!("offset {} is not committed", id.end_offset)));
        }
        let kraft_version = Some(open.machine.kraft_version());
        let voters = Some(open.machine.voters().clone());
        let quorum = QuorumRecords { kraft_version, voters };
        let (dir, now_ms) = (open.dir.clone(), ctx.now_ms());
        let write = move || snapshot::write(&dir, &snapshot, &quorum, now_ms);
        ctx.blocking("write snapshot", write, move |actor: &mut Self, result, ctx| match result {
            Ok(()) => {
                tracing::info!(
                    end_offset = id.end_offset,
                    epoch = id.epoch,
                    "wrote a snapshot of the metadata"
                );
                if let Some(open) = &mut actor.open {
                    open.snapshots.push(id);
                }
                reply.send(Ok(()));
                actor.apply_retention(ctx);
            }
            // The log is whole without it: the next one may succeed.
            Err(error) => {
                tracing::warn!(%error, "could not write a snapshot of the metadata");
                reply.send(Err(error.to_string()));
            }
        });
    }
}

impl Handler<DescribeQuorum> for RaftActor {
    fn handle(&mut self, _: DescribeQuorum, reply: ReplyTo<Option<QuorumInfo>>, ctx: &mut Ctx) {
        let info = self.open.as_ref().filter(|open| !open.persisting).map(|open| {
            let now = open.machine_time(ctx);
            let mut status = open.machine.status(now);
            for replica in status.voters.iter_mut().chain(&mut status.observers) {
                for at in [&mut replica.last_fetch_ms, &mut replica.last_caught_up_ms] {
                    if *at >= 0 {
                        *at += ctx.now_ms() - now;
                    }
                }
            }
            QuorumInfo { status, voters: open.machine.voters().clone() }
        });
        reply.send(info);
    }
}

impl Handler<ReadBootstrap> for RaftActor {
    fn handle(&mut self, _: ReadBootstrap, reply: ReplyTo<<ReadBootstrap as Message>::Reply>, ctx: &mut Ctx) {
        let dir = self.options.metadata_log_dir.clone();
        let read = move || open::read_bootstrap(&dir).map_err(|error| error.to_string());
        ctx.blocking("read bootstrap", read, move |_: &mut Self, result, _| reply.send(result));
    }
}

impl Handler<Resign> for RaftActor {
    fn handle(&mut self, _: Resign, reply: ReplyTo<()>, ctx: &mut Ctx) {
        self.input(Input::Resign, ctx);
        reply.send(());
    }
}
