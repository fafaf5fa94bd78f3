"""The settings of marimo."""

import tomllib

from clone import MARIMO, NEW, OLD, CloneTest

# Settings of a user, with the key of the source.
AWKWARD = {
    "in tables": f'[ai.anthropic]\napi_key = "{OLD}"\n[ai.open_ai]\nmodel = "m"\napi_key = "{OLD}"\n',
    "in the table of the new key": f'[ai.openrouter]\napi_key = "{OLD}"\nmodel = "m"\n',
    "in an inline table": f'[ai]\nopenrouter = {{ model = "m", api_key = "{OLD}" }}\n',
    "in nested inline tables": f'ai = {{open_ai={{api_key="{OLD}"}},a={{model="m",api_key="{OLD}"}}}}\n',
    "with dots": f'ai.openrouter.api_key = "{OLD}"\nai.openrouter.model = "m"\n',
    "with dots in a table": f'[ai]\nopen_ai.api_key = "{OLD}"\nopen_ai.model = "m"\n',
    "with tabs": f'[ai.openrouter]\n\tapi_key\t=\t"{OLD}"\n\tmodel\t= "m"\n',
    "in quotes": f'["ai".\'openrouter\']\n"api_key" = "{OLD}"\nmodel = "m"\n',
    "escaped": f'[ai.openrouter]\n"api\\u005fkey" = "{OLD}"\nmodel = "m"\n',
    "below a spaced header": f'[ ai . openrouter ] # c\napi_key = "{OLD}"\nmodel = "m"\n',
    "on several lines": f'[ai.a]\napi_key = """\n{OLD}"""\nmodel = "m"\n',
    "beside a line separator": f'[ai.a]\nmodel = "m"\napi_key = "{OLD}\u2028{OLD}"\n',
    "of a provider of its own": f'[ai.custom_providers.a]\napi_key = "{OLD}"\nmodel = "m"\n',
    "in a list": f'[[ai.a]]\nb = [[{{api_key = "{OLD}"}}]]\nmodel = "m"\n',
    "in a comment": f'[ai.a]\n# api_key = "{OLD}"\nmodel = "m"\n',
    "of completions": f'[completion]\napi_key = "{OLD}"\n[ai.a]\nmodel = "m"\n',
    "with Windows' ends of lines": f'\ufeff[ai.a]\r\napi_key = "{OLD}"\r\nmodel = "m"\r\n',
}
# Settings in front of them, which stay.
OWN = 'own.rules = """\n[ai.openrouter]\u2028\nmy rules"""\nown.theme = "dark"\nown.at = 1979-05-27T07:32:00Z\n'


def models(settings):
    """The values of all `model` in settings."""
    if isinstance(settings, list):
        return [model for value in settings for model in models(value)]
    if not isinstance(settings, dict):
        return []
    own = [settings["model"]] if "model" in settings else []
    return own + models(list(settings.values()))


class Marimo(CloneTest):
    def test_each_old_key_goes_and_other_settings_stay(self):
        for name, settings in AWKWARD.items():
            bom = "\ufeff" if settings.startswith("\ufeff") else ""
            for key in ["", NEW]:
                with self.subTest(name, key=key):
                    self.fresh()
                    self.write(MARIMO, bom + OWN + settings.removeprefix(bom))
                    self.clone("marimo", key)
                    self.assert_no_old_key()
                    after = tomllib.loads(self.read(MARIMO))
                    self.assertEqual(after["own"], tomllib.loads(OWN)["own"])
                    self.assertEqual(models(after), ["m"])
                    stored = after["ai"].get("openrouter", {}).get("api_key", "")
                    self.assertEqual(stored, key)

    def test_the_first_key_begins_a_file(self):
        self.clone("marimo", NEW)
        self.assertEqual(self.read(MARIMO), f'[ai.openrouter]\napi_key = "{NEW}"\n')
        self.assertEqual(self.mode(MARIMO), 0o600)

    def test_another_value_in_place_of_a_table_is_replaced(self):
        for settings in ["ai = 1\n", '[ai]\nopenrouter = "a"\n', "[[ai]]\n"]:
            self.write(MARIMO, settings)
            self.clone("marimo", NEW)
            after = tomllib.loads(self.read(MARIMO))
            self.assertEqual(after, {"ai": {"openrouter": {"api_key": NEW}}})

    def test_settings_without_a_key_keep_their_form(self):
        settings = '# mine\r\n[display]\r\ntheme="dark" # c\r\n'
        self.write(MARIMO, settings, 0o644)
        self.clone("marimo")
        self.assertEqual((self.read(MARIMO), self.mode(MARIMO)), (settings, 0o644))

    def test_a_file_keeps_its_mode_unless_a_key_comes(self):
        for key, mode in [("", 0o640), (NEW, 0o600)]:
            self.write(MARIMO, f'[ai.a]\napi_key = "{OLD}"\n', 0o640)
            self.clone("marimo", key)
            self.assertEqual(self.mode(MARIMO), mode)

    def test_settings_that_are_not_valid_are_moved_aside_without_keys(self):
        for wrong in [
            b"theme = dark\n",
            b"\xff\n",
            b"a = 1\na = 2\n",
            b"a = " + b"[" * 100_000 + b"\n",
            f'key = """\n{OLD}\n'.encode(),
        ]:
            for key in ["", NEW]:
                with self.subTest(wrong[:20], key=key):
                    self.fresh()
                    line = f'  "api_key" = "{OLD}"\n'.encode()
                    self.write(MARIMO, b"[display]\nwidth = 1\n" + line + wrong)
                    self.clone("marimo", key)
                    self.assert_no_old_key()
                    after = tomllib.loads(self.read(MARIMO))
                    ai = {"ai": {"openrouter": {"api_key": NEW}}} if key else {}
                    self.assertEqual(after, ai)
                    self.assertIn("width = 1\n", self.read(f"{MARIMO}.not-valid"))
