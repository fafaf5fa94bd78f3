//! The engine over HTTPS, with curl in place of the host. It sends files as the policy says.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use wharf_guest::{Body, Content, Engine, EngineError, JobState, Method, Request, Response};

/// The time limit of a request that names none, in milliseconds.
const USUAL_MS: u32 = 10_000;
/// The bytes that stand for every secret.
const SECRET: &[u8] = b"not a secret";

/// A member of the cluster.
#[derive(Debug, Clone)]
pub struct Https {
    pub endpoint: String,
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Engine for Https {
    fn send(&self, request: &Request) -> Result<Response, EngineError> {
        let limit = request.timeout_ms.unwrap_or(USUAL_MS);
        let (headers, body) = sent(request);
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--insecure", "--write-out", "\n%{http_code}"])
            .args([
                "--max-time",
                &format!("{}.{:03}", limit / 1000, limit % 1000),
            ])
            .args(["--request", method(request.method), "--data-binary", "@-"])
            .arg("--cert")
            .arg(&self.cert)
            .arg("--key")
            .arg(&self.key);
        for (name, value) in headers {
            curl.args(["--header", &format!("{name}: {value}")]);
        }
        let mut child = curl
            .arg(format!("{}{}", self.endpoint, request.path))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&body).unwrap();
        let ended = child.wait_with_output().unwrap();
        match ended.status.code() {
            Some(0) => {}
            Some(28) => return Err(EngineError::Timeout),
            code => return Err(EngineError::Unreachable(format!("curl: {code:?}"))),
        }
        let end = ended
            .stdout
            .iter()
            .rposition(|byte| *byte == b'\n')
            .unwrap();
        let status = std::str::from_utf8(&ended.stdout[end + 1..]).unwrap();
        Ok(Response {
            status: status.parse().unwrap(),
            headers: Vec::new(),
            body: ended.stdout[..end].to_vec(),
        })
    }

    fn job(&self, _: &str, _: &Request) -> Result<JobState, EngineError> {
        panic!("the driver has no jobs")
    }
}

/// The headers and the body of a request.
fn sent(request: &Request) -> (Vec<(String, String)>, Vec<u8>) {
    let header = |name: &str, value: String| (name.to_owned(), value);
    match &request.body {
        Body::Empty if request.path.contains("/files?") => {
            let directory = header("X-Incus-type", "directory".into());
            (
                vec![directory, header("X-Incus-mode", "0755".into())],
                Vec::new(),
            )
        }
        Body::Empty => (Vec::new(), Vec::new()),
        Body::Json(text) => {
            let json = header("Content-Type", "application/json".into());
            (vec![json], text.clone().into_bytes())
        }
        Body::File(file) => {
            let headers = vec![
                header("Content-Type", "application/octet-stream".into()),
                header("X-Incus-type", "file".into()),
                header("X-Incus-uid", file.uid.to_string()),
                header("X-Incus-gid", file.gid.to_string()),
                header("X-Incus-mode", format!("0{:o}", file.mode)),
            ];
            let content = match &file.content {
                Content::Bytes(bytes) => bytes.clone(),
                Content::Secret(_) | Content::SecretCrypt(_) => SECRET.to_vec(),
            };
            (headers, content)
        }
        Body::Archive(_) => panic!("the driver sends no archives"),
    }
}

fn method(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Patch => "PATCH",
        Method::Delete => "DELETE",
    }
}
