//! A form that makes an image of content: an archive of files beside the content, and the archive of the content.

use super::message::EngineError;
use std::io;
use tar::{Builder, Header};

/// The bytes around the content.
#[derive(Debug)]
pub struct ImageForm {
    pub media_type: String,
    pub before: Vec<u8>,
    pub after: Vec<u8>,
}

impl ImageForm {
    /// The form with these files, as paths and texts.
    pub fn new(files: &[(String, String)]) -> Result<Self, EngineError> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| EngineError::Refused(error.to_string()))?;
        // No content has it.
        let boundary: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let files = archive(files).map_err(|error| EngineError::Refused(error.to_string()))?;
        let part = |name: &str| {
            format!(
                "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{name}\"\r\n\
                 Content-Type: application/octet-stream\r\n\r\n"
            )
        };
        Ok(Self {
            media_type: format!("multipart/form-data; boundary={boundary}"),
            before: [
                part("metadata").as_bytes(),
                &files,
                b"\r\n",
                part("rootfs").as_bytes(),
            ]
            .concat(),
            after: format!("\r\n--{boundary}--\r\n").into_bytes(),
        })
    }
}

fn archive(files: &[(String, String)]) -> io::Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    for (path, text) in files {
        let mut header = Header::new_ustar();
        header.set_mode(0o644);
        header.set_size(text.len() as u64);
        builder.append_data(&mut header, path, text.as_bytes())?;
    }
    builder.into_inner()
}

#[cfg(test)]
mod tests {
    use super::ImageForm;

    #[test]
    fn a_form_has_the_files_before_the_content() {
        let files = [("templates/a.tpl".to_owned(), "{{ a }}".to_owned())];
        let [one, two] = [(); 2].map(|()| ImageForm::new(&files).unwrap());
        assert_ne!(one.media_type, two.media_type);
        let boundary = one.media_type.split_once("boundary=").unwrap().1;
        let whole = [one.before, b"content".to_vec(), one.after].concat();
        let whole = String::from_utf8(whole).unwrap();
        let parts: Vec<_> = whole.split(&format!("--{boundary}")).collect();
        let ["", metadata, content, "--\r\n"] = parts.as_slice() else {
            panic!("{whole:?}")
        };
        assert!(metadata.contains("name=\"metadata\"") && metadata.contains("{{ a }}"));
        assert!(content.contains("name=\"rootfs\"") && content.ends_with("\r\n\r\ncontent\r\n"));
    }
}
