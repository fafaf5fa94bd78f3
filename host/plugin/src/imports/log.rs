//! The import `log`.

use crate::bindings::log;
use crate::guest::Guest;

impl log::Host for Guest {
    async fn write(&mut self, level: log::Level, message: String) {
        self.log.write(level, &message);
    }
}
