"""Dependencies of the parts point one way, in their includes and in their include folders."""

import json
import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ["KVSCOPE_SOURCE"])
FOLDERS = {
    "common": "common",
    "kernels": "kernels",
    "policies": "policies",
    "trace": "trace",
    "options": "engine/options",
    "analysis_tables": "analysis/tables",
    "analysis_measures": "analysis/measures",
    "analysis": "analysis",
    "template": "engine/template",
    "files": "engine/files",
    "tokenizer": "engine/tokenizer",
    "checkpoint": "engine/checkpoint",
    "engine_common": "engine/common",
    "engine_device": "engine/device",
    "engine_model": "engine/model",
    "engine_cache": "engine/cache",
    "engine_inference": "engine/inference",
    "engine": "engine",
    "figures": "app/figures",
    "program": "app/program",
    "gui_session": "app/gui/session",
    "gui_drawing": "app/gui/drawing",
    "gui_engine": "app/gui/engine",
    "gui_view": "app/gui/view",
    "gui_tokens": "app/gui/tokens",
    "gui_figure": "app/gui/figure",
    "gui_inspector": "app/gui/inspector",
    "gui_views": "app/gui/views",
    "gui_shell": "app/gui/shell",
    "cli": "app/cli",
}
ANALYSIS = {"common", "kernels", "policies", "trace", "options", "analysis_tables", "analysis_measures", "analysis"}
CHECKPOINT = {"common", "kernels", "template", "files", "tokenizer", "checkpoint"}
BELOW_ENGINE = {"common", "kernels", "policies", "trace", "options", "files", "tokenizer", "checkpoint"}
ENGINE = BELOW_ENGINE | {"engine_common", "engine_device", "engine_model", "engine_cache", "engine_inference", "engine"}
BELOW_THE_WINDOW = ANALYSIS | CHECKPOINT | ENGINE | {"figures", "program"}
ROOMS_BELOW_VIEWS = {"gui_session", "gui_drawing", "gui_view", "gui_tokens"}
MAY_USE = {
    "common": set(),
    "kernels": set(),
    "policies": {"kernels", "common"},
    "trace": {"kernels", "common"},
    "options": {"kernels", "policies", "common"},
    "analysis_tables": {"common"},
    "analysis_measures": {"trace", "kernels", "policies", "common"},
    "analysis": ANALYSIS,
    "template": set(),
    "files": {"common", "kernels"},
    "tokenizer": {"files", "common"},
    "checkpoint": CHECKPOINT,
    "engine_common": set(),
    "engine_device": {"kernels", "engine_common"},
    "engine_model": BELOW_ENGINE | {"engine_common", "engine_device"},
    "engine_cache": BELOW_ENGINE | {"engine_common", "engine_device", "engine_model"},
    "engine_inference": BELOW_ENGINE | {"engine_common", "engine_device", "engine_model", "engine_cache"},
    "engine": ENGINE,
    "figures": ANALYSIS,
    "program": ENGINE,
    "gui_session": BELOW_THE_WINDOW,
    "gui_drawing": ANALYSIS,
    "gui_engine": BELOW_THE_WINDOW | {"gui_session"},
    "gui_view": BELOW_THE_WINDOW | {"gui_session", "gui_drawing"},
    "gui_tokens": BELOW_THE_WINDOW | {"gui_session", "gui_drawing", "gui_view"},
    "gui_figure": BELOW_THE_WINDOW | ROOMS_BELOW_VIEWS,
    "gui_inspector": BELOW_THE_WINDOW | ROOMS_BELOW_VIEWS,
    "gui_views": BELOW_THE_WINDOW | ROOMS_BELOW_VIEWS | {"gui_figure", "gui_inspector"},
    "gui_shell": set(FOLDERS) - {"cli"},
    "cli": set(FOLDERS),
}


def part_of(path):
    """Returns the innermost part that contains `path` (relative to the repository), or None."""
    holders = [part for part, folder in FOLDERS.items() if path.startswith(folder + "/")]
    return max(holders, key=lambda part: len(FOLDERS[part]), default=None)


class Parts(unittest.TestCase):
    def test_includes(self):
        sources = [path for folder in FOLDERS.values() for path in (SOURCE / folder).rglob("*")
                   if path.suffix in (".cpp", ".h", ".cu")]
        self.assertGreater(len(sources), 50)
        for source in sources:
            name = str(source.relative_to(SOURCE))
            part = part_of(name)
            for include in re.findall(r'^\s*#\s*include\s*"([^"]+)"', source.read_text(), re.M):
                self.assertNotIn("..", include.split("/"), f"{name} includes {include} around its include folders")
                used = part_of(include)
                self.assertTrue(used is None or used == part or used in MAY_USE[part], f"{name} includes {include}")

    def test_include_folders(self):
        include = str(pathlib.Path.cwd() / "include") + "/"
        commands = json.loads(pathlib.Path("compile_commands.json").read_text())
        seen = set()
        for entry in commands:
            file = pathlib.Path(entry["file"])
            batch = re.fullmatch(r".*/batches/kvscope_([a-z_]+)_\d+\.cpp", str(file))
            if batch:
                part = batch[1] if batch[1] in FOLDERS else None
            elif file.is_relative_to(SOURCE) and not file.is_relative_to(pathlib.Path.cwd()):
                part = part_of(str(file.relative_to(SOURCE)))
            else:
                part = None
            if part is None:
                continue
            seen.add(part)
            for folder in re.findall(r"(?:^| )-I(\S+)", entry["command"]):
                self.assertTrue(folder.startswith(include), f"{file} is compiled with -I{folder}")
                used = folder[len(include):]
                self.assertTrue(used == part or used in MAY_USE[part], f"{file} is compiled with -I{folder}")
        self.assertLessEqual(ANALYSIS | CHECKPOINT, seen)

    def test_text_fields_of_the_app_are_its_own(self):
        own = SOURCE / "app/gui/view/text_field.cpp"
        found = []
        for path in sorted((SOURCE / "app").rglob("*.cpp")):
            if path != own and re.search(r"ImGui::InputText", path.read_text(encoding="utf-8")):
                found.append(str(path.relative_to(SOURCE)))
        self.assertEqual(found, [], "these call ImGui::InputText…; text_field() and wrapped_field() show any script")


if __name__ == "__main__":
    unittest.main()
