//! Reads files in the format of `java.util.Properties`.

use std::path::Path;

/// A file that cannot be read as properties.
#[derive(Debug, thiserror::Error)]
pub enum PropertiesError {
    /// The system refused to read the file.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A `\u` is not followed by four hexadecimal digits.
    #[error("line {line} of the properties: \\u must be followed by four hexadecimal digits")]
    BadUnicodeEscape {
        /// Where, counted from 1.
        line: usize,
    },
}

/// Reads a file. Bytes that are not UTF-8 count as ISO-8859-1, which is what Java's format is defined in.
///
/// # Errors
/// [`PropertiesError`].
pub fn read_file(path: &Path) -> Result<Vec<(String, String)>, PropertiesError> {
    let bytes = std::fs::read(path)
        .map_err(|source| PropertiesError::Read { path: path.display().to_string(), source })?;
    match String::from_utf8(bytes) {
        Ok(text) => parse(&text),
        Err(error) => parse(&error.as_bytes().iter().map(|&byte| char::from(byte)).collect::<String>()),
    }
}

/// Reads properties in the order of the text; a name given twice is there twice, and the last one counts.
///
/// # Errors
/// [`PropertiesError::BadUnicodeEscape`].
pub fn parse(text: &str) -> Result<Vec<(String, String)>, PropertiesError> {
    logical_lines(text).into_iter().map(|(number, line)| parse_line(number, &line)).collect()
}

/// Lines without blank ones and comments, each with the lines that continue it and the number of its first.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut open: Option<(usize, String)> = None;
    let natural = text.split('\n').flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'));
    for (index, line) in natural.enumerate() {
        let line = line.trim_start_matches([' ', '\t', '\u{c}']);
        // A line that continues another is neither blank nor a comment.
        if open.is_none() && (line.is_empty() || line.starts_with(['#', '!'])) {
            continue;
        }
        let (number, mut whole) = open.take().unwrap_or((index + 1, String::new()));
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        if backslashes % 2 == 1 {
            whole.push_str(&line[..line.len() - 1]);
            open = Some((number, whole));
        } else {
            whole.push_str(line);
            lines.push((number, whole));
        }
    }
    lines.extend(open.filter(|(_, line)| !line.is_empty()));
    lines
}

fn parse_line(number: usize, line: &str) -> Result<(String, String), PropertiesError> {
    let mut end_of_name = line.len();
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        if !escaped && matches!(c, '=' | ':' | ' ' | '\t' | '\u{c}') {
            end_of_name = at;
            break;
        }
        escaped = c == '\\' && !escaped;
    }
    let (name, rest) = line.split_at(end_of_name);
    let blank = [' ', '\t', '\u{c}'];
    let rest = rest.trim_start_matches(blank);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start_matches(blank);
    Ok((unescape(number, name)?, unescape(number, value)?))
}

fn unescape(line: usize, text: &str) -> Result<String, PropertiesError> {
    if !text.contains('\\') {
        return Ok(text.to_owned());
    }
    // UTF-16, because an escape may be half of a surrogate pair.
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let plain = match (c, if c == '\\' { chars.next() } else { None }) {
            (_, Some('u')) => {
                let digits: String = chars.by_ref().take(4).collect();
                let all_hex = digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_hexdigit());
                let unit = u16::from_str_radix(&digits, 16).ok().filter(|_| all_hex);
                units.push(unit.ok_or(PropertiesError::BadUnicodeEscape { line })?);
                continue;
            }
            (_, Some('t')) => '\t',
            (_, Some('n')) => '\n',
            (_, Some('r')) => '\r',
            (_, Some('f')) => '\u{c}',
            (_, Some(other)) => other,
            ('\\', None) => continue,
            (c, None) => c,
        };
        units.extend(plain.encode_utf16(&mut [0; 2]).iter());
    }
    Ok(String::from_utf16_lossy(&units))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        parse(text).unwrap()
    }

    fn one(text: &str) -> (String, String) {
        let all = pairs(text);
        assert_eq!(all.len(), 1, "{all:?}");
        all.into_iter().next().unwrap()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    // Each case is what java.util.Properties.load makes of the same text.
    #[test]
    fn separators_and_blanks() {
        for text in ["a=b", "a = b", "a:b", "a b", "a\tb", "  a  =  b", "a   b", "a =b"] {
            assert_eq!(one(text), pair("a", "b"), "{text:?}");
        }
        assert_eq!(one("a"), pair("a", ""));
        assert_eq!(one("a="), pair("a", ""));
        assert_eq!(one("a==b"), pair("a", "=b"));
        assert_eq!(one("a = = b"), pair("a", "= b"));
        assert_eq!(one("=b"), pair("", "b"));
        assert_eq!(one("a=b  "), pair("a", "b  "));
        assert_eq!(one(r"a\ b\=c\:d=e"), pair("a b=c:d", "e"));
    }

    #[test]
    fn comments_and_empty_lines() {
        assert_eq!(
            pairs("# a=1\n! b=2\n\n  # c\n   \nd=3 # not a comment\n"),
            [pair("d", "3 # not a comment")]
        );
    }

    #[test]
    fn continued_lines() {
        assert_eq!(one("a=b\\\n   c\\\n\td"), pair("a", "bcd"));
        assert_eq!(one("a=b\\\r\n  c"), pair("a", "bc"));
        assert_eq!(one("a=b\\\\"), pair("a", "b\\"));
        assert_eq!(pairs("a=b\\\\\nc=d"), [pair("a", "b\\"), pair("c", "d")]);
        assert_eq!(one("a=b\\\n#c"), pair("a", "b#c"));
        assert_eq!(one("a=b\\\n"), pair("a", "b"));
        assert_eq!(pairs("a=1\rb=2"), [pair("a", "1"), pair("b", "2")]);
        assert_eq!(one("a\\\n=b"), pair("a", "b"));
    }

    #[test]
    fn escapes() {
        assert_eq!(one(r"a=\t\n\r\f\\\q\u0041"), pair("a", "\t\n\r\u{c}\\qA"));
        assert_eq!(one("a=\\ud83d\\ude00"), pair("a", "\u{1f600}"));
        assert_eq!(one(r"path=C:\\x"), pair("path", r"C:\x"));
        assert!(parse(r"a=\u00g1").is_err());
        assert!(parse("x=1\na=\\u12").unwrap_err().to_string().starts_with("line 2"));
        assert!(parse(r"a=\u+123").is_err());
    }

    #[test]
    fn a_name_given_twice_is_kept_in_order() {
        assert_eq!(pairs("a=1\na=2"), [pair("a", "1"), pair("a", "2")]);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_latin1() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.properties");
        std::fs::write(&path, b"a=caf\xe9").unwrap();
        assert_eq!(read_file(&path).unwrap(), [pair("a", "caf\u{e9}")]);
        assert!(read_file(&dir.path().join("none")).unwrap_err().to_string().contains("none"));
    }
}
