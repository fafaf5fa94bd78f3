//! Blueprints that a provider gave before. A provider that can ask for neither the time nor random
//! numbers has nothing to answer the same request differently from, and is asked once.

use crate::domain::blueprint::{Blueprint, Content};
use crate::domain::flavor::BlueprintRequest;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;
use wasmtime::Engine;
use wasmtime::component::Component;

/// All of them together.
const MAX_BYTES: u64 = 4 << 20;
/// What most weigh; sizes the cache's own tables.
const USUAL_BYTES: u64 = 2 << 10;
/// What a text or a file costs beside its bytes, roughly.
const PART_BYTES: usize = 64;

/// Bounded; what is asked for most stays.
pub struct Blueprints(Cache<BlueprintRequest, Arc<Blueprint>, Weight>);

impl Default for Blueprints {
    fn default() -> Self {
        let items = usize::try_from(MAX_BYTES / USUAL_BYTES).unwrap_or(usize::MAX);
        Self(Cache::with_weighter(items, MAX_BYTES, Weight))
    }
}

impl Blueprints {
    /// What was given for this.
    pub fn get(&self, request: &BlueprintRequest) -> Option<Arc<Blueprint>> {
        self.0.get(request)
    }

    /// Remembers it for as long as there is room.
    pub fn put(&self, request: &BlueprintRequest, blueprint: &Arc<Blueprint>) {
        self.0.insert(request.clone(), Arc::clone(blueprint));
    }
}

/// Whether a component always answers the same request with the same.
pub fn is_pure(component: &Component, engine: &Engine) -> bool {
    let component = component.component_type();
    let mut imports = component.imports(engine);
    !imports.any(|(name, _)| name.starts_with("wasi:random/") || name.starts_with("wasi:clocks/"))
}

#[derive(Clone)]
struct Weight;

impl Weighter<BlueprintRequest, Arc<Blueprint>> for Weight {
    fn weight(&self, request: &BlueprintRequest, blueprint: &Arc<Blueprint>) -> u64 {
        let key = request.flavor.len()
            + request.login_user.len()
            + request.public_key.as_ref().map_or(0, String::len);
        let images = blueprint.images.iter();
        let images = images.map(|image| image.engine_kind.len() + image.reference.len());
        let files = blueprint.files.iter().map(|file| {
            file.path.len()
                + match &file.content {
                    Content::Bytes(bytes) => bytes.len(),
                    Content::Secret(_) | Content::SecretCrypt(_) => 0,
                }
        });
        let environment = blueprint.environment.iter();
        let environment = environment.map(|(name, value)| name.len() + value.len());
        let command = blueprint.command.iter().map(String::len);
        let parts = images.chain(files).chain(environment).chain(command);
        let bytes = parts.fold(key + 4 * PART_BYTES, |sum, part| sum + part + PART_BYTES);
        u64::try_from(bytes).unwrap_or(u64::MAX / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::is_pure;
    use wasmtime::Engine;
    use wasmtime::component::Component;

    /// One that imports an empty interface of this name and does nothing.
    fn importing(name: &str) -> Vec<u8> {
        let mut import = vec![1, 0, u8::try_from(name.len()).unwrap()];
        import.extend_from_slice(name.as_bytes());
        import.extend_from_slice(&[5, 0]);
        let mut component = b"\0asm\x0d\0\x01\0".to_vec();
        // A section of types with one, of an instance without exports; then that of imports.
        component.extend_from_slice(&[7, 3, 1, 0x42, 0]);
        component.extend_from_slice(&[10, u8::try_from(import.len()).unwrap()]);
        component.extend_from_slice(&import);
        component
    }

    #[test]
    fn who_can_ask_for_time_or_chance_may_answer_differently() {
        let engine = Engine::default();
        for (import, pure) in [
            ("wasi:cli/stdout@0.2.0", true),
            ("wasi:random/insecure-seed@0.2.0", false),
            ("wasi:clocks/wall-clock@0.2.6", false),
        ] {
            let component = Component::from_binary(&engine, &importing(import)).unwrap();
            assert_eq!(is_pure(&component, &engine), pure, "{import}");
        }
    }
}
