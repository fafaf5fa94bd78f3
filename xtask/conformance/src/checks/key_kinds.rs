//! `public_key`: accepted and refused kinds of keys.

use crate::check::{Check, decision};
use serde_json::json;

/// Kinds that OpenSSH supports, besides Ed25519.
const SUPPORTED: [(&str, &str); 6] = [
    (
        "RSA with 2048 bits",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQCzboFmwvAxrQAZfdX46UfIL+1QHpRzdiV19W2uYp85U1bt\
     CpjeYI8ZKR0PQR5T3C69jlTNane1vFOPuWOnA0RfoHOf/qzps4uhl7b24QZMJV4UfNTcl+RH12wkY1KzsjTk\
     bqWB+fxcViu2I5v0uIWZZeI40U92GbI4HW/VRl3RD40goGWX/A9jaujzEl5FPhXlqYQLdMJ5YFpk3Ky0xgJC\
     KZ/ltldz55KfL+KrLROlU1de/UIc5se+xJYWdFZu7aJB6d7Yv2wIXj+fvKHp7GRLlZxGvn5KoKyOAb1/qBE9\
     JvZjzF9gbg22BE17X3HdbFm0z8H64Ji3W0rrL5BVtnG7",
    ),
    (
        "ECDSA on P-256",
        "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBA/eJ8ZA/ZQO\
     Mt/LwYdAHx4u70q+uvep7YOSgTKFbZhS+d2Jx702xo7wUkTiPnsZdcQtptI8LKr0ptzciBXbDVk=",
    ),
    (
        "ECDSA on P-384",
        "ecdsa-sha2-nistp384 AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBAYag3YwDb8M\
     HL4kZzbsGJoZvSZptT9Y50WEml8HlRWfVLe0l/5GUHJuETD90RjaODANVRFsgEB1YlzZp9weF3A2pUnFVglW\
     PtF+6bPu2PPrak7X/uPYVRjJWP9LxJhQtA==",
    ),
    (
        "ECDSA on P-521",
        "ecdsa-sha2-nistp521 AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBAFws5Is64ne\
     BiCy300XrztHXWxQsSsfQKUlsyERY4v8DiVQWC454a1ygpGkTlziwiA/Tbhjm/yau34XAeJ1Afl39wB+bsf7\
     fWdcG28VXCGRJX9i5XCv4bEFyoOV8OC1XMwkoSyJEKQxQCcdXYDpe+1Yr4ukPqVfj3AoXZHSVsTUveq8Gg==",
    ),
    (
        "Ed25519 on a security key",
        "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIFIkGWuBbBTx9\
     nTEHwsrBJV4jF7lFQyMDmE6pDnoO4YgAAAABHNzaDo=",
    ),
    (
        "ECDSA on a security key",
        "sk-ecdsa-sha2-nistp256@openssh.com AAAAInNrLWVjZHNhLXNoYTItbmlzdHAyNTZAb3BlbnNzaC5jb\
     20AAAAIbmlzdHAyNTYAAABBBA/eJ8ZA/ZQOMt/LwYdAHx4u70q+uvep7YOSgTKFbZhS+d2Jx702xo7wUkTiP\
     nsZdcQtptI8LKr0ptzciBXbDVkAAAAEc3NoOg==",
    ),
];

/// Well-formed keys that OpenSSH no longer supports.
const OUTDATED: [(&str, &str); 2] = [
    (
        "RSA with 768 bits",
        "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAYQC+ik2SGczByO+nzihZ2oniPVt+LLtZjptWSFDHo6276rzx\
     YS7+vLfmQAUsBUB9yLlnFK/xvfm39oiZ0Xri6mgCXp8hrya6BrrmqrY4PhwXHwGfTajiyN7Ksj9Tqps2tB8=",
    ),
    (
        "DSA",
        "ssh-dss AAAAB3NzaC1kc3MAAACBANY/24VhjZ1Y136iUJnpCewUJH7ZqoZ3MLdgqtTXSLF7KbfWJ2tdUHE0\
     75dGlNuBMFQf3w5mcAh9icGX2FKEwpBaM9S+r5rM01ScrJOIsT2uuFOVaNKoWsnDcXc2HAMKTR8qCAYD1quv\
     K1GxSbSfCA3TZs92a+ikvDBeBW5CDozLAAAAFQDzvyNbU9u0blG6RJuKN7N02j2lpwAAAIAnAGvAKbsFcDnQ\
     vBkominathTznIg9iwaZRiEnJi6miZok2lXzAd3mo3K4OHV/FXS6VmN7t7ZpRWZheftnC5sXzepTrlHfWsls\
     HfB6YQKov+LEAfGtPivxZ9/YR0IYFwfNu6YWZT3Yi1p0ghHoYvi92pA2qC0Zju9w08vFi52u5QAAAIBGtfsg\
     +Q4THpW5rU/h18hUv56IXf6ibHhfS/LVphs67JOPKmt8mImJiFtOVm2eCsz8Jtpmm44D5pkF8w7QOIm0PfiP\
     exFAuP+BCHTIx6j7YzFnj2xbfdghZKuW5uEB9RMsZs5yNiXkbgaZorhKEsYS1wKntWQR+3Pn92yczjSYeQ==",
    ),
];

pub(super) fn checks() -> Vec<Check> {
    let accepted = SUPPORTED.into_iter().map(|(kind, key)| {
        decision(
            "4.3",
            format!("`public_key` of kind {kind} is accepted"),
            move |c| {
                let body = c.small_with("container", &json!({ "public_key": format!("{key} me") }));
                c.create(&body).map(drop)
            },
        )
    });
    let refused = OUTDATED.into_iter().map(|(kind, key)| {
        decision(
            "4.3",
            format!("`public_key` of kind {kind} is refused"),
            move |c| {
                let body = c.small_with("container", &json!({ "public_key": format!("{key} me") }));
                c.try_create(c.me(), &body)?.refuses("public_key")
            },
        )
    });
    accepted.chain(refused).collect()
}
