//! ACLs, SCRAM credentials and delegation tokens: kept in the image for those who check them.

use bytes::Bytes;
use callboard_protocol::messages::metadata_record::MetadataRecord;
use callboard_protocol::messages::{
    AccessControlEntryRecord, DelegationTokenRecord, RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord, RemoveUserScramCredentialRecord, UserScramCredentialRecord,
};
use callboard_protocol::{ByteString, Uuid};
use imbl::OrdMap;

use crate::record::VersionedRecord;

/// One access control entry; the codes are those of the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acl {
    /// What kind of resource: topic 2, group 3, cluster 4, transactional id 5, token 6, user 7.
    pub resource_type: i8,
    /// The resource's name, or `*`.
    pub resource_name: ByteString,
    /// Literal 3 or prefixed 4.
    pub pattern_type: i8,
    /// Whom it is about, such as `User:alice`.
    pub principal: ByteString,
    /// From where, or `*`.
    pub host: ByteString,
    /// What is done.
    pub operation: i8,
    /// Deny 2 or allow 3.
    pub permission_type: i8,
}

/// A user's SCRAM credential of one mechanism, without the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScramCredential {
    /// The salt.
    pub salt: Bytes,
    /// The stored key.
    pub stored_key: Bytes,
    /// The server key.
    pub server_key: Bytes,
    /// How many times the password was hashed.
    pub iterations: i32,
}

/// A delegation token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegationToken {
    /// Whose rights it carries.
    pub owner: ByteString,
    /// Who asked for it.
    pub requester: ByteString,
    /// Who may renew it.
    pub renewers: Vec<ByteString>,
    /// When it was made.
    pub issue_timestamp_ms: i64,
    /// How long it may be renewed.
    pub max_timestamp_ms: i64,
    /// When it runs out.
    pub expiration_timestamp_ms: i64,
}

/// Everything that decides who may do what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecurityImage {
    /// ACLs by their id.
    pub acls: OrdMap<Uuid, Acl>,
    /// SCRAM credentials by mechanism (1 SCRAM-SHA-256, 2 SCRAM-SHA-512) and user.
    pub scram: OrdMap<(i8, ByteString), ScramCredential>,
    /// Delegation tokens by their id.
    pub tokens: OrdMap<ByteString, DelegationToken>,
}

impl SecurityImage {
    pub(crate) fn set_acl(&mut self, record: &AccessControlEntryRecord) {
        let acl = Acl {
            resource_type: record.resource_type,
            resource_name: record.resource_name.clone(),
            pattern_type: record.pattern_type,
            principal: record.principal.clone(),
            host: record.host.clone(),
            operation: record.operation,
            permission_type: record.permission_type,
        };
        self.acls.insert(record.id, acl);
    }

    pub(crate) fn remove_acl(&mut self, record: &RemoveAccessControlEntryRecord) {
        self.acls.remove(&record.id);
    }

    pub(crate) fn set_scram(&mut self, record: &UserScramCredentialRecord) {
        let credential = ScramCredential {
            salt: record.salt.clone(),
            stored_key: record.stored_key.clone(),
            server_key: record.server_key.clone(),
            iterations: record.iterations,
        };
        self.scram.insert((record.mechanism, record.name.clone()), credential);
    }

    pub(crate) fn remove_scram(&mut self, record: &RemoveUserScramCredentialRecord) {
        self.scram.remove(&(record.mechanism, record.name.clone()));
    }

    pub(crate) fn set_token(&mut self, record: &DelegationTokenRecord) {
        let token = DelegationToken {
            owner: record.owner.clone(),
            requester: record.requester.clone(),
            renewers: record.renewers.clone(),
            issue_timestamp_ms: record.issue_timestamp,
            max_timestamp_ms: record.max_timestamp,
            expiration_timestamp_ms: record.expiration_timestamp,
        };
        self.tokens.insert(record.token_id.clone(), token);
    }

    pub(crate) fn remove_token(&mut self, record: &RemoveDelegationTokenRecord) {
        self.tokens.remove(&record.token_id);
    }

    pub(crate) fn scram_records(&self, out: &mut Vec<VersionedRecord>) {
        for ((mechanism, name), credential) in &self.scram {
            let record = UserScramCredentialRecord {
                name: name.clone(),
                mechanism: *mechanism,
                salt: credential.salt.clone(),
                stored_key: credential.stored_key.clone(),
                server_key: credential.server_key.clone(),
                iterations: credential.iterations,
                ..Default::default()
            };
            out.push(VersionedRecord::new(MetadataRecord::UserScramCredentialRecord(record), 0));
        }
    }

    pub(crate) fn acl_and_token_records(&self, out: &mut Vec<VersionedRecord>) {
        for (id, acl) in &self.acls {
            let record = AccessControlEntryRecord {
                id: *id,
                resource_type: acl.resource_type,
                resource_name: acl.resource_name.clone(),
                pattern_type: acl.pattern_type,
                principal: acl.principal.clone(),
                host: acl.host.clone(),
                operation: acl.operation,
                permission_type: acl.permission_type,
                ..Default::default()
            };
            out.push(VersionedRecord::new(MetadataRecord::AccessControlEntryRecord(record), 0));
        }
        for (token_id, token) in &self.tokens {
            let record = DelegationTokenRecord {
                owner: token.owner.clone(),
                requester: token.requester.clone(),
                renewers: token.renewers.clone(),
                issue_timestamp: token.issue_timestamp_ms,
                max_timestamp: token.max_timestamp_ms,
                expiration_timestamp: token.expiration_timestamp_ms,
                token_id: token_id.clone(),
                ..Default::default()
            };
            out.push(VersionedRecord::new(MetadataRecord::DelegationTokenRecord(record), 0));
        }
    }
}
