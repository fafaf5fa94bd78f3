//! Switches of the kernel that several engines may need at once: whoever needs one first turns it on,
//! the last of Wharf's engines to leave puts it back.

use anyhow::{Context, Result};
use std::fs::{self, File};
use std::path::Path;

/// One switch.
pub(super) struct Switch {
    sysctl: &'static str,
    /// There while it is on only because of us.
    mark: &'static str,
}

/// The machine forwards packets, which every engine switches on.
pub(super) const FORWARDING: Switch = Switch {
    sysctl: "/proc/sys/net/ipv4/ip_forward",
    mark: "/run/wharf-ip-forward-was-off",
};

/// A bridge whose hardware address changes tells its neighbours. Bridges of netavark before 1.9 have
/// the lowest address of their ports, so that it changes as instances come and go; without being
/// told, the others would answer to the old one for a while.
pub(super) const ANNOUNCING: Switch = Switch {
    sysctl: "/proc/sys/net/ipv4/conf/all/arp_notify",
    mark: "/run/wharf-arp-notify-was-off",
};

impl Switch {
    /// Whether it is off, or would be but for us.
    pub fn was_off(&self) -> Result<bool> {
        Ok(self.is_off()? || Path::new(self.mark).exists())
    }

    /// Turns it on.
    pub fn turn_on(&self) -> Result<()> {
        if self.is_off()? {
            File::create(self.mark).context(self.mark)?;
            fs::write(self.sysctl, "1").context(self.sysctl)?;
        }
        Ok(())
    }

    /// Turns it off if it is on because of us.
    pub fn put_back(&self) -> Result<()> {
        if Path::new(self.mark).exists() {
            fs::write(self.sysctl, "0").context(self.sysctl)?;
            fs::remove_file(self.mark).context(self.mark)?;
        }
        Ok(())
    }

    fn is_off(&self) -> Result<bool> {
        let text = fs::read_to_string(self.sysctl).context(self.sysctl)?;
        Ok(text.trim() == "0")
    }
}

/// Held by whoever comes or leaves, so that nobody turns off what another has just found on. The
/// directory stands for the switches: no file of its own is left behind.
pub(super) fn turn() -> Result<File> {
    let turn = File::open("/run")?;
    turn.lock()?;
    Ok(turn)
}
