//! OpenSSH through tunnels to a real instance, with the entry of `wharf config-ssh` as editors use it.

use crate::context::EngineContext;
use anyhow::{Context as _, Result, ensure};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use wharf_tests::{Api, Ended, OpenSsh, Server, Shell, Tunnel, end, until};

/// The port of the server inside, which listens on a loopback address only.
const INSIDE: u16 = 8765;
/// An instance that stops ends its connections within this time.
const SOON: Duration = Duration::from_secs(30);

/// A user whose instance `box` is known to OpenSSH.
struct User {
    openssh: OpenSsh,
    api: Api,
}

impl User {
    fn of(server: &Server) -> Result<Self> {
        let shell = Shell::signed_in(server, "ann@example.com")?;
        let api = server.user("ann@example.com")?;
        shell.ok(&["create", "--wait", "box"])?;
        let openssh = OpenSsh::of(shell)?;
        Ok(Self { openssh, api })
    }

    fn run(&self, command: &str) -> Result<Ended> {
        self.openssh.run("box", command)
    }
}

/// A program that is killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn with_openssh(context: &EngineContext) -> Result<()> {
    let server = context.server()?;
    let user = User::of(&server)?;
    logs_in(&user)?;
    user.openssh.copies_files("box", 5_000_000)?;
    reaches_ports(&user)?;
    refuses_another_host_key(&user)?;
    ends_with_its_instance(&user)?;
    user.api.delete("box")?.expect(204)?;
    server.finish()
}

fn logs_in(user: &User) -> Result<()> {
    let said = user.run("uname -n; exit 17")?;
    ensure!(said.code == Some(17) && said.stdout == "box\n", "{said:?}");
    // An editor sends a script to a shell without a terminal.
    let mut script = user
        .openssh
        .ssh(&["-T", "-D", &free_port()?, "box.wharf", "sh"]);
    let said = end(&mut script, "printf '%s' \"$PWD\"; exit 3\n")?;
    ensure!(said.code == Some(3), "{said:?}");
    ensure!(said.stdout == "/home/user", "{said:?}");
    let said = user
        .openssh
        .shell
        .run(&["ssh", "box", "--tunnel", "--", "uname", "-n"])?;
    ensure!(said.succeeded()?.stdout == "box\n");
    Ok(())
}

/// Reaches a server that listens on 127.0.0.1 only, by `wharf forward`, by `ssh -L` and by a tunnel.
fn reaches_ports(user: &User) -> Result<()> {
    user.run(&format!(
        "mkdir -p page; echo inside > page/index.html; \
         nohup python3 -m http.server --directory page --bind 127.0.0.1 {INSIDE} > log 2>&1 < /dev/null &"
    ))?
    .succeeded()?;
    until("the server inside listens", || {
        Ok(user
            .run(&format!("curl -sf 127.0.0.1:{INSIDE}"))?
            .succeeded()
            .ok())
    })?;
    let local = free_port()?;
    let mut forward = user
        .openssh
        .shell
        .command(&["forward", "box", &format!("{local}:{INSIDE}")]);
    let forward = Running(forward.stderr(Stdio::null()).spawn()?);
    let fetched = until("the forwarded port", || Ok(fetch(&local).ok()))?;
    ensure!(fetched.ends_with("inside\n"), "{fetched}");
    for _ in 0..20 {
        ensure!(fetch(&local)?.ends_with("inside\n"));
    }
    drop(forward);
    let local = free_port()?;
    let forwarded = format!("{local}:127.0.0.1:{INSIDE}");
    let mut ssh = user.openssh.ssh(&["-N", "-L", &forwarded, "box.wharf"]);
    let ssh = Running(ssh.stdin(Stdio::null()).spawn()?);
    let fetched = until("the port of ssh -L", || Ok(fetch(&local).ok()))?;
    ensure!(fetched.ends_with("inside\n"), "{fetched}");
    drop(ssh);
    let mut tunnel = Tunnel::open(&user.api, "box", INSIDE)?;
    tunnel.send(b"GET / HTTP/1.0\r\n\r\n")?;
    tunnel.finish()?;
    let fetched = String::from_utf8(tunnel.read_to_end()?)?;
    ensure!(fetched.ends_with("inside\n"), "{fetched}");
    let closed = Tunnel::try_open(&user.api, "box", "?port=9")?.err();
    let closed = closed.context("a port without a server is open")?;
    ensure!(closed.status == 502, "{closed:?}");
    Ok(())
}

fn free_port() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    Ok(listener.local_addr()?.port().to_string())
}

fn fetch(port: &str) -> Result<String> {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}"))?;
    stream.set_read_timeout(Some(SOON))?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(answer.contains(" 200 "), "{answer}");
    Ok(answer)
}

/// An instance that shows another key than the one that the server knows is not logged in to.
fn refuses_another_host_key(user: &User) -> Result<()> {
    let key = "/etc/ssh/ssh_host_ed25519_key";
    user.run(&format!(
        "sudo rm {key} {key}.pub && sudo ssh-keygen -q -t ed25519 -N '' -f {key} && \
         sudo kill -HUP $(cat /run/sshd.pid)"
    ))?;
    until("the changed key is refused", || {
        let refused = user.run("true")?;
        let words = "Host key verification failed";
        Ok((refused.code == Some(255) && refused.stderr.contains(words)).then_some(()))
    })
}

fn ends_with_its_instance(user: &User) -> Result<()> {
    // The key of the instance is known again after a start.
    user.api.act("box", "stop")?.expect(200)?;
    user.api.act("box", "restart")?.expect(200)?;
    user.api.wait_for("box", "running")?;
    user.run("true")?.succeeded()?;
    let mut sleep = user.openssh.ssh(&["box.wharf", "echo begun; sleep 600"]);
    let sleep = sleep.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut sleep = Running(sleep.stderr(Stdio::null()).spawn()?);
    let mut output = sleep.0.stdout.take().context("stdout")?;
    output.read_exact(&mut [0; 6])?;
    user.api.act("box", "stop")?.expect(200)?;
    let begin = Instant::now();
    output.read_to_end(&mut Vec::new())?;
    ensure!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    let refused = user.run("true")?;
    ensure!(refused.stderr.contains("it must be running"), "{refused:?}");
    Ok(())
}
