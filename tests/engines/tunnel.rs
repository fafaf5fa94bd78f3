//! OpenSSH through tunnels to a real instance, with the entry of `wharf config-ssh` as editors use it.

use crate::context::EngineContext;
use anyhow::{Context as _, Result, ensure};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use wharf_tests::{Api, Ended, OpenSsh, Server, Shell, Tunnel, end, until};

/// The port of the server inside, which listens on a loopback address only.
const INSIDE: u16 = 8765;
/// An instance that stops ends its connections within this time.
const SOON: Duration = Duration::from_secs(30);
/// Keystrokes of a measurement, and bytes of another one.
const STROKES: usize = 300;
const BYTES: u64 = 200_000_000;

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
    measures(&user)?;
    refuses_another_host_key(&user)?;
    ends_with_its_instance(&user)?;
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

/// Prints the time of a keystroke and of many bytes, through the tunnel and beside it.
fn measures(user: &User) -> Result<()> {
    let instance = user.api.instance("box")?.expect(200)?;
    let host = instance["ssh_command"].as_str().context("no SSH command")?;
    let port = instance["wan_ssh_port"].to_string();
    let destination = host.rsplit(' ').next().context("no destination")?;
    let key = user.openssh.shell.home().join(".config/wharf/id_ed25519");
    let key = key.to_string_lossy().into_owned();
    let direct = |command: &str| {
        let options = [
            "-F",
            "/dev/null",
            "-i",
            &key,
            "-p",
            &port,
            "-o",
            "BatchMode=yes",
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            destination,
            command,
        ];
        user.openssh.shell.own("ssh".as_ref(), &options)
    };
    let tunnelled = |command: &str| user.openssh.ssh(&["box.wharf", command]);
    // Each direct measurement is beside one through the tunnel.
    let mut strokes = [Vec::new(), Vec::new()];
    for _ in 0..3 {
        strokes[0].extend(keystrokes(direct("cat"))?);
        strokes[1].extend(keystrokes(tunnelled("cat"))?);
    }
    let [direct_stroke, stroke] = strokes.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    let much = format!("head -c {BYTES} /dev/zero");
    let (direct_bytes, bytes) = (rate(direct(&much))?, rate(tunnelled(&much))?);
    println!(
        "a keystroke takes {direct_stroke:?} directly and {stroke:?} through the tunnel, {:.1} times as long; \
         {direct_bytes:.0} and {bytes:.0} MB/s",
        stroke.as_secs_f64() / direct_stroke.as_secs_f64()
    );
    Ok(())
}

/// The times from bytes to their echo.
fn keystrokes(mut ssh: Command) -> Result<Vec<Duration>> {
    let ssh = ssh.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut ssh = Running(ssh.stderr(Stdio::null()).spawn()?);
    let mut input = ssh.0.stdin.take().context("stdin")?;
    let mut output = ssh.0.stdout.take().context("stdout")?;
    let mut stroke = || -> Result<Duration> {
        let begin = Instant::now();
        input.write_all(b"x")?;
        output.read_exact(&mut [0])?;
        Ok(begin.elapsed())
    };
    stroke()?;
    (0..STROKES).map(|_| stroke()).collect()
}

/// The rate of a command's output in MB/s.
fn rate(mut ssh: Command) -> Result<f64> {
    let ssh = ssh.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut ssh = Running(ssh.stderr(Stdio::null()).spawn()?);
    let mut output = ssh.0.stdout.take().context("stdout")?;
    // The login does not count.
    output.read_exact(&mut [0])?;
    let begin = Instant::now();
    let read = std::io::copy(&mut output, &mut std::io::sink())?;
    ensure!(read + 1 == BYTES, "{read} bytes");
    #[expect(clippy::cast_precision_loss, reason = "a number for people")]
    let megabytes = read as f64 / 1e6;
    Ok(megabytes / begin.elapsed().as_secs_f64())
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
