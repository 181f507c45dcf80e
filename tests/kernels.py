"""A notebook kernel, as a reader has it."""

import os

from jupyter_client.manager import start_new_kernel


class Kernel:
    """Runs cells; a context manager. errors: what has reached its stderr. environment: added to ours."""

    def __init__(self, **environment):
        self.environment = {**os.environ, **environment}
        self.environment.pop("PYTEST_CURRENT_TEST", None)  # where it is set, ipykernel does not show what C++ code says
        self.errors = ""

    def __enter__(self):
        self.manager, self.client = start_new_kernel(kernel_name="python3", env=self.environment)
        return self

    def __exit__(self, *exc):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def run(self, code, until="", then=None):
        """Run a cell; returns what it printed and raised. As soon as `until` is printed `then` is called."""
        shown = ""
        request = self.client.execute(code)
        while True:
            message = self.client.get_iopub_msg(timeout=300)
            content = message["content"]
            if content.get("name") == "stderr":
                self.errors += content["text"]
            if message["parent_header"].get("msg_id") != request:
                continue
            shown += content.get("text", "") + "\n".join(content.get("traceback", []))
            if then and until in shown:
                then()
                then = None
            if content.get("execution_state") == "idle":
                return shown
