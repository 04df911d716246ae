"""The real window on a display of its own, with real mouse and keyboard events."""

import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import zipfile

PROGRAM = os.environ["KVSCOPE_BINARY"]
TRACE = pathlib.Path(os.environ["KVSCOPE_TEST_DATA"]) / "trace" / "v1.0.h5"
PATIENCE = 300  # seconds until something is given up


def wait_for(what, condition):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"waited {PATIENCE} s for {what}")


@unittest.skipUnless(shutil.which("Xvfb") and shutil.which("xdotool"), "needs Xvfb and xdotool")
@unittest.skipIf(subprocess.run([PROGRAM, "view", "--help"], capture_output=True).returncode, "built without the window")
class Mouse(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory(prefix="kvscope-mouse-")
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        self.trace = shutil.copy(TRACE, self.folder)  # notes are written beside it
        reading, writing = os.pipe()
        # Without -noreset, the server drops new connections when its last client leaves, which may be xdotool.
        server = subprocess.Popen(["Xvfb", "-displayfd", str(writing), "-noreset", "-screen", "0", "1400x900x24"],
                                  pass_fds=[writing], stderr=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            number = pipe.readline().strip()
        self.environment = {**os.environ, "DISPLAY": f":{number}", "HOME": str(self.folder),
                            "XDG_CONFIG_HOME": str(self.folder / "config"), "XDG_STATE_HOME": str(self.folder / "state")}
        self.environment.pop("WAYLAND_DISPLAY", None)

    def start(self, *arguments):
        log = open(self.folder / "log", "w")
        self.addCleanup(log.close)
        self.program = subprocess.Popen([PROGRAM, "view", "--size", "1400x900", *map(str, arguments)], cwd=self.folder,
                                        env=self.environment, stdout=log, stderr=log)
        self.addCleanup(self.program.kill)
        window = wait_for("the window", self.windows)[-1]
        self.xdotool("windowmove", window, "0", "0")
        self.xdotool("windowfocus", window)
        time.sleep(2)

    def windows(self):
        self.assertIsNone(self.program.poll(), (self.folder / "log").read_text())
        return self.xdotool("search", "--onlyvisible", "--name", "kvscope").split()

    def xdotool(self, *arguments):
        done = subprocess.run(["xdotool", *arguments], env=self.environment, capture_output=True, text=True)
        return done.stdout

    def key(self, *keys):
        for key in keys:
            *held, pressed = key.split("+")
            for modifier in held:
                self.xdotool("keydown", modifier)
            time.sleep(0.2)
            self.xdotool("key", pressed)
            time.sleep(0.3)
            for modifier in held:
                self.xdotool("keyup", modifier)

    def type(self, text):
        self.xdotool("type", "--delay", "30", text)
        time.sleep(0.3)

    def save_workspace(self, name):
        path = self.folder / name
        for pause in (1, 3, 6):  # a busy machine draws late
            self.key("ctrl+s")
            time.sleep(pause)
            self.key("ctrl+a")
            self.type(name)
            time.sleep(pause)
            self.key("Return")
            time.sleep(pause)
            if path.exists():
                break
        wait_for(name, path.exists)
        with zipfile.ZipFile(path) as workspace:
            self.assertIsNone(workspace.testzip())
            return json.loads(workspace.read("workspace.json")), workspace.namelist()

    def quit(self):
        self.key("ctrl+q")
        self.assertEqual(self.program.wait(PATIENCE), 0, (self.folder / "log").read_text())

    def test_click_keys_palette_workspace_quit(self):
        self.start(self.trace, "--layout", "explore")
        state, _ = self.save_workspace("before.kvscope")
        self.assertEqual(state["session"]["selection"]["tokens"], [-1, -1])
        self.xdotool("mousemove", "650", "130")
        time.sleep(0.5)
        self.xdotool("click", "1")
        time.sleep(0.5)
        state, names = self.save_workspace("clicked.kvscope")
        first, last = state["session"]["selection"]["tokens"]
        self.assertGreaterEqual(first, 0)
        self.assertEqual(first, last)
        self.assertGreaterEqual(state["session"]["selection"]["layer"], 0)
        self.assertIn(TRACE.name, names)
        self.key("period", "ctrl+k")
        self.type("layout compare")
        self.key("Return")
        time.sleep(1)
        state, _ = self.save_workspace("compare.kvscope")
        self.assertEqual(state["session"]["selection"]["tokens"], [first + 1, first + 1])
        kinds = [view["kind"] for view in state["layout"]["views"]]
        self.assertIn("difference", kinds)
        self.assertNotIn("inspector", kinds)
        self.quit()
        settings = json.loads((self.folder / "config" / "kvscope" / "settings.json").read_text())
        self.assertEqual([pathlib.Path(path).name for path in settings["recent_traces"]],
                         ["compare.kvscope", "clicked.kvscope", "before.kvscope", TRACE.name])
        self.assertEqual([view["kind"] for view in settings["layout"]["views"]], kinds)

    def test_events_of_one_frame_keep_their_order(self):
        self.start(self.trace, "--view", "prompt")
        self.program.send_signal(signal.SIGSTOP)  # a frame that lasts while all of this is typed
        for keys in (["key", "ctrl+f"], ["type", "--delay", "5", "wolf"], ["key", "ctrl+k"],
                     ["type", "--delay", "5", "show rankings"], ["key", "Return"], ["key", "ctrl+k"],
                     ["type", "--delay", "5", "show coverage"], ["key", "Return"]):
            self.xdotool(*keys)
        self.program.send_signal(signal.SIGCONT)
        time.sleep(5)
        state, _ = self.save_workspace("order.kvscope")
        self.assertEqual([view["kind"] for view in state["layout"]["views"]], ["prompt", "rankings", "coverage"])

    def test_a_double_click_is_one_by_the_times_of_its_clicks(self):
        self.start(self.trace, "--view", "retention")
        self.xdotool("mousemove", "650", "400")
        time.sleep(1)

        def layer_after_clicks(milliseconds_between):
            self.program.send_signal(signal.SIGSTOP)  # both come in one frame
            self.xdotool("click", "--repeat", "2", "--delay", str(milliseconds_between), "1")
            self.program.send_signal(signal.SIGCONT)
            time.sleep(3)
            state, _ = self.save_workspace(f"{milliseconds_between}.kvscope")
            return state["layout"]["views"][0]["state"]["layer"]

        self.assertEqual(layer_after_clicks(2000), -1)
        self.assertGreaterEqual(layer_after_clicks(100), 0)

    def test_text_typed_beside_a_field_is_no_command(self):
        self.start(self.trace, "--view", "prompt")
        self.key("ctrl+f")
        self.type("w")
        self.xdotool("mousemove", "700", "800", "click", "1")
        self.type("omfvd")
        state, _ = self.save_workspace("beside.kvscope")
        self.assertEqual([view["kind"] for view in state["layout"]["views"]], ["prompt"])

    def test_a_workspace_leaves_the_prompt_that_is_being_typed(self):
        self.start(self.trace, "--layout", "explore")
        self.save_workspace("w.kvscope")
        self.quit()
        (self.folder / "config" / "kvscope" / "settings.json").unlink()
        self.start("--layout", "explore")
        self.key("ctrl+r")
        time.sleep(2)
        self.xdotool("mousemove", "250", "500", "click", "1")
        time.sleep(1)
        self.type("once upon a time")
        time.sleep(1)
        self.key("ctrl+o")
        time.sleep(2)
        self.key("ctrl+a")
        self.type("w.kvscope")
        self.key("Return")
        time.sleep(5)
        self.key("ctrl+z", "ctrl+z")
        self.quit()
        layout = json.loads((self.folder / "config" / "kvscope" / "settings.json").read_text())["layout"]
        contexts = [view["state"].get("context") for view in layout["views"] if view["kind"] == "run"]
        self.assertEqual(contexts, ["once upon a time"])
        self.assertIn("retention", [view["kind"] for view in layout["views"]])

    def test_the_signal_to_end_leaves_what_was_done(self):
        self.start(self.trace, "--layout", "explore")
        self.xdotool("mousemove", "650", "130")
        time.sleep(0.5)
        self.xdotool("click", "1")
        time.sleep(1)
        self.program.terminate()
        self.program.wait(PATIENCE)
        notes = json.loads(pathlib.Path(f"{self.trace}.notes.json").read_text())
        self.assertGreaterEqual(notes["view"]["selection"]["tokens"][0], 0)
        settings = json.loads((self.folder / "config" / "kvscope" / "settings.json").read_text())
        self.assertEqual(settings["recent_traces"], [str(self.trace)])
        self.assertIn("retention", [view["kind"] for view in settings["layout"]["views"]])

    def test_ctrl_c_in_its_terminal_saves_and_ends_it_by_the_signal(self):
        self.start(self.trace, "--layout", "explore")
        self.program.send_signal(signal.SIGINT)
        self.assertEqual(self.program.wait(PATIENCE), -signal.SIGINT, (self.folder / "log").read_text())
        self.assertTrue((self.folder / "config" / "kvscope" / "settings.json").exists())

    def test_a_damaged_trace_leaves_a_window_that_works(self):
        damaged = self.folder / "damaged.h5"
        damaged.write_bytes(TRACE.read_bytes()[:3000])
        self.start(damaged)
        self.assertIsNone(self.program.poll())
        self.assertIn("damaged.h5", (self.folder / "log").read_text())
        self.quit()


class SideBySide(unittest.TestSuite):
    """Runs tests in three threads, because they mostly wait for a window. Each test has its own display."""

    def run(self, result, debug=False):
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            list(pool.map(lambda test: test(result), self))
        return result


def load_tests(loader, _tests, _pattern):
    return SideBySide(loader.loadTestsFromTestCase(Mouse))


if __name__ == "__main__":
    unittest.main()
