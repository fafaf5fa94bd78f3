//! The look from inside an instance.

use super::driver::Gpu;
use anyhow::{Result, ensure};

/// The script that prints what there is, one NAME=VALUE in each line.
pub(crate) const LOOK: &str = include_str!("inside.sh");

/// The output of the script.
pub(crate) struct Seen<'a>(pub &'a str);

impl Seen<'_> {
    fn all(&self, name: &str) -> Vec<&str> {
        let lines = self.0.lines().filter_map(|line| line.split_once('='));
        let of_name = lines.filter(|(found, _)| *found == name);
        of_name.map(|(_, value)| value.trim()).collect()
    }

    /// Fails unless the instance has the devices of this GPU and no other, and can compute on it.
    pub fn expect(&self, gpu: &Gpu) -> Result<String> {
        let mut open = self.all("open");
        open.sort_unstable();
        let closed = self.all("closed");
        ensure!(closed.is_empty(), "devices that do not open: {closed:?}");
        let nodes: Vec<_> = gpu
            .nodes()
            .iter()
            .map(|node| node.to_string_lossy().into_owned())
            .collect();
        ensure!(open == nodes, "{open:?} opens, and not {nodes:?}");
        let listed = self.all("smi");
        let is_one = listed.len() == 1 && listed.iter().all(|line| line.contains(&gpu.model));
        ensure!(is_one, "nvidia-smi -L: {listed:?}");
        if gpu.driver.is_none() {
            return Ok(format!("opens {}; runs nvidia-smi", open.join(", ")));
        }
        let errors = self.all("error");
        ensure!(errors.is_empty(), "{errors:?}");
        ensure!(self.all("library").is_empty(), "no libcuda.so.1");
        let of = |name| self.all(name).join(", ");
        ensure!(
            of("memory") != "wrong" && of("kernel") != "wrong",
            "wrong results: {}",
            self.0
        );
        Ok(format!(
            "opens {}; nvidia-smi -L: {}; CUDA: {}, memory: {}, kernel: {}",
            open.join(", "),
            listed.join(", "),
            of("cuda"),
            of("memory"),
            of("kernel")
        ))
    }

    /// Fails unless the instance has nothing of a GPU.
    pub fn expect_none(&self) -> Result<String> {
        let of = |name| self.all(name);
        let devices = [of("open"), of("closed")].concat();
        ensure!(devices.is_empty(), "it has {devices:?}");
        ensure!(of("smi").is_empty(), "it has nvidia-smi: {:?}", of("smi"));
        ensure!(
            of("cuda").iter().all(|cuda| cuda.starts_with("not")),
            "{:?}",
            of("cuda")
        );
        Ok("no device node, no nvidia-smi, no libcuda".to_owned())
    }
}
