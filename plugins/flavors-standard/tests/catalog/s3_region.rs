//! The region that the S3 prefill signs its requests for. The tests run the images' scripts on this
//! machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn program(name: &str) -> Command {
    let files = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/images/common/files/usr/local/lib/wharf"
    );
    let mut bash = Command::new("bash");
    bash.arg(Path::new(files).join(name));
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
/// in a refusal.
fn home(name: &str, refusal: &str) -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(fs::remove_dir_all(&home));
    fs::create_dir_all(&home).unwrap();
    let rclone = home.join("rclone");
    let script = format!(
        "#!/bin/sh\necho asked >>{0}/asked\ngrep -qx 'region = eu-2' \"$3\" && exit 0\n\
         echo \"AuthorizationHeaderMalformed: {refusal}\"\nexit 1\n",
        home.display()
    );
    fs::write(&rclone, script).unwrap();
    fs::set_permissions(&rclone, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(home.join("rclone.conf"), "[s3]\nregion = \nendpoint = x\n").unwrap();
    home
}

/// Runs a download; returns its success, its log, and the number of requests to the server.
fn download(home: &Path) -> (bool, String, usize) {
    let path = std::env::var("PATH").unwrap();
    let mut bash = program("s3-download");
    bash.arg(home.join("rclone.conf"))
        .env("HOME", home)
        .env("PATH", format!("{}:{path}", home.display()));
    let ended = bash.status().unwrap().success();
    let log = fs::read_to_string(home.join("s3-prefill/s3-prefill.log")).unwrap();
    let asked = fs::read_to_string(home.join("asked")).unwrap();
    (ended, log, asked.lines().count())
}

#[test]
fn a_region_that_the_server_names_is_used() {
    for refusal in [
        "The authorization header is malformed; the region is wrong; expecting 'eu-2'",
        "The authorization header is malformed; the region 'us-east-1' is wrong; expecting 'eu-2'",
    ] {
        let home = home("named-region", refusal);
        let (ended, log, asked) = download(&home);
        assert!(ended && asked == 2, "{log}");
        assert!(log.contains("of the region eu-2") && log.contains("S3 prefill: done"));
    }
}

#[test]
fn other_refusals_end_the_download() {
    let home = home("other-refusal", "the date is wrong");
    let (ended, log, asked) = download(&home);
    assert!(!ended && asked == 1 && log.contains("FAILED"), "{log}");
}
