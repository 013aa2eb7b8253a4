//! From one generation to the next: waiting for the members, and for their syncs.

use std::collections::BTreeSet;

use callboard_protocol::{ByteString, ErrorCode};

use super::{Scene, State};
use crate::group::{Reply, TimerKind};

impl Scene<'_, '_> {
    /// Something about the members has changed: a rebalance begins, or one that goes on may now be complete.
    pub(super) fn rebalance_or_complete(&mut self) {
        match self.group.state {
            State::PreparingRebalance => self.complete_join_if_all_joined(),
            _ => self.prepare_rebalance(),
        }
    }

    /// Has all members join again.
    pub(super) fn prepare_rebalance(&mut self) {
        if self.group.state == State::CompletingRebalance {
            self.refuse_syncs(ErrorCode::RebalanceInProgress);
        }
        self.end_sync_time();
        let is_initial = self.group.state == State::Empty;
        self.group.set_state(State::PreparingRebalance, self.cx.now_ms);
        if is_initial {
            // More members are likely to follow the first one: one rebalance for all of them is cheaper.
            let delay_ms = self.cx.settings.classic.initial_rebalance_delay_ms.max(0);
            self.group.newcomer = false;
            self.group.initial_delay_left_ms = Some((self.group.rebalance_timeout_ms() - delay_ms).max(0));
            self.set_timer(TimerKind::ClassicJoin, delay_ms);
        } else if self.group.all_joined() {
            self.complete_join();
        } else {
            let timeout_ms = self.group.rebalance_timeout_ms();
            self.set_timer(TimerKind::ClassicJoin, timeout_ms);
        }
    }

    fn complete_join_if_all_joined(&mut self) {
        if self.group.all_joined() && self.group.initial_delay_left_ms.is_none() {
            self.complete_join();
        }
    }

    /// The time to join is over; for an empty group, one piece of it.
    pub(super) fn join_time_over(&mut self) {
        if self.group.state != State::PreparingRebalance {
            return;
        }
        match self.group.initial_delay_left_ms {
            Some(left_ms) if self.group.newcomer && left_ms > 0 => {
                let delay_ms = self.cx.settings.classic.initial_rebalance_delay_ms.max(0);
                self.group.newcomer = false;
                self.group.initial_delay_left_ms = Some((left_ms - delay_ms).max(0));
                self.set_timer(TimerKind::ClassicJoin, delay_ms.min(left_ms));
            }
            _ => self.complete_join(),
        }
    }

    /// Begins a generation with those who have joined. Dynamic members that have not are no members any more.
    fn complete_join(&mut self) {
        self.cancel_timer(TimerKind::ClassicJoin);
        self.group.initial_delay_left_ms = None;
        let late: Vec<ByteString> = self
            .group
            .members()
            .filter(|member| member.joining.is_none() && member.instance_id.is_none())
            .map(|member| member.id.clone())
            .collect();
        for id in &late {
            self.forget_member(id);
        }
        if self.group.members.is_empty() {
            return self.become_empty();
        }
        if !self.elect_joined_leader() {
            // Static members only, none of them back: wait on, they may be restarting.
            let timeout_ms = self.group.rebalance_timeout_ms();
            return self.set_timer(TimerKind::ClassicJoin, timeout_ms);
        }
        self.group.generation = next_generation(self.group.generation);
        self.group.protocol = self.group.select_protocol();
        self.group.set_state(State::CompletingRebalance, self.cx.now_ms);
        let ids: Vec<ByteString> = self.group.members.keys().cloned().collect();
        for id in &ids {
            if let Some(ticket) = self.group.take_joining(id) {
                self.answer_join(ticket, id);
            }
            if let Some(member) = self.group.member_mut(id) {
                member.is_new = false;
            }
            self.restart_session(id);
        }
        self.group.pending_sync = ids.into_iter().collect();
        let timeout_ms = self.group.rebalance_timeout_ms();
        self.set_timer(TimerKind::ClassicSync, timeout_ms);
    }

    fn become_empty(&mut self) {
        self.group.generation = next_generation(self.group.generation);
        self.group.protocol = None;
        self.group.leader = None;
        self.group.pending_sync.clear();
        self.group.set_state(State::Empty, self.cx.now_ms);
        self.outcome.records.push(self.group.to_record());
    }

    /// The leader must be somebody who has joined. False if nobody has.
    fn elect_joined_leader(&mut self) -> bool {
        let joined = |id: &ByteString| self.group.member(id).is_some_and(|member| member.joining.is_some());
        if self.group.leader.as_ref().is_some_and(joined) {
            return true;
        }
        let found = self.group.members().find(|member| member.joining.is_some()).map(|m| m.id.clone());
        match found {
            Some(id) => {
                self.group.leader = Some(id);
                true
            }
            None => false,
        }
    }

    /// Members that have not synced in time are no members any more.
    pub(super) fn sync_time_over(&mut self) {
        if !matches!(self.group.state, State::CompletingRebalance | State::Stable)
            || self.group.pending_sync.is_empty()
        {
            return;
        }
        let silent: Vec<ByteString> = self.group.pending_sync.iter().cloned().collect();
        for id in &silent {
            self.forget_member(id);
        }
        self.prepare_rebalance();
    }

    /// A member was silent for too long.
    pub(super) fn session_over(&mut self, id: &ByteString) {
        if self.group.pending_members.remove(id).is_some() {
            return self.members_left();
        }
        let Some(member) = self.group.member(id) else { return };
        // One that waits is alive as far as anybody knows, unless it is its first join, which its client may have left.
        if !member.is_new && (member.joining.is_some() || member.syncing.is_some()) {
            return;
        }
        self.forget_member(id);
        self.members_left();
    }

    /// Members have left: those who stay share out the work anew.
    pub(super) fn members_left(&mut self) {
        match self.group.state {
            State::Empty => {}
            State::PreparingRebalance => self.complete_join_if_all_joined(),
            State::CompletingRebalance | State::Stable => self.prepare_rebalance(),
        }
    }

    /// Removes a member, and tells it so where it waits.
    pub(super) fn forget_member(&mut self, id: &ByteString) {
        self.cancel_session(id);
        let Some(member) = self.group.remove(id) else { return };
        if let Some(ticket) = member.joining {
            let refusal = super::join::refusal(ErrorCode::UnknownMemberId, ByteString::new());
            self.outcome.replies.push((ticket, Reply::JoinGroup(refusal)));
        }
        if let Some(ticket) = member.syncing {
            self.outcome.replies.push((ticket, super::sync::refusal(ErrorCode::UnknownMemberId)));
        }
    }

    /// Nobody gets an assignment of this generation any more.
    fn refuse_syncs(&mut self, error: ErrorCode) {
        let ids: BTreeSet<ByteString> = self.group.members.keys().cloned().collect();
        for id in &ids {
            let Some(member) = self.group.member_mut(id) else { continue };
            member.assignment = bytes::Bytes::new();
            if let Some(ticket) = member.syncing.take() {
                self.outcome.replies.push((ticket, super::sync::refusal(error)));
            }
        }
    }

    pub(super) fn end_sync_time(&mut self) {
        self.group.pending_sync.clear();
        self.cancel_timer(TimerKind::ClassicSync);
    }

    pub(super) fn set_timer(&mut self, kind: TimerKind, delay_ms: i64) {
        self.timers.set(self.cx, &self.group.id, kind, delay_ms);
    }

    fn cancel_timer(&mut self, kind: TimerKind) {
        self.timers.cancel(&self.group.id, kind);
    }

    pub(super) fn set_session(&mut self, id: &ByteString, timeout_ms: i64) {
        self.set_timer(TimerKind::ClassicSession(id.clone()), timeout_ms);
    }

    /// A member was heard of: its session begins anew.
    pub(super) fn restart_session(&mut self, id: &ByteString) {
        if let Some(timeout_ms) = self.group.member(id).map(|member| member.session_timeout_ms) {
            self.set_session(id, i64::from(timeout_ms));
        }
    }

    pub(super) fn cancel_session(&mut self, id: &ByteString) {
        self.cancel_timer(TimerKind::ClassicSession(id.clone()));
    }
}

/// Generations count from 1 up, and begin anew past the largest.
fn next_generation(generation: i32) -> i32 {
    generation.checked_add(1).unwrap_or(0)
}
