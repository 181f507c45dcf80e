"""The definitions of a notebook as a module: what a reader sees is what the tests call."""

import ast
import linecache
import sys
import types

import cloudpickle
import notebook_rules as rules


def shown(number, *marks):
    """A module with the `%%px --local` cells of a notebook and with those that contain one of the marks, in order.

    Its functions travel to other processes by value, as those of a notebook's kernel do.
    """
    module = types.ModuleType(f"shown_{number}")
    for cell in code_cells(number):
        if cell.source.startswith("%%px --local") or any(mark in cell.source for mark in marks):
            code = cell.source.removeprefix("%%px --local\n")
            exec(compile(code, cell.where, "exec"), module.__dict__)
    sys.modules[module.__name__] = module
    cloudpickle.register_pickle_by_value(module)
    return module


def taken(number, names, **given):
    """A module with these definitions and constants (a str of names) of a notebook, on which `given` was set before."""
    wanted, sources = set(names.split()), []
    for cell in code_cells(number):
        for node in rules.tree(cell).body:
            if found := defined(node) & wanted:
                sources.append(ast.unparse(node))
                wanted -= found
    assert not wanted, f"not in notebook {number}: {wanted}"
    module = types.ModuleType(f"{names} of {number}")
    vars(module).update(given)
    source = "\n\n".join(sources)
    linecache.cache[module.__name__] = len(source), None, source.splitlines(True), module.__name__  # for autograph
    exec(compile(source, module.__name__, "exec"), vars(module))
    return module


def defined(node):
    """The names that a statement binds: of a function, a class, or of constants."""
    targets = [name for target in getattr(node, "targets", ()) for name in ast.walk(target)]
    return {getattr(node, "name", None)} | {target.id for target in targets if isinstance(target, ast.Name)}


def code_cells(number):
    return rules.cells(rules.path_of(number), "code")
