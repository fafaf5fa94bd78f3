//! Requests in the log, and requests in progress at a shutdown.

use crate::{Expected, wait_until};
use std::io::Write;
use wharf_tests::metric;

#[test]
fn the_log_has_requests_of_clients_that_disconnect() {
    let (server, api) = crate::start_with("ready_after_ms = 1500");
    let created = api.small_container().unwrap();
    let id = crate::uuid(&created);
    api.wait_for(id, "running").unwrap();
    api.act(id, "stop").is(200);
    let request = format!(
        "POST /api/instance/{id}/restart/ HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         x-request-id: went-away\r\n\r\n",
        api.key()
    );
    let address = server.base_url().strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    wait_until("the request has begun", || {
        let state = api.instance(id)?.expect(200)?["state"] != "shut_off";
        Ok(state.then_some(()))
    });
    drop(stream);
    wait_until("the log has it", || {
        let log = server.log();
        let mut lines = log.lines().filter(|line| line.contains("went-away"));
        Ok(lines
            .any(|line| line.contains("went away before"))
            .then_some(()))
    });
    // The restart completes without the client.
    api.wait_for(id, "running").unwrap();
}

#[test]
fn requests_in_progress_complete_at_shutdown() {
    let (mut server, api) = crate::start_with("ready_after_ms = 1500");
    let created = api.small_container().unwrap();
    api.wait_for(crate::uuid(&created), "running").unwrap();
    api.act(crate::uuid(&created), "stop").is(200);
    // The restart waits for the instance, which takes longer than the signal.
    let restart = {
        let (api, id) = (api.clone(), crate::uuid(&created).to_owned());
        std::thread::spawn(move || api.act(&id, "restart"))
    };
    wait_until("the start has begun", || {
        let calls = metric(
            &api,
            "wharf_plugin_call_duration_seconds_count{function=\"start\"",
        )?;
        Ok((calls > 0.0).then_some(()))
    });
    assert!(server.terminate().unwrap().success());
    let answer = restart.join().unwrap().unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    server.run().unwrap();
}
