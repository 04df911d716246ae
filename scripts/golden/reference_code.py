"""Code of other repositories, run without their other imports."""

import ast
import subprocess


def source(repository, commit, path):
    """The text of a file at a commit. The repository needs no work tree."""
    return subprocess.run(["git", "-C", str(repository), "show", f"{commit}:{path}"], check=True, capture_output=True,
                          text=True).stdout


def functions_of(text, **names):
    """Runs the functions and constants of a module, without its imports and the rest. `names` replaces imports."""
    nodes = [node for node in ast.parse(text).body if isinstance(node, (ast.FunctionDef, ast.Assign))]
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            for argument in node.args.args:
                argument.annotation = None
    exec(compile(ast.Module(nodes, []), "reference", "exec"), names)  # pylint: disable=exec-used
    return names


def function_of(text, name):
    """Returns the text of one function of a module."""
    return ast.unparse(next(node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == name))
