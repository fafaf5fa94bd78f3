//! Kernel parameters that several engines may need at the same time. The first engine sets a parameter,
//! the last one restores it.

use anyhow::{Context, Result};
use std::fs::{self, File};
use std::path::Path;

/// A kernel parameter that is 0 or 1.
pub(super) struct Sysctl {
    path: &'static str,
    /// A file that exists while the parameter is set only for Wharf's engines.
    mark: &'static str,
}

/// Forwarding of packets, which every engine needs.
pub(super) const FORWARDING: Sysctl = Sysctl {
    path: "/proc/sys/net/ipv4/ip_forward",
    mark: "/run/wharf-ip-forward-was-off",
};

/// Announcement of changed hardware addresses. A bridge of netavark before 1.9 has the lowest address of
/// its ports, which changes with its containers. Without announcement, others use the old address.
pub(super) const ANNOUNCING: Sysctl = Sysctl {
    path: "/proc/sys/net/ipv4/conf/all/arp_notify",
    mark: "/run/wharf-arp-notify-was-off",
};

impl Sysctl {
    /// Whether the parameter is 0, or was before an engine of Wharf set it.
    pub fn was_off(&self) -> Result<bool> {
        Ok(self.is_off()? || Path::new(self.mark).exists())
    }

    /// Sets the parameter to 1.
    pub fn turn_on(&self) -> Result<()> {
        if self.is_off()? {
            File::create(self.mark).context(self.mark)?;
            fs::write(self.path, "1").context(self.path)?;
        }
        Ok(())
    }

    /// Restores 0 if an engine of Wharf had set the parameter.
    pub fn put_back(&self) -> Result<()> {
        if Path::new(self.mark).exists() {
            fs::write(self.path, "0").context(self.path)?;
            fs::remove_file(self.mark).context(self.mark)?;
        }
        Ok(())
    }

    fn is_off(&self) -> Result<bool> {
        let text = fs::read_to_string(self.path).context(self.path)?;
        Ok(text.trim() == "0")
    }
}

/// Locks the parameters while an engine sets or restores them. The lock is on a directory, so that no file
/// remains.
pub(super) fn lock() -> Result<File> {
    let lock = File::open("/run")?;
    lock.lock()?;
    Ok(lock)
}
