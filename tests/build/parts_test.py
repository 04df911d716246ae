"""Dependencies of the parts point one way, in their includes and in their include folders."""

import json
import os
import pathlib
import re
import unittest

SOURCE = pathlib.Path(os.environ["KVSCOPE_SOURCE"])
FOLDERS = {
    "common": "common",
    "threads": "kernels/threads",
    "kernels": "kernels",
    "policies": "policies",
    "trace_records": "trace/records",
    "trace_hdf5": "trace/hdf5",
    "trace": "trace",
    "trace_checks": "trace/checks",
    "options": "engine/options",
    "analysis_tables": "analysis/tables",
    "analysis_measures": "analysis/measures",
    "analysis_statistics": "analysis/statistics",
    "analysis_drawing": "analysis/drawing",
    "analysis_runs": "analysis/runs",
    "analysis_results": "analysis/results",
    "analysis": "analysis",
    "template": "engine/template",
    "files": "engine/files",
    "tokenizer": "engine/tokenizer",
    "families": "engine/families",
    "checkpoint": "engine/checkpoint",
    "engine_common": "engine/common",
    "engine_device": "engine/device",
    "engine_model": "engine/model",
    "engine_cache": "engine/cache",
    "engine_prefill": "engine/prefill",
    "engine_decode": "engine/decode",
    "engine_echo": "engine/echo",
    "engine_tasks": "engine/tasks",
    "engine": "engine",
    "figures": "app/figures",
    "program": "app/program",
    "papers": "app/papers",
    "results": "app/results",
    "gui_session": "app/gui/session",
    "gui_view_data": "app/gui/view_data",
    "gui_drawing": "app/gui/drawing",
    "gui_engine": "app/gui/engine",
    "gui_view": "app/gui/view",
    "gui_tokens": "app/gui/tokens",
    "gui_figure": "app/gui/figure",
    "gui_inspector": "app/gui/inspector",
    "gui_views": "app/gui/views",
    "gui_window": "app/gui/window",
    "gui_layout": "app/gui/layout",
    "gui_saved": "app/gui/saved",
    "gui_shell": "app/gui/shell",
    "cli": "app/cli",
}
# Parts that each part uses directly. It may also use what these use.
USES = {
    "kernels": ["threads"],
    "policies": ["kernels", "common"],
    "trace_records": ["common"],
    "trace_hdf5": ["trace_records", "kernels"],
    "trace": ["trace_hdf5"],
    "trace_checks": ["trace"],
    "options": ["policies"],
    "analysis_tables": ["common"],
    "analysis_measures": ["trace", "policies"],
    "analysis_drawing": ["analysis_tables", "analysis_measures", "options"],
    "analysis_statistics": ["common"],
    "analysis_runs": ["analysis_drawing", "analysis_statistics"],
    "analysis_results": ["analysis_runs"],
    "analysis": ["analysis_results"],
    "files": ["common", "kernels"],
    "tokenizer": ["files"],
    "families": ["common"],
    "checkpoint": ["template", "tokenizer", "families"],
    "engine_common": ["common"],
    "engine_device": ["kernels", "engine_common"],
    "engine_model": ["engine_device", "options", "trace", "tokenizer", "checkpoint"],
    "engine_cache": ["engine_model"],
    "engine_prefill": ["engine_cache"],
    "engine_decode": ["engine_prefill"],
    "engine_echo": ["engine_prefill"],
    "engine_tasks": ["engine_common", "checkpoint", "policies"],
    "engine": ["engine_decode", "engine_tasks", "analysis_measures"],
    "figures": ["analysis"],
    "program": ["engine", "engine_echo", "analysis_tables"],
    "papers": ["program", "figures"],
    "results": ["analysis_results", "engine_tasks"],
    "gui_session": ["papers"],
    "gui_drawing": ["analysis"],
    "gui_engine": ["gui_view_data"],
    "gui_view_data": ["gui_session"],
    "gui_view": ["gui_view_data", "gui_drawing"],
    "gui_tokens": ["gui_view"],
    "gui_figure": ["gui_tokens"],
    "gui_inspector": ["gui_tokens"],
    "gui_views": ["gui_figure", "gui_inspector"],
    "gui_window": ["gui_view"],
    "gui_layout": ["gui_window"],
    "gui_saved": ["gui_layout"],
    "gui_shell": ["gui_saved", "gui_views", "gui_engine"],
    "cli": ["gui_shell", "trace_checks", "results"],
}


def all_uses(part):
    direct = USES.get(part, [])
    return set(direct).union(*map(all_uses, direct))


MAY_USE = {part: all_uses(part) for part in FOLDERS}


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
            batch = re.fullmatch(r".*/batches/kvscope_([a-z0-9_]+)_\d+\.cpp", str(file))
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
        self.assertLessEqual(MAY_USE["analysis"] | MAY_USE["checkpoint"], seen)

    def test_text_fields_of_the_app_are_its_own(self):
        own = SOURCE / "app/gui/view/text_field.cpp"
        found = []
        for path in sorted((SOURCE / "app").rglob("*.cpp")):
            if path != own and re.search(r"ImGui::InputText", path.read_text(encoding="utf-8")):
                found.append(str(path.relative_to(SOURCE)))
        self.assertEqual(found, [], "these call ImGui::InputText…; text_field() and wrapped_field() show any script")


if __name__ == "__main__":
    unittest.main()
