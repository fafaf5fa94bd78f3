//! A long list stays quick.

use crate::desk::Desk;
use std::sync::atomic::{AtomicUsize, Ordering};
use wharf_tests::browser::Browser;
use wharf_tests::{roomy, simulated_node, small};

const COUNT: usize = 1000;

/// Types into the filter; returns the time until the browser has painted the result.
const FILTER: &str = "
    const field = document.querySelector('[data-filter]');
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const times = [];
    for (const text of ['r', 'ru', 'run', 'running', 'running b', '']) {
        await frame();
        const begin = performance.now();
        set.call(field, text);
        field.dispatchEvent(new Event('input', { bubbles: true }));
        await frame();
        times.push(performance.now() - begin);
    }
    return times;";

/// Scrolls from the first row to the last; returns the time of each frame.
const SCROLL: &str = "
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const times = [];
    const end = document.documentElement.scrollHeight - innerHeight;
    for (let n = 1; n <= 60; n++) {
        const begin = performance.now();
        scrollTo(0, (end * n) / 60);
        await frame();
        times.push(performance.now() - begin);
        if (!document.elementFromPoint(500, 450)?.closest('tr[data-name]')) throw new Error(`no row at ${n}`);
    }
    return times;";

/// Runs a script that returns times in ms.
fn times(browser: &Browser, script: &str) -> Vec<f64> {
    let times = browser.run_async(script).unwrap();
    let times = times.as_array().expect("no times");
    times.iter().map(|time| time.as_f64().unwrap()).collect()
}

#[test]
fn a_list_of_a_thousand_instances_scrolls_and_filters() {
    let Some(desk) = Desk::start_with(&roomy(&simulated_node("one", ""))).unwrap() else {
        return;
    };
    let left = AtomicUsize::new(COUNT);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let take = |n: usize| n.checked_sub(1);
                while left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                    .is_ok()
                {
                    let made = desk.api.create(&small("container")).unwrap();
                    made.expect(201).unwrap();
                }
            });
        }
    });
    let browser = &desk.browser;
    let all = format!(
        "return document.querySelector('.count')?.textContent === '{COUNT}' \
         && document.querySelectorAll('.state.running').length > 5"
    );
    browser.wait_for("all instances are listed", &all).unwrap();
    let rows = browser
        .run("return document.querySelectorAll('tbody tr').length")
        .unwrap();
    assert!(rows.as_u64().unwrap() < 100, "{rows} rows are rendered");
    desk.open("/instances", "tr[data-name]").unwrap();
    let paint =
        "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null";
    let paint = browser.wait_for("the first paint", paint).unwrap();
    println!("first paint of the list, ms after the navigation: {paint}");
    browser.wait_for("all instances are listed", &all).unwrap();
    let filter = times(browser, FILTER);
    println!("filter of {COUNT} instances, ms to the painted result: {filter:.1?}");
    let scroll = times(browser, SCROLL);
    let longest = scroll.iter().copied().fold(0.0, f64::max);
    let mean = scroll.iter().sum::<f64>() / f64::from(u32::try_from(scroll.len()).unwrap());
    println!(
        "scroll through {COUNT} instances, ms per frame: mean {mean:.1}, longest {longest:.1}"
    );
    // The last rows are there at the end of the page.
    let last = format!(
        "scrollTo(0, document.documentElement.scrollHeight);
         return document.querySelector('tr[aria-rowindex=\"{}\"]') !== null",
        COUNT + 1
    );
    browser.wait_for("the last row", &last).unwrap();
    desk.picture("many").unwrap();
}
