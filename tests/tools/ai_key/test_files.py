"""The files of the other assistants, and files of unusual kinds."""

import json
import os

from clone import JUPYTER, MARIMO, NEW, OLD, TERMINAL, CloneTest

NEW_LINE = f'OPENROUTER_API_KEY="{NEW}"\n'
# Lines with the key of the source, in each form that python-dotenv or a shell takes.
LINES = [
    f'ANTHROPIC_API_KEY="{OLD}"\n',
    f"OPENAI_API_KEY={OLD}\n",
    f"export OPENROUTER_API_KEY={OLD}\n",
    f"  export\tGEMINI_API_KEY = '{OLD}' # mine\n",
    f"\tANTHROPIC_API_KEY\t=\t{OLD}\n",
    f"'ANTHROPIC_API_KEY'='{OLD}'\r\n",
    f'ANTHROPIC_API_KEY="\n{OLD}\\"\n{OLD}"\n',
    f'ANTHROPIC_API_KEY="{OLD}\n',
    f"# ANTHROPIC_API_KEY={OLD}\n",
    f"#export OPENAI_API_KEY='{OLD}'\n",
    f"\u00a0OPENAI_API_KEY={OLD}\u2028{OLD}\n",
    f"OPENAI_API_KEY={OLD}\r",
]
# The files of a source.
FILES = {TERMINAL: OLD, MARIMO: f'[ai.anthropic]\napi_key = "{OLD}"\n', JUPYTER: f"A=1\n{LINES[0]}"}
# Lines that stay.
OWN = (
    'A=1\nB="2\n3"\nMY_OPENAI_API_KEY=4\nOPENAI_API_KEY_FILE=5\n'
    "# the key is in OPENAI_API_KEY\nC=${OPENAI_API_KEY}\nD=\udcff\r\n"
)


class Files(CloneTest):
    def test_each_line_of_the_assistants_variables_goes_and_others_stay(self):
        own = OWN.encode(errors="surrogateescape")
        for line in LINES:
            for key in ["", NEW]:
                with self.subTest(line, key=key):
                    self.fresh()
                    old = line.encode()
                    self.write(JUPYTER, old + own + old + old + own)
                    self.clone("jupyterlab", key)
                    self.assert_no_old_key()
                    self.assertEqual(self.read(JUPYTER), (NEW_LINE if key else "") + OWN * 2)

    def test_a_repeated_start_and_another_service_leave_no_old_key(self):
        for service in ["jupyterlab", "marimo"]:
            self.fresh()
            for path, content in FILES.items():
                self.write(path, content)
            for _ in range(2):
                self.clone(service, NEW)
                self.assert_no_old_key()
                marimo = f'[ai.anthropic]\n\n[ai.openrouter]\napi_key = "{NEW}"\n'
                is_marimo = service == "marimo"
                self.assertEqual(self.read(MARIMO), marimo if is_marimo else "[ai.anthropic]\n")
                self.assertEqual(self.read(JUPYTER), ("" if is_marimo else NEW_LINE) + "A=1\n")
                self.assertIn(NEW, self.read(TERMINAL))

    def test_a_file_of_the_assistants_lines_alone_goes(self):
        self.write(JUPYTER, "\ufeff" + LINES[0] + LINES[1].rstrip())
        self.clone("jupyterlab")
        self.assertEqual(list(self.home.iterdir()), [])

    def test_variables_without_a_key_keep_their_form(self):
        self.write(JUPYTER, OWN.encode(errors="surrogateescape"), 0o644)
        self.clone("jupyterlab")
        self.assertEqual((self.read(JUPYTER), self.mode(JUPYTER)), (OWN, 0o644))

    def test_the_terminals_key_is_replaced_or_removed(self):
        for content in [f'{{"anthropic": "{OLD}"}}', f"{{{OLD}"]:
            self.write(TERMINAL, content, 0o644)
            self.clone("ssh", NEW)
            stored = json.loads(self.read(TERMINAL))
            self.assertEqual(stored, {"openrouter": {"type": "api", "key": NEW}})
            self.assertEqual(self.mode(TERMINAL), 0o600)
        self.fresh()
        self.write(TERMINAL, OLD)
        self.clone("ssh")
        self.assertFalse((self.home / TERMINAL).exists())

    def test_a_link_leads_to_the_key(self):
        for key in ["", NEW]:
            for service in ["marimo", "jupyterlab"]:
                self.fresh()
                for path, content in FILES.items():
                    real = f"kept/{path.rpartition('/')[2]}"
                    self.write(real, content)
                    (self.home / path).parent.mkdir(parents=True, exist_ok=True)
                    (self.home / path).symlink_to(self.home / real)
                self.clone(service, key)
                self.assert_no_old_key()
                self.assertTrue((self.home / MARIMO).is_symlink())
                self.assertTrue((self.home / JUPYTER).is_symlink())
                self.assertEqual(NEW in self.read("kept/.env"), bool(key) and service == "jupyterlab")
                self.assertIn("A=1\n", self.read("kept/.env"))

    def test_a_link_to_nothing_or_to_no_file_is_replaced(self):
        for target in ["nowhere/file", "/proc/self/nothing", ".env", "pipe"]:
            self.fresh()
            os.mkfifo(self.home / "pipe")
            (self.home / JUPYTER).symlink_to(target)
            self.clone("jupyterlab", NEW)
            self.assertEqual(self.read(JUPYTER), NEW_LINE)
            self.assertTrue((self.home / "pipe").is_fifo())

    def test_a_directory_stays_and_the_start_goes_on(self):
        for key in ["", NEW]:
            for path, service in [(JUPYTER, "jupyterlab"), (MARIMO, "marimo"), (TERMINAL, "ssh")]:
                self.fresh()
                self.write(f"{path}/own", "a")
                said = self.clone(service, key)
                self.assertEqual(self.read(f"{path}/own"), "a")
                self.assertEqual("is a directory" in said, bool(key))

    def test_a_file_that_its_user_cannot_read_has_no_secret_afterwards(self):
        for path, content in FILES.items():
            self.write(path, content, 0o000)
        self.clone("marimo", NEW)
        self.assert_no_old_key()

    def test_a_new_instance_without_a_key_gets_no_file(self):
        self.clone("marimo")
        self.assertEqual(os.listdir(self.home), [])
