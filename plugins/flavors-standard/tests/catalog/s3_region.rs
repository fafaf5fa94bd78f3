//! The S3 prefill: the region that it signs its requests for, its result, and its keys. The tests run the
//! images' scripts on this machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The scripts of the images.
const FILES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/images/common/files/usr/local/lib/wharf"
);

/// The files of a download that is not complete.
const STATE: [&str; 4] = ["rclone.conf", "path", "access_key_id", "secret_access_key"];

fn program(name: &str) -> Command {
    let mut bash = Command::new("bash");
    bash.arg(Path::new(FILES).join(name));
    bash
}

/// Returns the provider, region and address.
fn settings(endpoint: &str) -> [String; 3] {
    let said = program("s3-server").args([endpoint, "data"]).output();
    let said = String::from_utf8(said.unwrap().stdout).unwrap();
    let lines = said.lines().map(|line| line.split_once(" = ").unwrap());
    let (names, values): (Vec<_>, Vec<_>) = lines.unzip();
    assert_eq!(names, ["provider", "region", "endpoint"]);
    [0, 1, 2].map(|n| values[n].to_owned())
}

#[test]
fn the_region_comes_from_the_servers_name() {
    for (endpoint, provider, region) in [
        ("https://s3.eu-west-1.amazonaws.com", "AWS", "eu-west-1"),
        ("https://s3-eu-west-1.amazonaws.com/", "AWS", "eu-west-1"),
        (
            "https://s3.dualstack.us-east-2.amazonaws.com:443",
            "AWS",
            "us-east-2",
        ),
        (
            "https://s3-fips.dualstack.us-gov-west-1.amazonaws.com",
            "AWS",
            "us-gov-west-1",
        ),
        (
            "https://other.s3.eu-west-1.amazonaws.com",
            "AWS",
            "eu-west-1",
        ),
        (
            "https://s3.cn-north-1.amazonaws.com.cn",
            "AWS",
            "cn-north-1",
        ),
        ("https://s3.amazonaws.com", "AWS", ""),
        ("https://s3.fr-par.scw.cloud", "Other", "fr-par"),
        (
            "https://S3.US-West-004.backblazeb2.com/x?y",
            "Other",
            "us-west-004",
        ),
        ("https://s3.gra.io.cloud.ovh.net", "Other", "gra"),
        ("https://s3.wasabisys.com", "Other", ""),
        ("https://minio.s3.example.com", "Other", ""),
        ("https://files3.eu.example.com", "Other", ""),
        ("http://minio:9000", "Other", ""),
        ("http://10.1.2.3:9000", "Other", ""),
    ] {
        let expected = [provider, region, endpoint].map(str::to_owned);
        assert_eq!(settings(endpoint), expected);
    }
}

#[test]
fn a_bucket_in_the_servers_name_is_not_repeated() {
    let [_, region, endpoint] = settings("https://data.s3.eu-west-1.amazonaws.com");
    assert_eq!(
        [region.as_str(), endpoint.as_str()],
        ["eu-west-1", "https://s3.eu-west-1.amazonaws.com"]
    );
    let [_, _, other] = settings("https://data.example.com");
    assert_eq!(other, "https://data.example.com");
}

/// Creates an instance's home directory with a fake rclone. Its server has one region and names it
/// in a refusal. A list of its objects is empty or has one.
fn home(name: &str, refusal: &str, object: &str) -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(fs::remove_dir_all(&home));
    fs::create_dir_all(&home).unwrap();
    let rclone = home.join("rclone");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = lsf ] && {{ echo '{object}'; exit; }}\necho asked >>{0}/asked\ngrep -qx 'region = eu-2' \"$3\" && exit 0\n\
         echo \"AuthorizationHeaderMalformed: {refusal}\"\nexit 1\n",
        home.display()
    );
    fs::write(&rclone, script).unwrap();
    fs::set_permissions(&rclone, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(home.join("rclone.conf"), "[s3]\nregion = \nendpoint = x\n").unwrap();
    for (file, value) in [
        ("path", "data/set"),
        ("access_key_id", "key"),
        ("secret_access_key", "it"),
    ] {
        fs::write(home.join(file), value).unwrap();
    }
    home
}

/// Runs a download; returns its success, its log, and the number of requests to the server.
fn download(home: &Path) -> (bool, String, usize) {
    let mut bash = program("s3-download");
    bash.arg(home.join("rclone.conf"));
    let ended = succeeds(&mut bash, home);
    let log = fs::read_to_string(home.join("s3-prefill.log")).unwrap();
    (ended, log, asked(home))
}

/// Runs a program of the login user with the fake rclone.
fn succeeds(program: &mut Command, home: &Path) -> bool {
    let path = std::env::var("PATH").unwrap();
    program
        .env("HOME", home)
        .env("PATH", format!("{}:{path}", home.display()));
    program.status().unwrap().success()
}

/// The number of requests to the server.
fn asked(home: &Path) -> usize {
    let asked = fs::read_to_string(home.join("asked")).unwrap();
    asked.lines().count()
}

#[test]
fn a_region_that_the_server_names_is_used() {
    for refusal in [
        "The authorization header is malformed; the region is wrong; expecting 'eu-2'",
        "The authorization header is malformed; the region 'us-east-1' is wrong; expecting 'eu-2'",
    ] {
        let home = home("named-region", refusal, "1.txt");
        let (ended, log, asked) = download(&home);
        assert!(ended && asked == 2, "{log}");
        assert!(log.contains("of the region eu-2") && log.contains("S3 prefill: done"));
    }
}

#[test]
fn other_refusals_end_the_download() {
    let home = home("other-refusal", "the date is wrong", "1.txt");
    let (ended, log, asked) = download(&home);
    assert!(!ended && asked == 1 && log.contains("FAILED"), "{log}");
}

#[test]
fn a_prefix_without_objects_is_a_failure() {
    let home = home("no-object", "expecting 'eu-2'", "");
    fs::write(home.join("rclone.conf"), "[s3]\nregion = eu-2\n").unwrap();
    let (ended, log, asked) = download(&home);
    assert!(!ended && asked == 1, "{log}");
    assert!(log.contains("FAILED: there is no such bucket, or no object there"));
}

#[test]
fn a_failure_keeps_the_keys_for_the_next_start_and_a_success_removes_them() {
    let home = home("next-start", "expecting 'eu-2'", "");
    fs::write(home.join("rclone.conf"), "[s3]\nregion = eu-2\n").unwrap();
    let state = home.join("state");
    fs::create_dir(&state).unwrap();
    for file in STATE {
        fs::rename(home.join(file), state.join(file)).unwrap();
    }
    let script = fs::read_to_string(Path::new(FILES).join("start.d/s3-prefill")).unwrap();
    // The tests have no login user.
    let as_user = "/usr/local/lib/wharf/as-user /usr/local/lib/wharf";
    let script = script
        .replace(as_user, &format!("bash {FILES}"))
        .replace("/var/lib/wharf/s3-prefill", &state.display().to_string());
    let start = || succeeds(Command::new("sh").args(["-c", &script]), &home);
    for attempt in 1..=2 {
        assert!(!start());
        assert_eq!(asked(&home), attempt);
        assert!(STATE.iter().all(|file| state.join(file).exists()));
    }
    let rclone = home.join("rclone");
    let empty = fs::read_to_string(&rclone).unwrap();
    fs::write(&rclone, empty.replace("echo ''", "echo 1.txt")).unwrap();
    for _ in 0..2 {
        assert!(start());
        assert_eq!(asked(&home), 3);
        assert!(!state.exists());
    }
}

#[test]
fn keys_of_any_characters_reach_rclone_unchanged() {
    let here = Path::new(env!("CARGO_TARGET_TMPDIR")).join("keys");
    for (secret, file, line) in [
        (
            "a%b`c\"d'e",
            "rclone.conf",
            "secret_access_key = \"\"\"a%b`c\"d'e\"\"\"",
        ),
        (
            "\"quoted\"",
            "rclone.conf",
            "secret_access_key = \"\"\"\"quoted\"\"\"\"",
        ),
        (
            "a%(b)s`\"",
            "credentials",
            "aws_secret_access_key = a%(b)s`\"",
        ),
    ] {
        drop(fs::remove_dir_all(&here));
        fs::create_dir_all(here.join("s3")).unwrap();
        for (name, value) in [
            ("endpoint_url", "http://10.1.2.3:9000"),
            ("access_key_id", "key"),
            ("secret_access_key", secret),
            ("prefill_bucket", "s3://data/set"),
        ] {
            fs::write(here.join("s3").join(name), value).unwrap();
        }
        let state = here.join("state").display().to_string();
        let script = fs::read_to_string(Path::new(FILES).join("first-boot.d/s3-prefill")).unwrap();
        let script = script.replace("/usr/local/lib/wharf", FILES);
        let script = script
            .replace("/var/lib/wharf", &state)
            .replace("chown ", ": ");
        let ended = Command::new("bash")
            .args(["-c", &script, "s3-prefill", "user"])
            .env("FIRST_BOOT", &here)
            .status();
        assert!(ended.unwrap().success());
        let written = |name| fs::read_to_string(Path::new(&state).join("s3-prefill").join(name));
        let text = written(file).unwrap();
        assert!(text.lines().any(|found| found == line), "{text}");
        assert_eq!(written("path").unwrap(), "data/set");
        assert_eq!(written("secret_access_key").unwrap(), secret);
    }
}
