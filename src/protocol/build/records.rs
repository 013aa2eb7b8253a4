//! Enums over the records of the metadata log and of the coordinators' logs.

use crate::emit::Code;
use crate::schema::Message;

/// Modules for every family of records.
pub fn index(messages: &[Message]) -> String {
    let mut code = Code::default();
    for (module, name, about, of) in [
        ("metadata_record", "MetadataRecord", "the metadata log", "metadata"),
        ("remote_log_record", "RemoteLogRecord", "the remote log metadata topic", "storage"),
    ] {
        let family: Vec<&Message> =
            messages.iter().filter(|m| m.kind == "metadata" && m.module == of).collect();
        open_module(&mut code, module, about);
        code.line(format!("frame_record! {{ {name}, {about:?},"));
        entries(&mut code, &family);
        code.line("}");
    }
    for (module, name, about, of) in [
        ("group_record", "GroupRecord", "`__consumer_offsets`", "group-coordinator"),
        ("transaction_record", "TransactionRecord", "`__transaction_state`", "transaction-coordinator"),
        ("share_record", "ShareRecord", "`__share_group_state`", "share-coordinator"),
    ] {
        open_module(&mut code, module, about);
        for (kind, part) in [("coordinator-key", "Key"), ("coordinator-value", "Value")] {
            let family: Vec<&Message> =
                messages.iter().filter(|m| m.kind == kind && m.module == of).collect();
            let entry_macro = if part == "Key" { "coordinator_key" } else { "coordinator_value" };
            code.line(format!("{entry_macro}! {{ {name}{part}, {about:?},"));
            entries(&mut code, &family);
        }
        code.line("}");
    }
    code.into_text()
}

fn open_module(code: &mut Code, module: &str, about: &str) {
    code.line(format!("/// The records of {about}, as one enum."));
    code.line(format!("pub mod {module} {{"));
    code.line("#[allow(unused_imports)]");
    code.line("use super::*;");
}

fn entries(code: &mut Code, family: &[&Message]) {
    for message in family {
        code.line(format!("{} = {},", message.name, message.api_key.unwrap_or_default()));
    }
    code.line("}");
}
