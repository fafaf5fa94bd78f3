//! Completion, by the shell itself.

use super::signed_in;
use wharf_tests::{Shell, end, wharf_binary};

/// The completions of bash after these words.
fn completed(shell: &Shell, words: &str, number: usize) -> String {
    let script = format!(
        "source <(\"$0\" completions bash)\nCOMP_WORDS=({words}); COMP_CWORD={number}; COMP_TYPE=9\n\
         function=$(complete -p wharf | sed 's/.*-F \\([^ ]*\\).*/\\1/')\n\
         \"$function\" wharf \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let wharf = wharf_binary();
    let mut bash = shell.own("bash".as_ref(), &["-c", &script, wharf.to_str().unwrap()]);
    end(&mut bash, "").unwrap().succeeded().unwrap().stdout
}

#[test]
fn bash_completes_commands_and_the_names_of_instances() {
    let (_server, _, shell) = signed_in("");
    for name in ["first-box", "second-box"] {
        shell.ok(&["create", name]).unwrap();
    }
    let lines = |words, number| {
        let text = completed(&shell, words, number);
        text.lines()
            .map(|line| line.trim().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(lines("wharf show sec", 2), ["second-box"]);
    assert_eq!(lines("wharf port add fir", 3), ["first-box"]);
    shell
        .ok(&["volume", "create", "genome", "--size", "1"])
        .unwrap();
    assert_eq!(lines("wharf volume show gen", 3), ["genome"]);
    assert_eq!(lines("wharf detach first-box gen", 3), ["genome"]);
    shell.ok(&["wait", "first-box"]).unwrap();
    shell
        .ok(&["snapshot", "create", "first-box", "--name", "before"])
        .unwrap();
    assert_eq!(lines("wharf snapshot restore fir", 3), ["first-box/before"]);
    assert_eq!(lines("wharf snapshot plan set sec", 4), ["second-box"]);
    let both = lines("wharf stop ''", 2);
    assert!(
        both.contains(&"first-box".to_owned()) && both.contains(&"second-box".to_owned()),
        "{both:?}"
    );
    assert!(lines("wharf con", 1).contains(&"config-ssh".to_owned()));
    assert_eq!(lines("wharf wait first-box --for run", 4), ["running"]);
    for other in ["zsh", "fish"] {
        assert!(
            shell
                .ok(&["completions", other])
                .unwrap()
                .contains("WHARF_COMPLETE")
        );
        // The question of the script to the program.
        let asked = [("WHARF_COMPLETE", other), ("_CLAP_COMPLETE_INDEX", "2")];
        let words = ["--", "wharf", "show", "sec"];
        let answer = shell.run_with(&words, &asked, "").unwrap();
        let answer = answer.succeeded().unwrap().stdout;
        assert!(answer.starts_with("second-box"), "{other}: {answer}");
        assert_eq!(answer.trim().lines().count(), 1, "{other}: {answer}");
    }
}

#[test]
fn completion_is_silent_without_a_server() {
    let shell = Shell::new().unwrap();
    assert!(!completed(&shell, "wharf show ''", 2).contains("box"));
}
